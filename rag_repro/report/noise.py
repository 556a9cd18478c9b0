"""A filter's gain by how much of what was found is of use: its robustness, as found (erm4.c41).

As found, not as given: questions for which little of use is found may be harder, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..data.titles import word
from ..study.papers import Cell, Exhibit
from ..study.scores import Results
from . import missing
from .exhibits import with_baselines
from .picture import Note
from .places import gain_of
from .table import Table

Line = Mapping[str, Any]
GROUPS: Mapping[str, Callable[[int], bool]] = {
    "in none": lambda n: n == 0,
    "in one": lambda n: n == 1,
    "in two or more": lambda n: n > 1,
}
"""In how many of the passages that the unfiltered row reads an accepted answer stands."""


def holding(line: Line) -> int | None:
    """Passages in which an answer stands; None where nobody knows."""
    held = line.get("held")
    return None if held is None else len({rank for ranks in held for rank in ranks})


def gains(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    metric: str,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a cell with a baseline: what it gains where answers stand in so many passages.

    By the baseline's passages; paired on the same questions, in points, 95 %.
    """
    body, asked = [], []
    for cell, base, against in with_baselines(exhibit, cells):
        asked += [cell, base]
        number = {line["id"]: holding(line) for line in results.lines(base) or ()}
        told = []
        for fits in GROUPS.values():
            ids = {one for one, n in number.items() if n is not None and fits(n)}
            told.append(gain_of(cell, base, metric, results, lambda x, ids=ids: x["id"] in ids))
        if any(told):
            body.append([word(cell.keys["dataset"]), against, *told])
    if not body:
        return missing.note(asked, results, caption)
    head = ["data set", "rows", *(f"answer {said} [95 %], n" for said in GROUPS)]
    return Table(head, body, caption, name)
