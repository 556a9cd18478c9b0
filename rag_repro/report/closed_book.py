"""What a reader knows without passages, beside what needs no knowledge: always the same answer.

A question counts here where its answer is the value of a relation ("Where was X
born?"). Beside the reader stands the relation's commonest value in the world, counted
over the facts that none of the questions asked rests on. It knows more than the reader,
which was told some facts of the world and not how often each value comes.
Comparisons and yes/no questions can be guessed otherwise (`evaluation.heuristics`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.synthworld import World
from ..data.synthworld.names import WORLDS
from ..data.synthworld.world import Fact
from ..evaluation import answer_metrics
from ..evaluation.normalise import answer as normalised
from ..evaluation.statistics import Interval
from ..lm import hub
from ..lm.adapters import CARD, card_of
from ..schema import Question
from ..study.papers import Cell, Paper
from ..study.scores import Results, paired, resampled
from . import missing
from .picture import Note
from .table import Table
from .values import within

METRIC = "acc"
GROUPS = ("all taught", "some taught", "none taught")


@dataclass(frozen=True)
class Known:
    """Accuracy in points on one world's questions whose facts were taught or not (`GROUPS`).

    reader, always: the reader's, and that of the relation's commonest value, on the same
    questions. gain: the reader's minus the other's, paired. relations: how many there are.
    """

    dataset: str
    group: str
    relations: int
    reader: Interval
    always: Interval
    gain: Interval


def table(
    paper: Paper, results: Results, reader: str, tiers: Sequence[str], name: str = "tab-closed-book"
) -> Table | Note:
    """One line a world and group of questions; a world without records says what makes them."""
    caption = f"{reader} without any passage, beside the relation's commonest value"
    cells = _cells(paper, reader, tiers)
    if not any(results.lines(cell) for cell in cells):
        return missing.note(cells, results, caption)
    body: list[list[Any]] = []
    for cell in cells:
        if not results.lines(cell):
            body.append([cell.keys["dataset"], missing.of_cells([cell]), *[""] * 5])
        for known in of_cell(cell, results, reader):
            shown = [within(one, 1) for one in (known.reader, known.always)]
            shown += [within(known.gain, 1, "+"), known.reader.n, known.relations]
            body.append([known.dataset, known.group, *shown])
    head = ["data set", "facts that the question rests on", "reader, % [95 %]"]
    head += ["always the commonest value", "difference", "n", "relations"]
    return Table(head, body, caption, name)


def against_aim(
    paper: Paper, results: Results, reader: str, tiers: Sequence[str], aim: float
) -> Note:
    """Which worlds reach an accuracy, in points, on questions whose facts were all taught."""
    told = []
    for cell in _cells(paper, reader, tiers):
        for known in of_cell(cell, results, reader) if results.lines(cell) else ():
            if known.group == GROUPS[0]:
                reached = "reaches it" if known.reader.estimate >= aim else "misses it"
                told.append(f"{known.dataset} {reached} with {within(known.reader, 1, n=True)}")
    if not told:
        return Note(f"Whether {reader} reaches {aim:g} % is not told: no such question is asked.")
    return Note(f"The aim is {aim:g} % where all facts were taught: {'; '.join(told)}.")


def _cells(paper: Paper, reader: str, tiers: Sequence[str]) -> list[Cell]:
    """The gate's conditions without passages. Of another size a world has other facts."""
    exhibit = paper.exhibits[paper.gate.exhibit]
    wanted = {**paper.gate.bare, "reader": reader}
    worlds = [f"world-{name}" for name in WORLDS]
    cells = [cell for tier in tiers for cell in exhibit.cells(tier)]
    return [c for c in cells if c.matches(wanted) and c.condition.dataset in worlds]


def of_cell(cell: Cell, results: Results, reader: str) -> Iterator[Known]:
    """Each group that has a question, in the order of `GROUPS`."""
    from .. import data
    from ..data import synthworld
    from ..training import lessons

    name = cell.condition.dataset.removeprefix("world-")
    here = synthworld.world(name)
    asked = data.load(cell.condition.dataset, split=cell.condition.split).by_id
    read = results.scores(cell, METRIC)
    if read is None:
        return
    stated = lessons.stated_facts(lessons_of(reader), name)
    about = {q: asked_fact(here, asked[q]) for q in read.ids}
    common = commonest(here, {fact for q in read.ids for fact in _facts(here, asked[q])})
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    for question, fact in about.items():
        if fact is not None:
            known = [one in stated for one in _facts(here, asked[question])]
            groups[GROUPS[0 if all(known) else 1 if any(known) else 2]].append(question)
    for group, ids in groups.items():
        if not ids:
            continue
        of_reader = read.at(ids)
        said = [(common.get(about[q].relation), asked[q].answers) for q in ids]
        right = 100 * np.array([answer_metrics.accuracy(*one) for one in said])
        always = replace(of_reader, values=right)
        yield Known(
            cell.keys["dataset"],
            group,
            len({about[q].relation for q in ids}),
            *(resampled(side, METRIC).interval() for side in (of_reader, always)),
            paired([(of_reader, always)], METRIC).interval(),
        )


def asked_fact(world: World, question: Question) -> Fact | None:
    """The fact whose value is asked for; None where the answer is no fact's value."""
    facts = _facts(world, question)
    return next((fact for fact in reversed(facts) if fact.value in question.answers), None)


def commonest(world: World, without: set[Fact]) -> Mapping[str, str]:
    """Relation -> its commonest value among all facts but these (of equals the first by name)."""
    counts: dict[str, Counter[str]] = {}
    for fact in world.facts:
        if fact not in without:
            counts.setdefault(fact.relation, Counter())[fact.value] += 1
    return {
        relation: min(held, key=lambda value: (-held[value], normalised(value)))
        for relation, held in counts.items()
    }


def _facts(world: World, question: Question) -> tuple[Fact, ...]:
    from ..data.synthworld import reasoning
    from ..training import lessons

    reasoned = question.meta["maker"] in lessons.REASONED
    return reasoning.facts_of(world, question) if reasoned else ()


def lessons_of(reader: str) -> Sequence[Mapping[str, Any]]:
    """What a reader was taught: by its card, else its recipe's; nothing for one that is shipped."""
    from ..training.recipes import recipes

    folder = hub.artifacts().get(reader)
    if folder is not None and (folder / CARD).is_file():
        return card_of(folder)["recipe"]["lessons"]
    known = recipes()
    return known[reader].lessons if reader in known else ()
