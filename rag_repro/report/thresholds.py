"""How far a setting that is chosen by its score flatters that score; and which were shipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..data.titles import word
from ..evaluation import metrics
from ..evaluation.resampling import fresh
from ..study.papers import Cell, Exhibit, Paper
from ..study.scores import Results
from . import arithmetic, missing
from .picture import Note
from .table import Table
from .values import number

CHOSEN = ("threshold", "window", "doubt")
"""Settings that are chosen by the score, as cells vary them."""
SPLITS = 1000


@dataclass(frozen=True, eq=False)
class Swept:
    """One row on one data set at several values of a setting.

    values: the setting's. scores, costs: (values, questions), in the metrics' units.
    units: of each question what is never parted.
    """

    values: tuple[float, ...]
    scores: np.ndarray
    costs: np.ndarray
    units: tuple[str, ...]

    def best(self, asked: np.ndarray) -> int:
        """Of these questions (a mask) the best value's place; of equal ones the cheapest."""
        scores, costs = (part[:, asked].mean(1).round(9) for part in (self.scores, self.costs))
        return int(np.lexsort((costs, -scores))[0])


@dataclass(frozen=True, eq=False)
class Halves:
    """Of every split: the chosen value's place, its score on its own half and on the other."""

    chosen: np.ndarray
    own: np.ndarray
    other: np.ndarray


def halved(swept: Swept, splits: int = SPLITS) -> Halves | None:
    """The value chosen on one half of the units, scored on both halves; None: one unit alone."""
    rng = fresh()
    names, unit = np.unique(swept.units, return_inverse=True)
    if len(names) < 2:
        return None
    chosen, own, other = [], [], []
    for _ in range(splits):
        first = np.isin(unit, rng.permutation(len(names))[: len(names) // 2])
        place = swept.best(first)
        chosen.append(place)
        own.append(swept.scores[place, first].mean())
        other.append(swept.scores[place, ~first].mean())
    return Halves(*map(np.array, (chosen, own, other)))


def optimism(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    *,
    metric: str = "em",
    cost: str = "retrievals",
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a row and data set: what choosing on the questions that are scored is worth.

    By chance halves, 1,000 times: the value with the best metric on one half (of equal ones
    the lowest cost) is scored there and on the other half. The difference is the optimism; in
    brackets where 95 % of the splits lie, which is no interval of its mean.
    """
    body = []
    for (dataset, method, along), swept in _swept(cells, results, metric, cost).items():
        halves = halved(swept)
        if halves is None:
            continue
        often = Counter(swept.values[place] for place in halves.chosen)
        every = np.ones(swept.scores.shape[1], dtype=bool)
        gap = halves.own - halves.other
        low, high = np.quantile(gap, [0.025, 0.975])
        body.append(
            [
                word(dataset),
                f"{exhibit.methods[method].label}: {along}",
                ", ".join(f"{value:g} ({n / SPLITS:.0%})" for value, n in often.most_common()),
                f"{swept.values[swept.best(every)]:g}",
                number(halves.own.mean(), 1),
                number(halves.other.mean(), 1),
                f"{gap.mean():+.1f} [{low:+.1f}, {high:+.1f}]",
                int(every.sum()),
            ]
        )
    if not body:
        return missing.note(list(cells), results, caption)
    symbol = metrics.get(metric).symbol
    head = ["data set", "setting", "chosen on one half", "on all", f"{symbol} on its own half"]
    head += ["on the other half", "optimism, points", "questions"]
    return Table(head, body, caption, name)


def _swept(
    cells: Sequence[Cell], results: Results, metric: str, cost: str
) -> dict[tuple[str, str, str], Swept]:
    """(data set, method, setting) -> what its cells' records hold, of two values or more."""
    groups: dict[tuple[str, str, str], dict[float, Cell]] = {}
    for cell in cells:
        along = next((key for key in CHOSEN if key in cell.keys), None)
        if along and results.lines(cell):
            place = (cell.keys["dataset"], cell.keys["method"], along)
            groups.setdefault(place, {})[cell.keys[along]] = cell
    made = {}
    for place, by_value in groups.items():
        told = {value: _told(results, cell, metric, cost) for value, cell in by_value.items()}
        ids = list(set.intersection(*(set(lines) for lines in told.values())))
        if len(told) > 1 and ids:
            ids.sort()
            columns = np.array([[told[v][name][:2] for name in ids] for v in told])
            units = tuple(next(iter(told.values()))[name][2] for name in ids)
            made[place] = Swept(tuple(told), columns[..., 0], columns[..., 1], units)
    return made


def _told(
    results: Results, cell: Cell, metric: str, cost: str
) -> Mapping[str, tuple[float, float, str]]:
    """Question -> score, cost and cluster, where both are known."""
    score, spent = (results.scores(cell, name) for name in (metric, cost))
    if score is None or spent is None:
        return {}
    costs = spent.by_id()
    rows = zip(score.ids, score.values, score.clusters, strict=True)
    return {name: (value, costs[name], unit) for name, value, unit in rows if name in costs}


def shipped(paper: Paper, caption: str = "", name: str = "") -> Table:
    """The paper's thresholds (table 9) beside those of its code's configurations.

    One line a reader and data set, and one that counts how many are the printed ones.
    """
    printed = {
        (entry["reader"], entry["dataset"]): entry["value"]
        for entry in arithmetic.pick(paper.printed("table9"), metric="threshold")
    }
    held: dict[str, dict[tuple[str, str], str]] = {}
    for entry in paper.printed("configurations"):
        state = held.setdefault(entry["state"], {})
        state[entry["reader"], entry["dataset"]] = entry["value"]
    body = [
        [reader, word(dataset), value, *(state[reader, dataset] for state in held.values())]
        for (reader, dataset), value in printed.items()
    ]
    same = [
        sum(float(state[place]) == float(value) for place, value in printed.items())
        for state in held.values()
    ]
    body.append(["as printed", "", "", *(f"{n} of {len(printed)}" for n in same)])
    return Table(["reader", "data set", "the paper", *held], body, caption, name)
