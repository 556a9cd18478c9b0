"""Do gains add up, and does the best of several stay the best? Both a question at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..evaluation import metrics
from ..evaluation.power import mde_of
from ..study.papers import Cell, Exhibit
from ..study.scores import Results, Scores, paired
from . import missing
from .picture import Note
from .table import Table
from .values import number, within


def sums(
    alone: Exhibit,
    together: Exhibit,
    results: Results,
    names: Mapping[str, str],
    bare: str,
    metric: str,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """A line a pair: what each brings, what both bring, and what they bring beyond the sum.

    names: a factor, a row of `alone`, in words; a pair is a row of `together`, as "erm4_drrag".
    bare: the row of `alone` without any. On the questions that all four have answered.
    """
    body = []
    by = {(c.tier, c.keys["dataset"], c.keys["method"]): c for c in alone.cells()}
    for cell in together.cells():
        a, _, b = cell.keys["method"].partition("_")
        if a not in names or b not in names:
            continue
        place = cell.tier, cell.keys["dataset"]
        cells = [cell, *(by.get((*place, method)) for method in (a, b, bare))]
        scores = [cell and results.scores(cell, metric) for cell in cells]
        if None in scores or not (same := set.intersection(*(set(s.ids) for s in scores))):
            continue
        both, first, second, none = (_only(side, same) for side in scores)
        gains = [paired([(side, none)], metric).interval() for side in (first, second, both)]
        beyond = paired([(both, first, second, none)], metric).interval()
        body.append(
            [
                f"{names[a]} and {names[b]}",
                *(within(gain, 1, "+") for gain in gains),
                within(beyond, 1, "+"),
                number(mde_of(beyond), 1),
                len(same),
            ]
        )
    if not body:
        return missing.note(together.cells(), results, caption)
    symbol = metrics.get(metric).symbol
    head = [
        *("pair", f"{symbol}: the first alone", "the second alone", "both"),
        *("beyond the sum [95 %]", "detectable", "n"),
    ]
    return Table(head, body, caption, name)


def _only(scores: Scores, ids: Collection[str]) -> Scores:
    return scores.at([one for one in scores.ids if one in ids])


def sides(exhibit: Exhibit, method: str, base: str) -> tuple[Cell, Cell]:
    """The exhibit's first cell of either row."""
    first: dict[str, Cell] = {}
    for cell in exhibit.cells():
        first.setdefault(cell.keys["method"], cell)
    return first[method], first[base]
