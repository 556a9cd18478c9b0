"""Several trainings of one recipe as one cell: each question's mean over them.

A page, and a claim, ask what the recipe does, and not one training (`seed`); their spread is in the
interval (`scores.resampled`). Rows that have one training in common borrow it
(`between_training_sd`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rag_repro.evaluation.resampling import unit_sums
from rag_repro.study.exhibits import Cell, Exhibit
from rag_repro.study.scores import Keep, Only, Results, Scores, concatenated, everything


def merged(
    exhibit: Exhibit, results: Results, family: Iterable[Exhibit] = ()
) -> tuple[Exhibit, Results]:
    """The exhibit with one cell for all trainings of a row, and records that score so.

    family: the paper's exhibits, from whose rows with several trainings those with one borrow
    how far trainings lie apart; none: the exhibit alone.
    """
    whole = exhibit.whole
    return whole, results if whole is exhibit else Means(results, exhibit, family)


class Means(Results):
    """Records in which a cell without a seed scores as its trainings do on average.

    What its answers say, other than scores, is what the first training's say.
    """

    def __init__(self, results: Results, exhibit: Exhibit, family: Iterable[Exhibit] = ()):
        self._results = results
        self._family = tuple(family) or (exhibit,)
        self._trainings: dict[tuple, list[Cell]] = {}
        for cell in exhibit.cells():
            self._trainings.setdefault(place(cell.tier, cell.keys), []).append(cell)

    @property
    def folder(self) -> Path:
        return self._results.folder

    def trainings(self, cell: Cell) -> list[Cell]:
        """The cell's trainings that have records, as many answers as the one that has most.

        One that was stopped half-way would leave few questions for all.
        """
        cells = self._trainings.get(place(cell.tier, cell.keys), [cell])
        held = {i: len(self._results.lines(one) or ()) for i, one in enumerate(cells)}
        most = max(held.values())
        return [cells[i] for i, answers in held.items() if answers == most > 0]

    def platforms(self, cell: Cell) -> list[frozenset[str]]:
        cells = self._trainings.get(place(cell.tier, cell.keys), [cell])
        return [self._results.platforms(c)[0] for c in cells if self._results.lines(c) is not None]

    def on(self, platform: str) -> Means:
        made = copy(self)
        made._platform, made._results = platform, self._results.on(platform)
        return made

    def count(self, cell: Cell) -> int:
        """How many trainings those are; 0 of what is not trained."""
        return sum("seed" in one.keys for one in self.trainings(cell))

    def lines(self, cell: Cell) -> tuple[Mapping[str, Any], ...] | None:
        held = self.trainings(cell)
        return self._results.lines(held[0]) if held else None

    def scores(self, cell: Cell, metric: str, keep: Keep = everything) -> Scores | None:
        """Of the questions that every training has."""
        held = self._merged(cell, metric, keep)
        if held is None or not held.by_training:
            return held
        return replace(held, recipe=_recipe(cell), training_sd=self._training_sd(metric))

    def _merged(self, cell: Cell, metric: str, keep: Keep = everything) -> Scores | None:
        found = {
            one.keys.get("seed"): scores
            for one in self.trainings(cell)
            if (scores := self._results.scores(one, metric, keep))
        }
        if not found or None in found:  # nothing, or what is not trained
            return found.get(None)
        first, *others = found.values()
        ids = [name for name in first.ids if all(name in other.ids for other in others)]
        if not ids:
            return None
        each = {seed: scores.at(ids).values for seed, scores in found.items()}
        return replace(first.at(ids), values=np.mean([*each.values()], axis=0), by_training=each)

    def _training_sd(self, metric: str) -> float | None:
        """`between_training_sd` of the family's rows, reckoned once for these records."""
        base = self._results.base
        known = base.training_spreads
        asked = (*(exhibit.name for exhibit in self._family), metric)
        if asked not in known:
            rows = {}
            for exhibit in self._family:
                if metric in exhibit.metrics:
                    own = Means(base, exhibit)
                    for cell in exhibit.whole.cells():
                        if own.count(cell) > 1:
                            answers = tuple(one.condition.hash for one in own.trainings(cell))
                            rows[answers] = own, cell
            found = [own._merged(cell, metric) for own, cell in rows.values()]
            known[asked] = between_training_sd(scores for scores in found if scores is not None)
        return known[asked]


class Pooled(Results):
    """Records in which a cell scores as the same cell of several data sets, together.

    ids: the questions that count.
    """

    def __init__(
        self, results: Results, exhibit: Exhibit, datasets: Sequence[str], ids: Collection[str]
    ):
        self.folder, self._results = results.folder, results
        self._exhibit, self._datasets, self._ids = exhibit, datasets, frozenset(ids)

    def _cells(self, cell: Cell) -> list[Cell]:
        wanted = [{**cell.keys, "dataset": name} for name in self._datasets]
        return [one for one in self._exhibit.cells(cell.tier) if one.keys in wanted]

    def lines(self, cell: Cell) -> tuple[Mapping[str, Any], ...] | None:
        of_all = [line for one in self._cells(cell) for line in self._results.lines(one) or ()]
        return tuple(line for line in of_all if line["id"] in self._ids) or None

    def scores(self, cell: Cell, metric: str, keep: Keep = everything) -> Scores | None:
        def kept(line: Mapping[str, Any]) -> bool:
            return line["id"] in self._ids and keep(line)

        where = Only(ids=self._ids) if keep is everything else kept
        parts = [self._results.scores(one, metric, where) for one in self._cells(cell)]
        return concatenated([part for part in parts if part is not None])


def _recipe(cell: Cell) -> str:
    """What the cell's trainings are of: the reader of the first, but for the seed behind it."""
    seed = cell.keys.get("seed")
    return (cell.condition.reader or "").removesuffix(f"-{seed}" if seed else "")


def between_training_sd(rows: Iterable[Scores]) -> float | None:
    """Standard deviation of a training's own mean, beyond what its questions make of it.

    rows: of several trainings each, a data set at a time. By moments: the variance of a row's
    means, less what training and question together leave in a mean (its clusters are the
    units), pooled by degrees of freedom, and not below zero; None without a row.

    What borrows it assumes that the trainings of one recipe scatter as those of another, on one
    data set as on another, and takes the estimate as if it were known.
    """
    total, known = 0.0, 0
    for scores in rows:
        values = np.stack([*scores.by_training.values()])
        free, means = len(values) - 1, values.mean(1)
        left = values - values.mean(0) - means[:, None] + values.mean()
        sums, sizes = unit_sums(left, scores.clusters)
        units = len(sizes)
        if free < 1 or units < 2:
            continue
        noise = (sums**2).sum() / free / values.shape[1] ** 2 * units / (units - 1)
        total += free * (float(means.var(ddof=1)) - float(noise))
        known += free
    return max(total / known, 0.0) ** 0.5 if known else None


def place(tier: str, keys: Mapping[str, Any]) -> tuple:
    """What the trainings of a row have in common."""
    return tier, *sorted((k, repr(v)) for k, v in keys.items() if k != "seed")
