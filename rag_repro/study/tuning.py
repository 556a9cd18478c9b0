"""Adaptive Retrieval's threshold, tuned on records of questions that are not tested on.

What stands for an entity's popularity: on the testbed the views that the world itself gives;
PopQA's page views (`meta["s_pop"]`) where a data set has them; elsewhere "mentions", how many
passages of the pooled corpus name the question's rarest name, which the row `mentions` of
the exhibit has counted (a search for each name, no reader).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import data
from ..methods.baselines.adaptive_retrieval import META, best_threshold
from . import papers
from .exhibits import Cell
from .scores import Results
from .strict import StudyError

WITHOUT, WITH, COUNTED = "A", "B", "mentions"
"""The exhibit's rows: no retrieval, one search, the counting of mentions."""


@dataclass(frozen=True)
class Tuned:
    """A threshold and what it rests on: n questions, the share of them that would search,
    and mean scores (0 to 1) without passages, with them, and as the threshold decides."""

    threshold: float
    n: int
    searched: float
    without: float
    given: float
    adaptive: float

    def __str__(self) -> str:
        return (
            f"threshold {self.threshold:g} on {self.n} questions: {100 * self.searched:.1f} % "
            f"search; {100 * self.adaptive:.1f} right, {100 * self.without:.1f} without passages, "
            f"{100 * self.given:.1f} always with them"
        )


def threshold(
    exhibit: str,
    popularity: str,
    datasets: Sequence[str],
    results: Path,
    *,
    metric: str = "em",
    data_dir: Path | None = None,
) -> Tuned:
    """The threshold under which these data sets' questions would have scored best in all.

    exhibit: with rows A and B, and `mentions` for that popularity. Raises StudyError for test
    questions, for records that are not there (with the command that makes them), and for
    questions of which nobody knows the popularity.
    """
    found = Results(results)
    values: list[float] = []
    without: list[float] = []
    given: list[float] = []
    for dataset in datasets:
        lines = {row: _lines(exhibit, dataset, row, found) for row in (WITHOUT, WITH)}
        known = _popularities(exhibit, dataset, popularity, found, data_dir)
        if lines[WITHOUT].keys() != lines[WITH].keys() or lines[WITH].keys() - known.keys():
            raise StudyError(
                f"{exhibit}, {dataset}: its rows are not of the same questions; finish them: "
                f"rag-repro run {exhibit} --dataset {dataset}"
            )
        for name, line in lines[WITH].items():
            values.append(known[name])
            without.append(lines[WITHOUT][name]["scores"][metric])
            given.append(line["scores"][metric])
    best = best_threshold(values, without, given)
    search = [value < best for value in values]
    n = len(values)
    chosen = [b if s else a for a, b, s in zip(without, given, search, strict=True)]
    return Tuned(best, n, sum(search) / n, sum(without) / n, sum(given) / n, sum(chosen) / n)


def _popularities(
    exhibit: str, dataset: str, popularity: str, found: Results, data_dir: Path | None
) -> Mapping[str, float]:
    if popularity == COUNTED:
        lines = _lines(exhibit, dataset, COUNTED, found)
        return {name: line["decided"][0] for name, line in lines.items()}
    if popularity not in META:
        known = ", ".join((*META, COUNTED))
        raise StudyError(f"popularity {popularity!r} cannot be tuned; it is one of: {known}")
    split = _cell(exhibit, dataset, WITH).condition.split
    key = META[popularity]
    asked = data.load(dataset, data_dir=data_dir, split=split).questions
    unknown = next((q.id for q in asked if q.meta.get(key) is None), None)
    if unknown is not None:
        raise StudyError(f"{dataset}: question {unknown!r} has no {key!r}; popularity: {COUNTED}")
    return {q.id: float(q.meta[key]) for q in asked}


def _cell(exhibit: str, dataset: str, row: str) -> Cell:
    _, made = papers.exhibit(exhibit)
    fits = [c for c in made.cells() if c.matches({"dataset": dataset, "method": row})]
    if len(fits) != 1:
        raise StudyError(f"{exhibit} has {len(fits)} conditions of row {row} on {dataset}, not one")
    if fits[0].condition.split == "test":
        raise StudyError(f"{exhibit}, {dataset}: nothing is tuned on test questions")
    return fits[0]


def _lines(exhibit: str, dataset: str, row: str, found: Results) -> dict[str, Mapping[str, Any]]:
    lines = found.lines(_cell(exhibit, dataset, row))
    if not lines:
        raise StudyError(
            f"no records of {exhibit}, {dataset}, row {row}; make them first: "
            f"rag-repro run {exhibit} --dataset {dataset} --method {row}"
        )
    return {line["id"]: line for line in lines}
