"""Do gains add up, and does the best of several stay the best? Both a question at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ..data.titles import word
from ..evaluation import metrics
from ..evaluation.power import mde_of
from ..evaluation.statistics import Resampled, combine
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


def confirmed(
    cells: Sequence[tuple[Cell, Cell]],
    results: Results,
    chosen_by: int,
    metric: str,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """What a combination gains where it was chosen, and on questions that did not choose it.

    cells: of each data set the combination and what it is compared with, the first that of the
    choice, made by its first questions. The last line is what the choice itself had brought.
    """
    sides = [tuple(results.scores(cell, metric) for cell in pair) for pair in cells]
    if any(None in pair for pair in sides):
        return missing.note([cell for pair in cells for cell in pair], results, caption)
    (ours, theirs), *others = sides
    first = set(ours.ids[:chosen_by])
    rest = set(ours.ids) - first
    parts = [("the questions that chose it", [(ours, theirs, first)])]
    fresh = [(ours, theirs, rest)] if rest else []
    if rest:
        parts.append((f"{word(cells[0][0].keys['dataset'])}, the next", fresh[:]))
    for (cell, _), (more, less) in zip(cells[1:], others, strict=True):
        held = more, less, set(more.ids) & set(less.ids)
        parts.append((word(cell.keys["dataset"]), [held]))
        fresh.append(held)
    parts.append(("all that did not choose it", fresh))
    drawn = {said: _gain(held, metric) for said, held in parts}
    body = [[said, within(one.interval(), 1, "+", n=True)] for said, one in drawn.items() if one]
    chosen, unchosen = drawn[parts[0][0]], drawn[parts[-1][0]]
    if chosen and unchosen:
        more = combine([chosen, unchosen], [1, -1]).interval()
        body.append(["the first less the last: what choosing did", within(more, 1, "+")])
    return Table(
        ["questions", f"gain in {metrics.get(metric).symbol} [95 %], n"], body, caption, name
    )


def _gain(held: Sequence[tuple[Scores, Scores, Collection[str]]], metric: str) -> Resampled | None:
    """Mean difference over the questions of all these, each counted once."""
    ids, clusters, values = [], [], []
    for more, less, kept in held:
        less_of = less.by_id()
        for one, cluster, value in zip(more.ids, more.clusters, more.values, strict=True):
            if one in kept and one in less_of:
                ids.append(one)
                clusters.append(cluster)
                values.append((value, less_of[one]))
    if not ids:
        return None
    sides = (Scores(tuple(ids), tuple(clusters), side) for side in np.array(values).T)
    return paired([tuple(sides)], metric)
