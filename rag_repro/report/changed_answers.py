"""How many answers an intervention changes, whether they are right or not (r2ag.c32)."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.titles import word
from ..study.papers import Cell, Exhibit
from ..study.scores import Results
from . import missing
from .exhibits import with_baselines
from .picture import Note
from .table import Table
from .values import share_of


def table(
    exhibit: Exhibit, cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Table | Note:
    """One line a cell with a baseline: in how many questions the two write something else.

    Of the questions that both have answered; what is written is compared letter by letter.
    """
    body, asked = [], []
    for cell, base, against in with_baselines(exhibit, cells):
        asked += [cell, base]
        ours, theirs = results.lines(cell), results.lines(base)
        if not ours or not theirs:
            continue
        before = {line["id"]: line["prediction"] for line in theirs if "prediction" in line}
        both = [line for line in ours if line["id"] in before and "prediction" in line]
        other = [line["prediction"] != before[line["id"]] for line in both]
        told = [sum(other), len(both), share_of(other, both)]
        where = [word(cell.keys["dataset"]), word(cell.keys.get("reader", ""))]
        body.append([*where, against, *told])
    if not body:
        return missing.note(asked or cells, results, caption)
    head = ["data set", "reader", "methods", "changed", "questions", "in % [95 %]"]
    return Table(head, body, caption, name)
