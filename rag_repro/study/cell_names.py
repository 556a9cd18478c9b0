"""What an exhibit's cells are called in a verdict's reasons."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..data.titles import word
from .papers import Cell, Exhibit


def full(exhibit: Exhibit, cell: Cell) -> str:
    """As "MuSiQue, QDC, k = 4": its data set, its row and its settings, in a reader's words."""
    return _told(exhibit, cell, cell.keys)


def apart(exhibit: Exhibit, cells: Sequence[Cell]) -> list[str]:
    """Names of cells that stand side by side: the data set, and of the rest what tells them apart.

    One cell alone has its full name.
    """
    if len(cells) == 1:
        return [full(exhibit, cells[0])]
    keys = {key for cell in cells for key in cell.keys}
    varied = {k for k in keys if any(c.keys.get(k) != cells[0].keys.get(k) for c in cells)}
    return [_told(exhibit, cell, {"dataset", *varied}) for cell in cells]


def _told(exhibit: Exhibit, cell: Cell, keys: Collection[str]) -> str:
    row = [exhibit.methods[cell.keys["method"]].label] if "method" in keys else []
    settings = [
        f"{key.replace('_', ' ')} = {word(str(value))}"
        for key, value in cell.keys.items()
        if key in keys and key not in ("dataset", "method") and value is not False
    ]
    return ", ".join([word(cell.keys["dataset"]), *row, *settings])
