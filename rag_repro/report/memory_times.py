"""Time with a memory and without, out of timed records: along τ, and by the search's latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..data.titles import word
from ..evaluation.statistics import Interval
from ..study.names import known_retrievers
from ..study.papers import Cell, Exhibit
from ..study.scores import Results, resampled
from . import missing
from .figures import MARKERS, STYLES, across, bars, legend_of_labels, plots
from .memory import row_named
from .picture import Download, Note, Picture
from .table import Table
from .values import number, within

PARTS = {
    "seconds_reader": "models",
    "seconds_retriever": "search",
    "seconds_memory": "memory",
    "seconds_encoder": "encoder",
}


def table(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    printed: Mapping[tuple[str, ...], float],
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a timed cell: seconds, of which where, searches and items; the paper's seconds.

    The median beside the mean: an answer that the machine held up moves the mean alone.
    printed: as `printed.values` gives table 2.
    """
    paper = _seconds(printed)
    body = []
    for cell in cells:
        seconds = results.scores(cell, "seconds")
        if seconds is None:
            continue
        counts = [*PARTS, "searches", "fetched", "memory_items", "irrelevant"]
        means = [results.scores(cell, metric) for metric in counts]
        theirs = paper.get(cell.keys.get("tau"))
        body.append(
            [
                word(cell.keys["dataset"]),
                row_named(exhibit, cell),
                within(resampled(seconds, "seconds").interval(), n=True),
                number(float(np.median(seconds.values))),
                *("" if m is None else number(float(m.values.mean())) for m in means),
                "" if theirs is None else number(theirs),
            ]
        )
    if not body:
        return missing.note_of_cells(cells, caption)
    head = ["data set", "row", "seconds [95 %], n", "median", *PARTS.values()]
    head += ["searches", "external"]
    head += ["memory items", "irrelevant", "the paper's seconds"]
    return Table(head, body, caption, name, Download.of(name, head, body))


def _seconds(printed: Mapping[tuple[str, ...], float]) -> dict[float, float]:
    """τ -> the paper's seconds."""
    return {float(tau): v for (*_, tau, metric), v in printed.items() if metric == "seconds"}


def way(changes: Sequence[float]) -> str:
    """Whether steps go one way alone."""
    if all(change >= 0 for change in changes):
        return "never falls"
    return "never rises" if all(change <= 0 for change in changes) else "up and down"


# ------------------------------------------------------------------------- latency


def latency(cell: Cell) -> float:
    """Seconds that the cell's search service waits before each answer."""
    return float(known_retrievers().get(cell.condition.retriever, {}).get("latency", 0.0))


def kind(cell: Cell) -> str:
    """Which line of the figure: the row's name without its latency."""
    return cell.keys["method"].partition("_")[0]


def by_latency(
    cells: Sequence[Cell],
    results: Results,
    words: Mapping[str, str],
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """Seconds a question along the latency of a search; words: of each `kind`.

    Dotted: what the searches that were counted at no latency would add, at so much each.
    """
    held: dict[str, list[tuple[float, Interval]]] = {}
    counted: dict[str, tuple[float, float]] = {}
    for cell in sorted(cells, key=latency):
        seconds, searches = (results.scores(cell, m) for m in ("seconds", "searches"))
        if seconds is None:
            continue
        one = kind(cell)
        held.setdefault(one, []).append((latency(cell), resampled(seconds, "seconds").interval()))
        if latency(cell) == 0 and searches is not None:
            counted[one] = (float(seconds.values.mean()), float(searches.values.mean()))
    if not held:
        return missing.note_of_cells(cells, caption)
    plt, colours = plots()
    figure, axis = plt.subplots(figsize=(across(), 3.4), layout="constrained")
    spoken, rows = [], []
    for i, (one, points) in enumerate(held.items()):
        x, spans = zip(*points, strict=True)
        y = [span.estimate for span in spans]
        label = words.get(one, one)
        look = {"color": colours[i], "marker": MARKERS[i], "ms": 5, "capsize": 2}
        axis.errorbar(x, y, yerr=bars(spans), label=label, **look)
        if one in counted:
            begin, searches = counted[one]
            ends = [0.0, max(x)]
            added = [begin + searches * wait for wait in ends]
            axis.plot(ends, added, color=colours[i], ls=STYLES[2], lw=1.2)
            spoken.append(f"{label}, by its searches: {added[-1]:.2f} s at {max(x):g}")
        told = ", ".join(f"{span.estimate:.2f} s at {wait:g}" for wait, span in points)
        spoken.append(f"{label}: {told}")
        rows += [
            [label, t, *(number(v, 3) for v in (s.estimate, s.lo, s.hi)), s.n] for t, s in points
        ]
    axis.set_xlabel("latency of a search, s")
    axis.set_ylabel("seconds a question")
    axis.set_ylim(bottom=0)
    legend_of_labels(figure)
    head = ["row", "latency", "seconds", "lo", "hi", "n"]
    alt = "Line chart. " + "; ".join(spoken) + "."
    return Picture(figure, alt, caption, name, Download.of(name, head, rows))
