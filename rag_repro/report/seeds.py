"""Several trainings of one recipe as one row: each question's mean over them.

A cell of an exhibit is one training (`seed`). A page asks what the recipe does: it shows
the mean over the trainings, with the interval that the questions give it, and beside it
how far they lie apart, which is what a claim from one training has to be held against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..study.papers import Cell, Exhibit, Paper
from ..study.scores import Keep, Results, Scores, everything, resampled
from . import exhibits, missing
from .exhibits import Row
from .picture import Note
from .tables import Table, word
from .values import number, within


def rows(paper: Paper, exhibit: Exhibit, results: Results, tier: str | None = None) -> list[Row]:
    """As `exhibits.rows`, all trainings of a row as one, with their number as key `trainings`."""
    whole, means = merged(exhibit, results)
    made = exhibits.rows(paper, whole, means, tier)
    if whole is exhibit:
        return made
    counts = {_place(cell.tier, cell.keys): means.count(cell) for cell in whole.cells()}
    for i, row in enumerate(made):
        keys = {k: v for k, v in row.keys.items() if k != exhibit.by}
        if count := counts.get(_place(row.tier, keys)):
            made[i] = replace(row, keys={**row.keys, "trainings": count})
    return made


def merged(exhibit: Exhibit, results: Results) -> tuple[Exhibit, Results]:
    """The exhibit with one cell for all trainings of a row, and records that score so."""
    if not any(grid.seeds for grid in exhibit.grids):
        return exhibit, results
    grids = tuple(replace(grid, seeds=()) for grid in exhibit.grids)
    return replace(exhibit, grids=grids), Means(results, exhibit)


class Means(Results):
    """Records in which a cell without a seed scores as its trainings do on average.

    What its answers say, other than scores, is what the first training's say.
    """

    def __init__(self, results: Results, exhibit: Exhibit):
        self.folder, self._results = results.folder, results
        self._trainings: dict[tuple, list[Cell]] = {}
        for cell in exhibit.cells():
            self._trainings.setdefault(_place(cell.tier, cell.keys), []).append(cell)

    def trainings(self, cell: Cell) -> list[Cell]:
        """The cell's trainings that have records."""
        cells = self._trainings.get(_place(cell.tier, cell.keys), [cell])
        return [one for one in cells if self._results.lines(one)]

    def count(self, cell: Cell) -> int:
        """How many trainings those are; 0 of what is not trained."""
        return sum("seed" in one.keys for one in self.trainings(cell))

    def lines(self, cell: Cell) -> tuple[Mapping[str, Any], ...] | None:
        held = self.trainings(cell)
        return self._results.lines(held[0]) if held else None

    def scores(self, cell: Cell, metric: str, keep: Keep = everything) -> Scores | None:
        """Of the questions that every training has."""
        found = (self._results.scores(one, metric, keep) for one in self.trainings(cell))
        each = [scores for scores in found if scores]
        if len(each) < 2:
            return each[0] if each else None
        first, *others = (s.by_id() for s in each)
        kept = [i for i, name in enumerate(each[0].ids) if all(name in o for o in others)]
        if not kept:
            return None
        ids, clusters = (tuple(part[i] for i in kept) for part in (each[0].ids, each[0].clusters))
        values = np.mean([[one[name] for name in ids] for one in (first, *others)], axis=0)
        return Scores(ids, clusters, values)


def _place(tier: str, keys: Mapping[str, Any]) -> tuple:
    return tier, *sorted((k, repr(v)) for k, v in keys.items() if k != "seed")


def table(
    exhibit: Exhibit,
    results: Results,
    tiers: Sequence[str],
    metric: str,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a data set and row with several trainings: their mean, each, and the range.

    The interval draws questions, not trainings: of three it would say little.
    """
    whole, means = merged(exhibit, results)
    several = {
        _place(cell.tier, cell.keys)
        for cell in exhibit.cells()
        if cell.tier in tiers and cell.keys.get("seed")
    }
    if not several:
        return Note(
            f"{caption}: not shown, since each row is one training. How far two trainings lie "
            "apart is not known, and no interval here has it in it."
        )
    cells = [c for c in whole.cells() if _place(c.tier, c.keys) in several]
    body = []
    for cell in cells:
        scores = means.scores(cell, metric)
        if scores is None:
            continue
        each = [
            float(one.values.mean())
            for training in means.trainings(cell)
            if (one := results.scores(training, metric))
        ]
        settings = [
            f"{k} = {v}"
            for k, v in cell.keys.items()
            if k not in ("dataset", "method", "reader") and len({c.keys.get(k) for c in cells}) > 1
        ]
        body.append(
            [
                ", ".join([word(cell.keys["dataset"]), *settings]),
                exhibit.methods[cell.keys["method"]].label,
                within(resampled(scores, metric).interval(), 1, n=True),
                ", ".join(number(value, 1) for value in each),
                number(max(each) - min(each), 1) if len(each) > 1 else "one training",
            ]
        )
    if not body:
        trainings = [c for c in exhibit.cells() if _place(c.tier, c.keys) in several]
        return missing.note(trainings, results, caption)
    head = ["data set", "method", "mean [95 %], n", "each training", "apart"]
    return Table(head, body, caption, name)
