"""A method's gain by where the gold passages stand among those that are read (r2ag.c26)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data.titles import word
from ..study.papers import Cell, Exhibit
from ..study.scores import Results
from . import missing
from .exhibits import with_baselines
from .picture import Note
from .table import Table
from .values import within


def first(line: Mapping[str, Any]) -> bool:
    """Whether the best passage is gold."""
    return any(rank == 1 for _, _, rank in line.get("gold", ()))


def later(line: Mapping[str, Any]) -> bool:
    """Whether gold passages were read, and none of them first."""
    ranks = [rank for _, _, rank in line.get("gold", ()) if rank is not None]
    return bool(ranks) and 1 not in ranks


def gains(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    metric: str,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a cell with a baseline: its gain where gold is first, and where it is not.

    As ranked, not as placed: where gold is not first, questions may be harder too.
    """
    body, asked = [], []
    for cell, base, against in with_baselines(exhibit, cells):
        asked += [cell, base]
        told = [gain_of(cell, base, metric, results, keep) for keep in (first, later)]
        if any(told):
            body.append([word(cell.keys["dataset"]), against, *told])
    if not body:
        return missing.note(asked, results, caption)
    head = ["data set", "methods", "gold first [95 %], n", "gold later"]
    return Table(head, body, caption, name)


def gain_of(cell: Cell, base: Cell, metric: str, results: Results, keep) -> str:
    """The cell's gain over its baseline on the questions whose lines are kept; "" without any."""
    drawn = results.gain(cell, base, metric, keep)
    return within(drawn and drawn.interval(), 1, "+", n=True)
