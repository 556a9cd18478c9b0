"""Two modules apart and together: whether both gain more than the sum of each (ERM4, table 3).

    interaction = (both - first) - (second - none), paired on the same questions

A gain of both that is larger than either proves no synergy: it must be larger than their sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..data.titles import word
from ..evaluation import metrics
from ..study.papers import Cell, Paper
from ..study.scores import Results, Scores, paired
from . import missing
from .picture import Note
from .printed import values
from .table import Table
from .values import within

SQUARES = {
    "all knowledge": ("original_all", "plus", "original_filtered", "full"),
    "no knowledge": ("direct", "rewritten_none", "original_filtered", "full"),
}
"""What both are measured against -> rows with neither, with the first, the second, and both."""


def table(
    cells: Sequence[Cell],
    results: Results,
    measured: Sequence[str],
    caption: str = "",
    name: str = "",
    squares: Mapping[str, Sequence[str]] = SQUARES,
) -> Table | Note:
    """One line a data set, metric and square of rows; gains in points, 95 %, each paired."""
    body, asked = [], []
    for tier, dataset in dict.fromkeys((c.tier, c.keys["dataset"]) for c in cells):
        by = {c.keys["method"]: c for c in cells if (c.tier, c.keys["dataset"]) == (tier, dataset)}
        for said, rows in squares.items():
            if not set(rows) <= set(by):
                continue
            corners = [by[row] for row in rows]
            asked += corners
            for metric in measured:
                sides = [results.scores(cell, metric) for cell in corners]
                if None not in sides:
                    symbol = metrics.get(metric).symbol
                    body.append([word(dataset), symbol, said, *_gains(sides, metric)])
    if not body:
        return missing.note(asked, results, caption)
    head = ["data set", "metric", "over", "rewriting alone", "filter alone", "both"]
    return Table([*head, "more than their sum [95 %], n"], body, caption, name)


def _gains(sides: Sequence[Scores], metric: str) -> list[str]:
    """Of the first, of the second, of both, and the interaction."""
    none, first, second, both = sides
    told = [
        within(drawn and drawn.interval(), 1, "+")
        for drawn in (paired([(one, none)], metric) for one in (first, second, both))
    ]
    drawn = paired([(both, first, second, none)], metric)
    return [*told, within(drawn and drawn.interval(), 1, "+", n=True)]


def printed(
    paper: Paper,
    key: str,
    measured: Sequence[str],
    questions: int,
    name: str = "",
    squares: Mapping[str, Sequence[str]] = SQUARES,
) -> Table:
    """The same sums over the printed values; questions: of how many they are shares.

    The last column says an interaction in questions, for metrics that count them.
    """
    body = []
    for metric in measured:
        held = values(paper, key, metric=metric)
        for dataset in dict.fromkeys(place[0] for place in held):
            for said, rows in squares.items():
                none, first, second, both = (held[dataset, row, metric] for row in rows)
                more = both - first - second + none
                gains = [first - none, second - none, both - none, more]
                count = f"{more * questions / 100:+.0f}" if metric == "hit" else ""
                symbol = metrics.get(metric).symbol
                body.append([word(dataset), symbol, said, *(f"{g:+.2f}" for g in gains), count])
    head = ["data set", "metric", "over", "rewriting alone", "filter alone", "both"]
    head += ["more than their sum", f"questions of {questions}"]
    return Table(head, body, "Printed: each module alone, and both", name)
