"""Several trainings of one recipe as one row: each question's mean over them.

What they are together is in `study.trainings`. Here they are a row of a page, and how far
they lie apart, which is what a claim from one training has to be held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..data.titles import word
from ..study.papers import Exhibit, Paper
from ..study.scores import Results, resampled
from ..study.trainings import merged, place
from . import exhibits, missing
from .exhibits import Row
from .picture import Note
from .table import Table
from .values import number, within


def rows(paper: Paper, exhibit: Exhibit, results: Results, tier: str | None = None) -> list[Row]:
    """As `exhibits.rows`, all trainings of a row as one, with their number as key `trainings`."""
    whole, means = merged(exhibit, results, paper.exhibits.values())
    made = exhibits.rows(paper, whole, means, tier)
    if whole is exhibit:
        return made
    counts = {place(cell.tier, cell.keys): means.count(cell) for cell in whole.cells()}
    for i, row in enumerate(made):
        keys = {k: v for k, v in row.keys.items() if k != exhibit.by}
        if count := counts.get(place(row.tier, keys)):
            made[i] = replace(row, keys={**row.keys, "trainings": count})
    return made


def table(
    exhibit: Exhibit,
    results: Results,
    tiers: Sequence[str],
    metric: str,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a data set and row with several trainings: their mean, each, and the range.

    The interval has questions and trainings in it.
    """
    whole, means = merged(exhibit, results)
    several = {
        place(cell.tier, cell.keys)
        for cell in exhibit.cells()
        if cell.tier in tiers and cell.keys.get("seed")
    }
    if not several:
        return Note(
            f"{caption}: not shown, since each row is one training. How far two trainings lie "
            "apart these rows do not tell."
        )
    cells = [c for c in whole.cells() if place(c.tier, c.keys) in several]
    body = []
    for cell in cells:
        scores = means.scores(cell, metric)
        if scores is None:
            continue
        each = [float(values.mean()) for values in scores.by_training.values()]
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
        trainings = [c for c in exhibit.cells() if place(c.tier, c.keys) in several]
        return missing.note(trainings, results, caption)
    head = ["data set", "method", "mean [95 %], n", "each training", "apart"]
    return Table(head, body, caption, name)
