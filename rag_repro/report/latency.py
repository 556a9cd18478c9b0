"""What R²AG adds to an answer's time: in percent of plain RAG's, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.titles import word
from ..evaluation.resampling import fresh
from ..evaluation.statistics import Interval, resample_ratio
from ..evaluation.verdicts import NOT_RUN
from ..study.papers import Cell, Exhibit
from ..study.scores import Results, resampled
from . import missing
from .exhibits import beside
from .figures import MARKERS, STYLES, across, bars, legend_of_labels, plots
from .picture import Note, Picture
from .table import Table
from .values import number, within


@dataclass(frozen=True)
class Added:
    """A timed cell: milliseconds, and its baseline's on the same questions as 100.

    whole: from question to answer; reader: in the reader alone. tokens: prompt tokens that
    were computed. encoding: milliseconds in which texts were encoded. None: not told.
    """

    cell: Cell
    label: str
    seconds: Interval
    whole: Interval | None
    reader: Interval | None
    tokens: float | None
    encoding: float | None


def added(exhibit: Exhibit, cells: Sequence[Cell], results: Results) -> list[Added]:
    """Of each of the cells that is timed."""
    made = []
    for cell in cells:
        row = exhibit.methods[cell.keys["method"]]
        seconds = results.scores(cell, "seconds")
        if seconds is None:
            continue
        base = beside(exhibit, cell, {"method": row.baseline}) if row.baseline else None
        shares = [results.percent(cell, base, metric) for metric in ("seconds", "seconds_reader")]
        sides = [share and share.interval() for share in shares]
        means = [_mean(cell, m, results) for m in ("prefilled_tokens", "seconds_encoder")]
        interval = resampled(seconds, "seconds").interval()
        made.append(Added(cell, row.label, interval, *sides, *means))
    return made


def _mean(cell: Cell, metric: str, results: Results) -> float | None:
    scores = results.scores(cell, metric)
    return None if scores is None else float(scores.values.mean())


def table(
    exhibit: Exhibit, cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Table | Note:
    """One line a timed cell, and which are not; or how to time them."""
    rows = added(exhibit, cells, results)
    if not rows:
        return missing.note_of_cells(cells, caption)
    body = [
        [
            *_of(exhibit, row.cell),
            number(row.tokens, 0),
            within(row.seconds, 3, n=True),
            within(row.whole, 1),
            within(row.reader, 1),
            "" if row.encoding is None else number(1000 * row.encoding, 1),
        ]
        for row in rows
    ]
    timed = [row.cell for row in rows]
    body += [[*_of(exhibit, c), NOT_RUN, *[""] * 4] for c in cells if c not in timed]
    head = ["data set", "k", "method", "prompt tokens computed", "seconds [95 %], n"]
    head += ["in % of the baseline's", "in the reader, %", "encoding, ms"]
    return Table(head, body, caption, name)


def writing(
    exhibit: Exhibit, cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Table | Note:
    """One line a cell of whole answers: milliseconds a step behind the first token.

    What whole answers take in the reader, less what the row "..._first" takes there, by the
    steps behind the first token: all questions' time by all their steps. The token that ends an
    answer, which is no part of it, takes a step as well.
    """
    body = []
    for cell in cells:
        first = beside(exhibit, cell, {"method": f"{cell.keys['method']}_first"})
        spans = [c and results.scores(c, "seconds_reader") for c in (cell, first)]
        tokens = results.scores(cell, "new_tokens")
        if None in spans or tokens is None:
            continue
        ids = [i for i in tokens.ids if all(i in side.ids for side in spans)]
        whole, prompt = (side.at(ids) for side in spans)
        written = tokens.at(ids)
        behind = np.minimum(written.values, cell.condition.configured.max_new_tokens - 1)
        if not behind.any():
            continue
        above = 1000 * (whole.values - prompt.values)
        drawn = resample_ratio(above, behind, rng=fresh(), clusters=written.clusters)
        told = [number(float(written.values.mean()), 1), within(drawn.interval(), 1, n=True)]
        body.append([*_of(exhibit, cell), *told])
    if not body:
        return missing.note_of_cells(cells, caption)
    head = ["data set", "k", "method", "tokens of an answer", "ms a step behind the first token"]
    return Table(head, body, caption, name)


def _of(exhibit: Exhibit, cell: Cell) -> list[Any]:
    label = exhibit.methods[cell.keys["method"]].label
    return [word(cell.keys["dataset"]), cell.keys.get("k", ""), label]


def by_k(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    printed: float,
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """How much longer each row takes than its baseline, in percent, by the number of passages.

    printed: the paper's number, dashed. Solid: all in all; dotted: in the reader alone.
    """
    rows = [row for row in added(exhibit, cells, results) if row.whole and row.reader]
    if not rows:
        return missing.note_of_cells(cells, caption)
    plt, colours = plots()
    figure, axis = plt.subplots(figsize=(across(), 3.4), layout="constrained")
    spoken = []
    for i, label in enumerate(dict.fromkeys(row.label for row in rows)):
        held = sorted((row for row in rows if row.label == label), key=lambda r: r.cell.keys["k"])
        x = [row.cell.keys["k"] for row in held]
        for style, said, of in (
            ("-", "all in all", "whole"),
            (STYLES[2], "in the reader", "reader"),
        ):
            spans = [getattr(row, of) for row in held]
            y = [span.estimate - 100 for span in spans]
            look = {"color": colours[i], "marker": MARKERS[i], "ls": style, "ms": 5, "capsize": 2}
            axis.errorbar(x, y, yerr=bars(spans), label=f"{label}, {said}", **look)
            spoken += [f"{label}, {said}, k {k}: {v:+.1f} %" for k, v in zip(x, y, strict=True)]
    axis.axhline(printed, color="0.5", lw=1, ls="--", label="the paper's number")
    axis.set_xlabel("k")
    axis.set_xticks(sorted({row.cell.keys["k"] for row in rows}))
    axis.set_ylabel("longer than the baseline, %")
    legend_of_labels(figure)
    return Picture(figure, "Added time. " + "; ".join(spoken) + ".", caption, name)
