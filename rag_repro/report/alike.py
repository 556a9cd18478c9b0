"""Records of the same questions only, for pages that set means of several methods side by side.

A difference is paired, so that its two sides share their questions whatever their number. A
point in a figure is a mean alone: of 60 questions it does not stand beside one of 200.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..data.titles import word
from ..study.papers import Cell
from ..study.scores import Results
from .exhibits import Row


class Alike(Results):
    """Records of which only those questions are left that all of `cells` have answered.

    By tier and data set; cells without a record do not count, other data sets stay whole.
    """

    def __init__(self, results: Results, cells: Iterable[Cell]):
        self.folder, self._results = results.folder, results
        self._ids: dict[tuple[str, str], set[str]] = {}
        for cell in cells:
            if lines := results.lines(cell):
                here, ids = _place(cell), {line["id"] for line in lines}
                self._ids[here] = self._ids.get(here, ids) & ids

    def lines(self, cell: Cell) -> tuple[Mapping[str, Any], ...] | None:
        lines, kept = self._results.lines(cell), self._ids.get(_place(cell))
        if lines is None or kept is None:
            return lines
        return tuple(line for line in lines if line["id"] in kept)


def _place(cell: Cell) -> tuple[str, str]:
    return cell.tier, cell.condition.dataset


def questions(rows: Sequence[Row]) -> str:
    """How many questions those are, in words: "60 of world-B"; nothing where none is recorded."""
    counts = {row.keys["dataset"]: row.ours.n for row in rows if row.ours}
    return ", ".join(f"{n} of {word(dataset)}" for dataset, n in counts.items())
