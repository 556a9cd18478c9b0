"""R²AG's figure 3: scores as passages are added, from the gold ones alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from ..study.papers import Exhibit
from ..study.scores import Results
from .exhibits import Row

ALONG = "passages"


def by_passages(
    exhibit: Exhibit, results: Results, rows: Sequence[Row], alone: Mapping[str, str]
) -> list[Row]:
    """The rows with the number of passages as key `passages`, as `figures.against_k` draws them.

    alone: data set of gold passages alone -> the one with others added, whose questions are
    the same; it stands at its mean number of passages. Others stand at their k.
    """
    n_gold = {name: gold(exhibit, results, name) for name in alone}
    made = []
    for row in rows:
        dataset = row.keys["dataset"]
        passages = n_gold.get(dataset, row.keys.get("k"))
        if passages is not None:
            keys = {**row.keys, "dataset": alone.get(dataset, dataset), ALONG: passages}
            made.append(replace(row, keys=keys))
    return made


def gold(exhibit: Exhibit, results: Results, dataset: str) -> float | None:
    """Mean number of gold passages of the questions recorded there; None: there are none."""
    for cell in exhibit.cells():
        if cell.keys["dataset"] == dataset and (lines := results.lines(cell)):
            return round(fmean(len(line["gold"]) for line in lines), 2)
    return None
