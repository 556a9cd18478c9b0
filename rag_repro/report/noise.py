"""A filter's gain by how much of what was found is of use: its robustness, as found (erm4.c41).

As found, not as given: questions for which little of use is found may be harder, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..study.papers import Cell, Exhibit
from ..study.scores import Results, paired
from . import missing
from .exhibits import beside
from .picture import Note
from .tables import Table, word
from .values import within

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
    for cell in cells:
        row = exhibit.methods[cell.keys["method"]]
        base = beside(exhibit, cell, {"method": row.baseline}) if row.baseline else None
        if base is None:
            continue
        asked += [cell, base]
        number = {line["id"]: holding(line) for line in results.lines(base) or ()}
        told = []
        for fits in GROUPS.values():
            ids = {one for one, n in number.items() if n is not None and fits(n)}
            sides = [
                results.scores(c, metric, lambda x, ids=ids: x["id"] in ids) for c in (cell, base)
            ]
            drawn = None if None in sides else paired([tuple(sides)], metric)
            told.append(within(drawn and drawn.interval(), 1, "+", n=True))
        if any(told):
            against = f"{row.label} against {exhibit.methods[row.baseline].label}"
            body.append([word(cell.keys["dataset"]), against, *told])
    if not body:
        return missing.note(asked, results, caption)
    head = ["data set", "rows", *(f"answer {said} [95 %], n" for said in GROUPS)]
    return Table(head, body, caption, name)
