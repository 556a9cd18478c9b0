"""Several trainings of one recipe as one cell: each question's mean over them.

A cell of an exhibit is one training (`seed`). A page, and a claim, ask what the recipe does:
that is the mean over its trainings, and their spread is in its interval (`scores.resampled`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .exhibits import Cell, Exhibit
from .scores import Keep, Results, Scores, everything


def merged(exhibit: Exhibit, results: Results) -> tuple[Exhibit, Results]:
    """The exhibit with one cell for all trainings of a row, and records that score so."""
    whole = exhibit.whole
    return whole, results if whole is exhibit else Means(results, exhibit)


class Means(Results):
    """Records in which a cell without a seed scores as its trainings do on average.

    What its answers say, other than scores, is what the first training's say.
    """

    def __init__(self, results: Results, exhibit: Exhibit):
        self._results = results
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

    def count(self, cell: Cell) -> int:
        """How many trainings those are; 0 of what is not trained."""
        return sum("seed" in one.keys for one in self.trainings(cell))

    def lines(self, cell: Cell) -> tuple[Mapping[str, Any], ...] | None:
        held = self.trainings(cell)
        return self._results.lines(held[0]) if held else None

    def scores(self, cell: Cell, metric: str, keep: Keep = everything) -> Scores | None:
        """Of the questions that every training has."""
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


def place(tier: str, keys: Mapping[str, Any]) -> tuple:
    """What the trainings of a row have in common."""
    return tier, *sorted((k, repr(v)) for k, v in keys.items() if k != "seed")
