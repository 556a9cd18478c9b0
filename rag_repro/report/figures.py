"""The figures of the book, drawn from an exhibit's rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..data.titles import word
from ..evaluation.statistics import Interval
from .exhibits import Row
from .missing import note_of_rows
from .picture import SLIM, Note, Picture
from .tables import data_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 8.0  # inches; a page shows them at about 90 points an inch
# Methods differ by colour and by marker, metrics by line style: no colour tells anything alone.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p")
STYLES = ("-", "--", ":", "-.")


def plots():
    """pyplot and the palette, styled once here: colour-blind safe, light grid."""
    import matplotlib.pyplot as plt
    import seaborn as sns

    sns.set_theme(context="notebook", style="whitegrid", palette="colorblind", font_scale=0.85)
    plt.rcParams["text.parse_math"] = False  # a "$" in a name is a "$"
    colours = list(sns.color_palette("colorblind"))
    # A dark one comes fourth: seaborn's own fourth is near its second to a deuteranope's eye. Its
    # pink and its yellow come last: they are hardly seen on white.
    *first, pink, grey, yellow, blue = colours
    return plt, [*first[:3], (0.13, 0.13, 0.13), *first[3:], grey, blue, pink, yellow]


def across(panels: int = 1) -> float:
    """Inches of so many panels side by side; one alone fits a phone."""
    return SLIM if panels == 1 else WIDTH


def bars(intervals: Iterable[Interval]) -> list[list[float]]:
    """The lengths of error bars: down from each estimate, and up."""
    intervals = list(intervals)
    return [[i.estimate - i.lo for i in intervals], [i.hi - i.estimate for i in intervals]]


def legend(
    figure: Figure,
    looks: Iterable[tuple[Any, str]],
    words: Iterable[str],
    styles: Iterable[str] = (),
    **line: Any,
) -> None:
    """Below the figure: a colour and marker for each of the words, then line styles alone.

    styles: words for the first of `STYLES`. line: how all the former are drawn, as ls="".
    """
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker=marker, label=said, **line)
        for (colour, marker), said in zip(looks, words, strict=False)
    ]
    handles += [
        Line2D([], [], color="0.3", ls=style, label=said)
        for style, said in zip(STYLES, styles, strict=False)
    ]
    _below(figure, handles)


def legend_of_labels(figure: Figure) -> None:
    """Below the figure: what its axes have labelled, each label once."""
    found = [axis.get_legend_handles_labels() for axis in figure.axes]
    by_label = {
        label: h for handles, labels in found for h, label in zip(handles, labels, strict=True)
    }
    _below(figure, [*by_label.values()], [*by_label])


def _below(figure: Figure, handles: Sequence[Any], labels: Sequence[str] | None = None) -> None:
    """In as many columns as fit the figure's width: a wider legend would shrink all else."""
    labels = [h.get_label() for h in handles] if labels is None else labels
    letters = int(11 * figure.get_size_inches()[0])
    fitting = max(1, letters // (max(map(len, labels)) + 6))
    columns = min(4, len(handles), fitting)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


@dataclass(frozen=True)
class Point:
    """A method on a data set: what it costs (x) and how good it is (y), with their intervals."""

    dataset: str
    method: str
    x: Interval
    y: Interval


@dataclass(frozen=True, eq=False)
class Panels:
    """A panel a data set; looks: a method's colour and marker; spoken: each panel's points."""

    figure: Figure
    axes: Mapping[str, Any]
    looks: Mapping[str, tuple[Any, str]]
    spoken: Mapping[str, list[str]]


def point_panels(
    points: Iterable[Point],
    labels: Mapping[str, str],
    datasets: Sequence[str],
    *,
    xlabel: str,
    ylabel: str,
    told: str,
    sharey: bool = False,
) -> Panels:
    """Quality against what it costs: a panel a data set, a point a method; bars are 95 %.

    labels: method -> words for the legend, in the order of the looks; one without a point has
    its look, which so is the same in a page's other figures, but no place in the legend.
    told: a point in words, as "{y:.0f} at {x:.1f}".
    """
    plt, colours = plots()
    figure, [axes] = plt.subplots(
        1,
        len(datasets),
        figsize=(across(len(datasets)), 3.6),
        sharey=sharey,
        squeeze=False,
        layout="constrained",
    )
    looks = dict(zip(labels, zip(colours * 2, MARKERS * 2, strict=False), strict=False))
    made = Panels(figure, dict(zip(datasets, axes, strict=True)), looks, {d: [] for d in datasets})
    for axis, dataset in zip(axes, datasets, strict=True):
        axis.set_title(word(dataset))
    # Of many narrow panels the middle one's stands for all: side by side they would run together.
    for axis in axes if len(axes) < 4 else [axes[len(axes) // 2]]:
        axis.set_xlabel(xlabel)
    axes[0].set_ylabel(ylabel)
    points = list(points)
    for dataset, axis in made.axes.items():
        spans = [point.x for point in points if point.dataset == dataset]
        if len({span.estimate for span in spans}) == 1:  # no spread to show: it begins at nothing
            axis.set_xlim(0, 1.15 * max(span.hi for span in spans) or 1)
    for point in points:
        colour, marker = looks[point.method]
        x, y = point.x.estimate, point.y.estimate
        made.axes[point.dataset].errorbar(
            x,
            y,
            xerr=bars([point.x]),
            yerr=bars([point.y]),
            **{"color": colour, "marker": marker, "ms": 6, "capsize": 2, "lw": 0.8},
        )
        said = f"{word(point.dataset)}, {labels[point.method]}: {told.format(x=x, y=y)}"
        made.spoken[point.dataset].append(said)
    drawn = [method for method in labels if any(point.method == method for point in points)]
    legend(figure, [looks[m] for m in drawn], [labels[m] for m in drawn], ls="")
    return made


def against_k(
    rows: Sequence[Row],
    *,
    metrics: Mapping[str, str],
    methods: Mapping[str, str],
    along: str = "k",
    ylabel: str,
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """One panel a data set: metrics (line style) of methods (colour, marker) along a setting.

    metrics, methods: name -> words for the legend. Bars are 95 % intervals.
    Rows of other metrics and methods, and those that nobody has run, are left out.
    """
    asked = [r for r in rows if r.metric in metrics and r.keys["method"] in methods]
    rows = [row for row in asked if row.ours]
    # One point tells of no course, and a method of which there is none has no place in a legend.
    spans = {row.keys["dataset"]: set() for row in rows}
    for row in rows:
        spans[row.keys["dataset"]].add(row.keys[along])
    if any(len(found) > 1 for found in spans.values()):
        rows = [row for row in rows if len(spans[row.keys["dataset"]]) > 1]
    methods = {m: said for m, said in methods.items() if any(r.keys["method"] == m for r in rows)}
    if not rows:
        return note_of_rows(asked)
    if len({row.keys[along] for row in rows}) == 1:
        value = rows[0].keys[along]
        return Note(f"{caption}: not drawn, since {along} is {value} in every record.")
    plt, colours = plots()
    datasets = list(dict.fromkeys(row.keys["dataset"] for row in rows))
    size = (across(len(datasets)), 3.4)
    figure, axes = plt.subplots(
        1, len(datasets), figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    looks = list(zip(colours, MARKERS, strict=True))
    bottom, at = _bottom(rows), sorted({r.keys[along] for r in rows})
    # Side by side, so that the bars of methods that do much the same are all seen.
    step = min(0.012 * (at[-1] - at[0]), 0.1 * min(high - low for low, high in pairwise(at)))
    for axis, dataset in zip(axes[0], datasets, strict=True):
        for place, (look, method) in enumerate(zip(looks, methods, strict=False)):
            aside = step * (place - (len(methods) - 1) / 2)
            for style, metric in zip(STYLES, metrics, strict=False):
                _line(axis, rows, dataset, method, metric, along, *look, style, aside)
        axis.set_title(word(dataset))
        axis.set_xlabel(along)
        axis.set_xticks(_apart(at))
    # Once all is drawn: the axis is that of all panels, and a limit ends its growing.
    axes[0][0].set_ylim(bottom=bottom)
    axes[0][0].set_ylabel(ylabel)
    if bottom:
        caption += f"; the axis begins at {bottom:g}"
    styles = metrics.values() if len(metrics) > 1 else ()
    legend(figure, looks, methods.values(), styles, ms=5)
    alt = _spoken(rows, metrics, methods, along)
    return Picture(figure, alt, caption, name, data_of(rows))


def _bottom(rows: Sequence[Row]) -> float:
    """Where an axis begins: at nothing, or, where all values lie high and close, below them."""
    lowest, highest = min(row.ours.lo for row in rows), max(row.ours.hi for row in rows)
    return 0.0 if 2 * lowest < highest else 10.0 * (lowest // 10)


def _apart(values: Sequence[float], part: float = 0.09) -> list[float]:
    """Those of the sorted values whose labels do not touch: this part of the axis apart."""
    kept = list(values[:1])
    for value in values[1:]:
        if value - kept[-1] >= part * (values[-1] - values[0]):
            kept.append(value)
    return kept


def _line(axis, rows, dataset, method, metric, along, colour, marker, style, aside) -> None:
    held = sorted(
        (
            row
            for row in rows
            if (row.keys["dataset"], row.keys["method"], row.metric) == (dataset, method, metric)
        ),
        key=lambda row: row.keys[along],
    )
    x = [row.keys[along] + aside for row in held]
    y = [row.ours.estimate for row in held]
    spread = bars(row.ours for row in held)
    if held:
        axis.errorbar(x, y, yerr=spread, color=colour, ls=style, marker=marker, ms=5, capsize=2)


def _spoken(rows, metrics, methods, along) -> str:
    """The figure's numbers in words, for alt text."""
    parts = [
        f"{word(r.keys['dataset'])}, {methods[r.keys['method']]}, {along} {r.keys[along]}: "
        f"{metrics[r.metric]} {r.ours.estimate:.0f}"
        for r in rows
    ]
    return "Line chart. " + "; ".join(parts) + "."
