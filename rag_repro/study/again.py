"""Recorded questions asked again, recorded nowhere: those of several conditions side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_repro import engine
from rag_repro.schema import Answer, Question
from rag_repro.schema.dataset import Dataset
from rag_repro.study import runner
from rag_repro.study.conditions import Condition
from rag_repro.study.services import Workshop


def answered(asked: Sequence[tuple[Condition, Question]], workshop: Workshop) -> list[Answer]:
    """An answer to each question by its condition, in order.

    Conditions whose services are the same run as one batch: a reader reads for all of them at
    once. An answer does not depend on what is answered beside it.
    """
    batches: dict[tuple, tuple[dict[str, Any], list[int]]] = {}
    for place, (condition, _) in enumerate(asked):
        services = workshop.services(condition)
        key = tuple(sorted((name, id(service)) for name, service in services.items()))
        # The services are held beside their key, so that no id of theirs is given out anew.
        batches.setdefault(key, (services, []))[1].append(place)
    answers: dict[int, Answer] = {}
    for services, places in batches.values():
        tasks = [engine.Task(q, c.spec.run, c.configured) for c, q in (asked[i] for i in places)]
        place_of = {id(task): place for task, place in zip(tasks, places, strict=True)}
        for task, answer in engine.run(tasks, services, batch_size=16):
            answers[place_of[id(task)]] = answer
    return [answers[place] for place in range(len(asked))]


@dataclass(frozen=True)
class Recorded:
    """Questions of a condition to be asked again, and its record's lines by question."""

    condition: Condition
    lines: Mapping[str, Mapping[str, Any]]
    ids: Sequence[str]


def live_check(held: Sequence[Recorded], workshop: Workshop) -> list[dict[str, bool]]:
    """Ask recorded questions again and compare -> for each condition: question -> same.

    Same: hits, prediction and error all equal what the record holds.
    """
    rows: list[dict[str, bool]] = [{} for _ in held]
    free = []
    for one, row in zip(held, rows, strict=True):
        dataset = workshop.dataset(one.condition.dataset, one.condition.split)
        asked = dataset.only(one.ids).questions
        if runner.is_ordered(workshop.services(one.condition)):
            for question, answer in in_their_turn(one, workshop, dataset, asked):
                row[question.id] = same(one, question, answer, dataset)
        else:
            free += [(one, row, question, dataset) for question in asked]
    answers = answered([(one.condition, question) for one, _, question, _ in free], workshop)
    for (one, row, question, dataset), answer in zip(free, answers, strict=True):
        row[question.id] = same(one, question, answer, dataset)
    return rows


def same(one: Recorded, question: Question, answer: Answer, dataset: Dataset) -> bool:
    """Whether hits, prediction and error equal what the record holds."""
    now, then = runner.line_of(question, answer, dataset, one.condition), one.lines[question.id]
    return all(now.get(key) == then.get(key) for key in ("hits", "prediction", "error"))


def in_their_turn(
    one: Recorded, workshop: Workshop, dataset: Dataset, questions: Iterable[Question]
) -> Iterator[tuple[Question, Answer]]:
    """Answers with ordered services as each question found them, by the record's lines before."""
    order = list(one.lines)
    for question in questions:
        services = workshop.services(one.condition)
        before = order[: order.index(question.id)]
        runner.rebuild(services, [one.lines[name] for name in before], dataset)
        yield from runner.answers(one.condition, [question], services, 1)


def spread(groups: Iterable[Iterable[Any]], budget: int) -> list[Any]:
    """Up to `budget` items, taken in turn from each group, in the groups' order."""
    turns = itertools.zip_longest(*(list(group) for group in groups))
    flat = (item for turn in turns for item in turn if item is not None)
    return list(itertools.islice(flat, budget))
