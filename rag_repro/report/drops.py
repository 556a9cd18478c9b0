"""What a method loses without a part, in percent of the whole: R²AG's table 3 as printed."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from ..data.titles import word
from ..evaluation.statistics import Interval
from ..study.papers import Paper
from ..study.scores import Results
from ..study.trainings import merged
from . import missing
from .exhibits import beside
from .picture import Note
from .table import Table
from .values import number, within


def table(
    paper: Paper,
    key: str,
    results: Results,
    tiers: Sequence[str],
    metric: str,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a data set and row with a baseline: its drop, and what the paper prints of it.

    Of trainings that both have. A drop below zero is a gain without the part. The paper's stand
    beside ours in each line, whatever its data set.
    """
    exhibit = paper.exhibit(key)
    whole, means = merged(exhibit, results, paper.exhibits.values())
    printed = _printed(paper, key)
    sets = list(dict.fromkeys(dataset for _, dataset in printed))
    body, asked = [], []
    for cell in (c for tier in tiers for c in whole.cells(tier)):
        row = exhibit.methods[cell.keys["method"]]
        base = beside(whole, cell, {"method": row.baseline}) if row.baseline else None
        if base is None:
            continue
        asked += [cell, base]
        drawn = means.percent(cell, base, metric)
        told = [number(printed.get((cell.keys["method"], of)), 2) for of in sets]
        if drawn:
            lost = lost_of(drawn.interval())
            where = [word(cell.keys["dataset"]), word(cell.keys.get("reader", ""))]
            body.append([*where, row.label, within(lost, 1, n=True), *told])
    if not body:
        return missing.note(asked, results, caption)
    head = ["data set", "reader", "method", "drop, % of the whole [95 %], n"]
    return Table([*head, *(f"paper: {word(of)}" for of in sets)], body, caption, name)


def lost_of(percent: Interval) -> Interval:
    """What is lost, of what is left in percent of the whole."""
    return percent.flipped().shifted(100)


def _printed(paper: Paper, key: str) -> dict[tuple[str, str], Decimal]:
    """Method and data set -> the printed drop."""
    return {
        (entry["method"], entry["dataset"]): Decimal(entry["value"])
        for entry in paper.printed(key)
        if entry["metric"] == "drop"
    }
