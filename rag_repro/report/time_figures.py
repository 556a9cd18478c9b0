"""Figures of time: quality against it, what it is made of, and how it grows with the corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from ..data.titles import word
from ..evaluation.cost_metrics import PART
from ..study.exhibits import Cell, Exhibit
from . import missing
from .exhibits import Row, unit
from .figures import (
    MARKERS,
    STYLES,
    WIDTH,
    Point,
    bars,
    legend,
    legend_of_labels,
    plots,
    point_panels,
)
from .picture import Note, Picture
from .tables import data_of
from .times import PARTS, Timed, no_clock, not_timed

HATCHES = ("", "//", "..", "xx", "--")
CALLS = {
    "reader": "reader",
    "scorer": "classifier",
    "encoder": "encoder",
    "retriever": "search",
    "reservoir": "reservoir",
}


def quality_against_time(
    exhibit: Exhibit,
    rows: Sequence[Timed],
    printed: Mapping[tuple[str, str, str], float] | None = None,
    *,
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """F1 against time (single-step's = 1): a panel a data set, a point a method.

    printed: the paper's own (method, data set, metric) -> value; hollow points.
    """
    held = [row for row in rows if row.times and row.f1]
    printed = printed or {}
    datasets = list(dict.fromkeys([r.dataset for r in held] + [place for _, place, _ in printed]))
    if not datasets:
        return not_timed(rows)
    drawn = {row.method for row in held} | {method for method, *_ in printed}
    labels = {name: row.label for name, row in exhibit.methods.items() if name in drawn}
    panels = point_panels(
        [Point(row.dataset, row.method, row.times, row.f1) for row in held],
        labels,
        datasets,
        xlabel="time, single-step = 1",
        ylabel="F1, %",
        told="F1 {y:.0f} at {x:.2f} times",
    )
    spoken = []
    for dataset, axis in panels.axes.items():
        spoken += panels.spoken[dataset]
        for method, (colour, marker) in panels.looks.items():
            at = printed.get((method, dataset, "time")), printed.get((method, dataset, "f1"))
            if None not in at:
                axis.plot(*at, color=colour, marker=marker, ms=7, mfc="none", ls="")
                spoken.append(f"{word(dataset)}, {labels[method]}, paper: F1 {at[1]} at {at[0]}")
        axis.set_xscale("log")
        axis.set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
        axis.minorticks_off()
    alt = "F1 against time. " + "; ".join(spoken) + "."
    return Picture(panels.figure, alt, caption, name)


def parts(rows: Sequence[Timed], *, caption: str = "", name: str = "") -> Picture | Note:
    """Where an answer's seconds go: a bar a method and data set, a part a service."""
    held = [row for row in rows if row.means]
    if not held:
        return not_timed(rows)
    plt, colours = plots()
    figure, axis = plt.subplots(figsize=(WIDTH, 0.3 * len(held) + 1.4), layout="constrained")
    names = [f"{word(row.dataset)}, {row.label}" for row in held]
    left = [0.0] * len(held)
    for place, (part, words) in enumerate(PARTS.items()):
        took = [row.means[part] for row in held]
        axis.barh(names, took, left=left, color=colours[place], hatch=HATCHES[place], label=words)
        left = [a + b for a, b in zip(left, took, strict=True)]
    axis.invert_yaxis()
    axis.set_xlabel("seconds for one answer")
    legend_of_labels(figure)
    spoken = [
        f"{words}: " + ", ".join(f"{PARTS[p]} {row.means[p]:.3f}" for p in PARTS)
        for words, row in zip(names, held, strict=True)
    ]
    return Picture(figure, "Seconds by service. " + "; ".join(spoken) + ".", caption, name)


def one_clock(
    line: Mapping[str, Any] | None, cell: Cell | None, *, caption: str = "", name: str = ""
) -> Picture | Note:
    """The calls of one timed answer behind one another, as long as they took.

    line, cell: as `times.clock_table` has them.
    """
    if line is None:
        return no_clock(cell)
    plt, colours = plots()
    figure, axis = plt.subplots(figsize=(WIDTH, 1.5), layout="constrained")
    looks = dict(zip(CALLS, zip(colours, HATCHES, strict=False), strict=False))
    turn, at = line["turns"][0], 0.0
    spoken = []
    for kind, seconds, items in turn["clock"]:
        if kind == PART:
            continue  # inside the search that comes next
        colour, hatch = looks[kind]
        axis.barh([""], [seconds], left=[at], color=colour, hatch=hatch, label=CALLS[kind])
        at += seconds
        spoken.append(f"{CALLS[kind]} ({items}) {1000 * seconds:.1f} ms")
    axis.set_xlim(0, turn["seconds"])
    axis.set_xlabel("seconds since the question")
    legend_of_labels(figure)
    return Picture(figure, "One answer's calls. " + "; ".join(spoken) + ".", caption, name)


def against_size(
    rows: Sequence[Row],
    *,
    metrics: Mapping[str, str],
    methods: Mapping[str, str],
    sizes: Mapping[str, int],
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """A panel a metric: each method's value as the corpus grows.

    metrics: name -> words for the axis; times have a logarithmic scale. sizes:
    data set -> its passages.
    """
    asked = [r for r in rows if r.metric in metrics and r.keys["method"] in methods]
    rows = [row for row in asked if row.ours]
    if not rows:
        return missing.note_of_rows(asked, "time")
    plt, colours = plots()
    figure, axes = plt.subplots(
        1, len(metrics), figsize=(WIDTH, 3.4), squeeze=False, layout="constrained"
    )
    looks = dict(zip(methods, cycle(zip(colours, MARKERS, strict=True)), strict=False))
    spoken = []
    for axis, (metric, words) in zip(axes[0], metrics.items(), strict=True):
        for (method, (colour, marker)), style in zip(looks.items(), cycle(STYLES), strict=False):
            held = sorted(
                (sizes[r.keys["dataset"]], r.ours)
                for r in rows
                if (r.metric, r.keys["method"]) == (metric, method)
            )
            x, y = [size for size, _ in held], [i.estimate for _, i in held]
            spread = bars(i for _, i in held)
            if held:
                look = {"color": colour, "marker": marker, "ls": style, "ms": 5, "capsize": 2}
                axis.errorbar(x, y, yerr=spread, **look)
            spoken += [
                f"{words}, {methods[method]}, {n:,}: {v:.1f}" for n, v in zip(x, y, strict=True)
            ]
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:,.0f}")
        if unit(metric) == "milliseconds":
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("passages")
        axis.set_ylabel(words)
    legend(figure, looks.values(), methods.values(), ls="")
    alt = "As the corpus grows. " + "; ".join(spoken) + "."
    return Picture(figure, alt, caption, name, data_of(rows))
