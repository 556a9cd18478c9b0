"""What a filter says of passages, out of the `filter` of records: confusion, precision, recall.

A record's entry is [passage, label, probability of entailment, what it is, whether an accepted
answer stands in it]; None in the last two where nobody knows. What a passage should be called
depends on the hypothesis:

    weak      entailment: it is gold
    strong    entailment: it is gold, and an accepted answer stands in it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import is_made_here
from ..data.titles import word
from ..evaluation import calibration
from ..evaluation.knowledge_metrics import ENTAILED, GOLD, hypothesis_of
from ..evaluation.resampling import fresh
from ..evaluation.statistics import StatisticsError
from ..methods.erm4.judging import CONTRADICTION, ENTAILMENT, LABELS, NEUTRAL
from ..study.papers import Cell, Exhibit
from ..study.scores import Results
from ..study.services import Workshop
from . import missing
from .picture import Download, Note
from .table import Table
from .values import in_points, number, share_text

Line = Mapping[str, Any]
WITH, STEP = "gold, an answer stands in it", "gold, a step on the way"
NAMESAKE = "another of a gold passage's name"
STRING, OTHER = "not gold, an answer stands in it", "any other"
IS = (WITH, STEP, NAMESAKE, STRING, OTHER)
"""What a judged passage is; of the same name only where the corpus is at hand (worlds)."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """m judged passages of one cell: what each is, its label, probability, and unit to draw by.

    should: whether its hypothesis is true of it. probability: NaN where none was scored.
    """

    passages: tuple[str, ...]
    labels: tuple[str, ...]
    probability: np.ndarray
    should: np.ndarray
    units: tuple[str, ...]

    @property
    def says(self) -> np.ndarray:
        """(m,), whether each was entailed."""
        return np.array([label in ENTAILED for label in self.labels])


def verdicts(cell: Cell, results: Results, workshop: Workshop | None = None) -> Verdicts | None:
    """All judgements of passages of which it is known whether they are gold; None: none.

    workshop: with it passages of a gold one's name are told apart, on worlds.
    """
    hypothesis = getattr(cell.condition.configured, "hypothesis", None)
    named = _namesakes(cell, workshop)
    rows = list(_rows(results.lines(cell) or (), hypothesis, named))
    if not rows:
        return None
    what, labels, probability, should, units = zip(*rows, strict=True)
    told = np.array([np.nan if p is None else p for p in probability], dtype=float)
    return Verdicts(what, labels, told, np.array(should, dtype=bool), units)


def _rows(
    lines: Sequence[Line], hypothesis: str | None, named: Callable[[str, str], bool]
) -> Iterator[tuple[str, str, float | None, bool, str]]:
    for line in lines:
        strong = hypothesis_of(hypothesis, line.get("hops")) == "strong"
        for passage, label, probability, kind, holds in line.get("filter", ()):
            if kind is None:
                continue
            gold = kind in GOLD
            what = (WITH if holds else STEP) if gold else (STRING if kind == "answer" else OTHER)
            if not gold and named(line["id"], passage):
                what = NAMESAKE
            should = gold and (bool(holds) or not strong)
            yield what, label, probability, should, line["cluster"]


def _namesakes(cell: Cell, workshop: Workshop | None) -> Callable[[str, str], bool]:
    """(question, passage) -> whether it bears the name of one of the question's gold passages."""
    condition = cell.condition
    if workshop is None or not is_made_here(condition.dataset):
        return lambda question, passage: False
    from ..training.filtering import namesake

    dataset = workshop.dataset(condition.dataset, condition.split)
    by_id = dataset.corpus.by_id

    def named(question: str, passage: str) -> bool:
        gold = [by_id[name] for name in dataset.by_id[question].gold_ids]
        return passage in by_id and namesake(by_id[passage], gold)

    return named


# ------------------------------------------------------------------------- tables


def confusion(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    workshop: Workshop,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a filter and kind of passage: how many of them have each of the three labels.

    Data sets of a tier together. Filters that are asked directly have other labels.
    """
    asked = [c for c in cells if c.condition.configured.filter == "nli"]
    groups: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for cell in asked:
        if held := verdicts(cell, results, workshop):
            counts = groups.setdefault((cell.tier, cell.keys["method"]), Counter())
            counts.update(zip(held.passages, held.labels, strict=True))
    if not groups:
        return missing.note(asked, results, caption)
    body = []
    for (tier, method), counts in groups.items():
        for what in IS:
            row = [counts[what, label] for label in LABELS["nli"]]
            if sum(row):
                kept = number(100 * row[0] / sum(row), 1)
                body.append([tier, exhibit.methods[method].label, what, *row, kept])
    head = ["tier", "filter", "the passage is", ENTAILMENT, CONTRADICTION, NEUTRAL, "kept, %"]
    return Table(head, body, caption, name, Download.of(name, head, body))


def quality(
    exhibit: Exhibit, cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Table | Note:
    """One line a cell: right, beside filters that keep or drop everything; precision, recall, AUC.

    Judged by what the cell's own hypothesis asks for. In percent, 95 %, questions drawn.
    """
    body = []
    for cell in cells:
        held = verdicts(cell, results)
        if held is None:
            continue
        says, should = held.says, held.should
        every = np.ones(len(says))
        right = (says == should).astype(float)
        sides = [
            (right, every),
            (right - should, every),
            (says & should, says),
            (says & should, should),
        ]
        shares = [calibration.share(*pair, held.units, fresh()) for pair in sides]
        body.append(
            [
                word(cell.keys["dataset"]),
                exhibit.methods[cell.keys["method"]].label,
                len(says),
                share_text(shares[0]),
                number(100 * should.mean(), 1),
                number(100 - 100 * should.mean(), 1),
                in_points(shares[1], "+"),
                *("none" if s is None else share_text(s) for s in shares[2:]),
                _auc(held),
            ]
        )
    if not body:
        return missing.note(cells, results, caption)
    head = ["data set", "filter", "passages", "right, %", "entailing everything, %"]
    head += [
        "dropping everything, %",
        "better than entailing everything, points",
        "precision, %",
        "recall, %",
        "AUC, %",
    ]
    return Table(head, body, caption, name, Download.of(name, head, body))


def _auc(held: Verdicts) -> str:
    """Of the probability of entailment; empty without one, or without both kinds."""
    known = ~np.isnan(held.probability)
    units = [unit for unit, there in zip(held.units, known, strict=True) if there]
    try:
        judged = calibration.Judgements.of(held.probability[known], held.should[known], units)
    except StatisticsError:
        return ""
    return share_text(calibration.auc(judged, fresh()))
