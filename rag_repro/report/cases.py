"""Questions that one method answers and another does not, both ways round.

A worked case is chosen because it shows what is claimed, so it proves nothing:
beside it stands how often the reverse happens (McNemar's test). Texts are shown
of the testbed alone, for those of real data are not ours to print.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..evaluation import metrics
from ..evaluation.significance import McNemar, mcnemar
from ..study.papers import Cell, Exhibit
from ..study.scores import Results
from ..study.services import Workshop
from .picture import Note
from .tables import Table, word
from .traces import short

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Versus:
    """Two cells on the questions that both have answered.

    repaired: lines (before, after) of questions that only `after` answers, in the
    record's order; spoilt: those that only `before` does.
    """

    before: Cell
    after: Cell
    repaired: tuple[tuple[Line, Line], ...]
    spoilt: tuple[tuple[Line, Line], ...]
    of: int
    test: McNemar


def versus(
    results: Results, before: Cell, after: Cell, metric: str = "acc", kinds: Collection[str] = ()
) -> Versus | None:
    """The two cells head to head; None where either has no record, or none in common."""
    lines = results.lines(before), results.lines(after)
    if None in lines:
        return None
    theirs, ours = ({x["id"]: x for x in held} for held in lines)
    pairs = []
    for name, line in theirs.items():
        if name in ours and (not kinds or line["kind"] in kinds):
            scores = metrics.of_line(metric, line), metrics.of_line(metric, ours[name])
            if None not in scores:
                pairs.append((line, ours[name], *scores))
    if not pairs:
        return None
    return Versus(
        before,
        after,
        tuple((a, b) for a, b, was, now in pairs if now > was),
        tuple((a, b) for a, b, was, now in pairs if now < was),
        len(pairs),
        mcnemar([now for *_, now in pairs], [was for *_, was, _ in pairs]),
    )


def counts(
    exhibit: Exhibit, results: Results, before: Mapping, after: Mapping, metric: str = "acc"
) -> Table | Note:
    """One line a data set and reader: repaired, spoilt, and whether that may be chance.

    before, after: keys that pick the two cells; all others must agree.
    """
    body = []
    for cell in exhibit.cells():
        other = _partner(exhibit, cell, before, after)
        found = other and versus(results, cell, other, metric)
        if found:
            body.append(
                [
                    word(cell.keys["dataset"]),
                    cell.condition.reader or "",
                    len(found.repaired),
                    len(found.spoilt),
                    found.of,
                    _p(found.test.p),
                ]
            )
    if not body:
        return not_run(exhibit)
    head = ["data set", "reader", "repaired", "spoilt", "questions", "p"]
    names = [exhibit.methods[side["method"]].label for side in (before, after)]
    caption = f"Questions wrong by {names[0]} and right by {names[1]} (repaired), and the reverse"
    return Table(head, body, caption)


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _partner(exhibit: Exhibit, cell: Cell, before: Mapping, after: Mapping) -> Cell | None:
    """The cell of `after` beside one of `before`; None for a cell that is none."""
    if not cell.matches(before):
        return None
    wanted = {**cell.keys, **after}
    return next((c for c in exhibit.cells(cell.tier) if dict(c.keys) == wanted), None)


def case(
    exhibit: Exhibit,
    results: Results,
    workshop: Workshop,
    before: Mapping,
    after: Mapping,
    *,
    metric: str = "acc",
    kinds: Collection[str] = (),
) -> Table | Note:
    """The first testbed question that only `after` answers, with what each read and said.

    Of the given kinds where there is one among the repaired.
    """
    for cell in exhibit.cells("testbed"):
        other = _partner(exhibit, cell, before, after)
        found = other and versus(results, cell, other, metric, kinds)
        if found:
            return _shown(found, exhibit, workshop)
    return not_run(exhibit)


def _shown(found: Versus, exhibit: Exhibit, workshop: Workshop) -> Table | Note:
    names = [exhibit.methods[c.keys["method"]].label for c in (found.before, found.after)]
    counted = (
        f"of {found.of} questions {names[1]} repairs {len(found.repaired)} and spoils "
        f"{len(found.spoilt)} (McNemar's p {_p(found.test.p)})"
    )
    if not found.repaired:
        return Note(f"No such question: {counted}.")
    lines = found.repaired[0]
    dataset = workshop.dataset(found.before.condition.dataset, found.before.condition.split)
    question, passages = dataset.by_id[lines[0]["id"]], dataset.corpus.by_id
    gold = set(question.gold_ids)
    body = [["question", question.text], ["answer", " | ".join(question.answers)]]
    for name, line in zip(names, lines, strict=True):
        for hit in line["hits"]:
            mark = " (gold)" if hit in gold else ""
            passage = passages[hit]
            body.append([f"{name} reads{mark}", short(f"{passage.title}: {passage.text}")])
        body.append([f"{name} says", line.get("text", "")])
    caption = f"The first question that only {names[1]} answers; {counted}"
    return Table(["part", "text"], body, caption)


def not_run(exhibit: Exhibit) -> Note:
    """That there are no records of an exhibit, and the command that makes them."""
    return Note(f"Not run: no records of {exhibit.name} here; `rag-repro run {exhibit.name}`.")
