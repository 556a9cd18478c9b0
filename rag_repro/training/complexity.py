"""Training questions of Adaptive-RAG's classifier, labelled by outcomes and by bias.

*Outcomes*: the simplest of no retrieval (A), one search (B) and multi-step (C) that answers a
training question right, out of the records of an exhibit with these three rows; what
none answers right is left out. *Biased*: further training questions labelled by what their
data set was made for, B where one hop suffices, else C. As the authors do it, who take
500 questions a set for the first and the first 400 training questions for the second
(Adaptive-RAG, section 3.2, and its code). On the testbed the bias is each question's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from rag_repro import data
from rag_repro.lm.pair_scorers import CLASSES, row
from rag_repro.lm.prompts import Plain
from rag_repro.schema import Question
from rag_repro.study import papers, records
from rag_repro.study.scores import Results
from rag_repro.training.examples import EncodedText
from rag_repro.training.recipes import RecipeError

HELD_OUT = 10
"""Of how many questions labelled by outcomes one is kept out to watch the loss."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question's text and its class. source: which part it is of, as "A by outcomes:world-A"."""

    question: str
    label: str
    source: str


def outcomes(
    exhibit: str,
    dataset: str,
    reader: str,
    results: Path,
    data_dir: Path | None = None,
) -> Iterator[Labelled]:
    """Labels from the records of an exhibit's rows A, B and C, in the order of the questions.

    RecipeError: no such cells; records that are not there, with the command that makes them;
    records by readers of that name that are not the same.
    """
    cells = _cells(exhibit, dataset, reader)
    found = Results(results)
    asked = data.load(dataset, data_dir=data_dir, split=cells["A"].condition.split)
    scores: dict[str, dict[str, float]] = {}
    readers = set()
    for letter, cell in cells.items():
        wanted = {q.id for q in asked.first(cell.n, cell.kinds).questions}
        lines = [line for line in found.lines(cell) or () if line["id"] in wanted]
        if len(lines) < len(wanted):
            raise RecipeError(
                f"{results}: {len(lines)} of {len(wanted)} answers are recorded of "
                f"{exhibit}, {dataset}, row {letter}; make them first: "
                f"rag-repro run {exhibit} --dataset {dataset} --method {letter}"
            )
        scores[letter] = {line["id"]: line["scores"]["em"] for line in lines}
        readers.add(records.load(results, cell.condition).header["fingerprint"].get("reader"))
    if len(readers) > 1:
        raise RecipeError(
            f"{results}: the rows of {exhibit} on {dataset} were answered by {len(readers)} "
            f"different readers called {reader}; move these records away and make them again"
        )
    labels = simplest(scores)
    for question in asked.questions:
        if label := labels.get(question.id):
            yield Labelled(question.text, label, f"{label} by outcomes:{dataset}")


def simplest(scores: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Class by question's id: the simplest method that answers right, A over B over C.

    scores: of each class the questions' exact matches; what none answers right is left out.
    """
    right = {letter: [name for name, one in scores[letter].items() if one >= 1] for letter in "CBA"}
    return {name: letter for letter, names in right.items() for name in names}


def _cells(exhibit: str, dataset: str, reader: str) -> Mapping[str, papers.Cell]:
    """The exhibit's rows A, B and C on this data set with this reader."""
    _, made = papers.exhibit(exhibit)
    cells = {}
    for letter in CLASSES:
        fits = [
            cell
            for cell in made.cells()
            if cell.matches({"dataset": dataset, "method": letter, "reader": reader})
        ]
        if len(fits) != 1:
            raise RecipeError(
                f"{exhibit} has {len(fits)} conditions of row {letter} on {dataset} with reader "
                f"{reader}; labels need one"
            )
        if fits[0].condition.split == "test":
            raise RecipeError(
                f"{exhibit}, {dataset}: labels come from split train or tune, never test"
            )
        cells[letter] = fits[0]
    return cells


def biased(
    dataset: str,
    questions: int | None = None,
    each: int | None = None,
    data_dir: Path | None = None,
) -> Iterator[Labelled]:
    """The train split's first questions, labelled by their hops.

    questions: how many; or each: so many of one hop and as many of several, as
    Adaptive-RAG's authors have it, who draw as many from each of three single-hop and
    three multi-hop sets. A prior for one class would be learned in place of the question.
    """
    asked = data.load(dataset, data_dir=data_dir, split="train").questions[:questions]
    unknown = next((q.id for q in asked if q.hops is None), None)
    if unknown is not None:
        raise RecipeError(f"{dataset}: question {unknown!r} does not say how many hops it takes")
    labels = {q.id: "B" if q.hops == 1 else "C" for q in asked}
    if each is not None:
        asked = _evenly(asked, labels, each, dataset)
    for question in asked:
        label = labels[question.id]
        yield Labelled(question.text, label, f"{label} by bias:{dataset}")


def _evenly(
    asked: Sequence[Question], labels: Mapping[str, str], each: int, dataset: str
) -> list[Question]:
    """The first `each` questions of either label, in their order."""
    first = {label: [q.id for q in asked if labels[q.id] == label][:each] for label in "BC"}
    for label, ids in first.items():
        if len(ids) < each:
            raise RecipeError(f"{dataset}: {len(ids)} questions are of label {label}, not {each}")
    kept = {name for ids in first.values() for name in ids}
    return [q for q in asked if q.id in kept]


KINDS = {"outcomes": outcomes, "biased": biased}
SHUFFLED = "shuffled"


def labelled(
    parts: Sequence[Mapping[str, Any]], results: Path | None, data_dir: Path | None = None
) -> list[Labelled]:
    """All parts of a recipe. results: the folder of records, for parts made of outcomes.

    A part {kind: shuffled, seed: n} gives the labels of all others to one another's
    questions: the control, which has nothing to learn.
    """
    made: list[Labelled] = []
    drawn = None
    for part in parts:
        given = dict(part)
        kind = given.pop("kind")
        if kind == SHUFFLED:
            drawn = given
            continue
        if kind == "outcomes" and results is None:
            raise RecipeError("labels by outcomes need the folder of records; name --results")
        ours = {"results": results} if kind == "outcomes" else {}
        made += KINDS[kind](**given, data_dir=data_dir, **ours)
    return made if drawn is None else shuffled(made, **drawn)


def shuffled(made: Sequence[Labelled], seed: int) -> list[Labelled]:
    """The same questions, and the same labels on other questions."""
    drawn = [one.label for one in made]
    Random(f"labels {seed}").shuffle(drawn)
    return [
        replace(one, label=label, source=f"{label}{one.source[1:]}")
        for one, label in zip(made, drawn, strict=True)
    ]


def split(made: Sequence[Labelled]) -> tuple[list[Labelled], list[Labelled]]:
    """-> questions to learn, and every tenth of those labelled by outcomes, kept out.

    A kept question's text is nowhere among the learned ones.
    """
    by_outcome = [one for one in made if " by outcomes:" in one.source]
    apart = {one.question for one in by_outcome[::HELD_OUT]}
    learned = [one for one in made if one.question not in apart]
    return learned, [one for one in by_outcome if one.question in apart]


def encode(made: Sequence[Labelled], plain: Plain, room: int) -> list[EncodedText]:
    return [
        EncodedText(row(o.question, plain, room), CLASSES.index(o.label), o.source) for o in made
    ]
