"""ERM4's memory as a condition asks for it: empty and online, or filled and frozen.

The questions that fill it go through the same pipeline, up to the reading and without a
memory of their own; what they fetch is kept in a file beside the call cache, and enters the
reservoir in the order of the questions, however they were batched. Its hash stands in the
record's fingerprint, so that a record never goes on with another memory.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import engine
from ..bars import Bar
from ..engine import Flow
from ..lm.hub import cache_folder
from ..methods.erm4.method import fetched, knowledge
from ..methods.erm4.settings import ERM4Settings
from ..methods.erm4.settings_memory import RESERVOIR
from ..schema import Answer, Question
from . import reservoir_file
from .conditions import Condition
from .reservoir_file import Brought, ReservoirFileError

if TYPE_CHECKING:
    from .services import Workshop

log = logging.getLogger(__name__)


def made(condition: Condition, workshop: Workshop) -> Any:
    """The service: a new one each time where it is online, since its state is the run's."""
    from ..retrieval.reservoir import QueryCache, Reservoir
    from .names import is_outside

    settings: ERM4Settings = condition.configured
    if settings.memory == "online" and is_outside(condition.retriever):
        raise ReservoirFileError(
            f"memory 'online' over {condition.retriever!r}: a record that the run is continued "
            "from names passages by their ids, and a service outside may say what is in no "
            "corpus; take memory: filled, or a retriever of our own"
        )
    brought = filled(condition, workshop) if settings.memory == "filled" else ()
    if settings.trigger == "exact":
        found = {}
        for one in brought:
            by_id = {passage.id: passage for passage in one.passages}
            found |= {query: [by_id[name] for name in ids] for query, ids in one.found}
        return QueryCache(found)
    corpus = workshop.dataset(condition.dataset, condition.split).corpus
    encoder = workshop.encoder_over(settings.encoder, corpus)
    reservoir = Reservoir(encoder, same=settings.same, capacity=settings.capacity)
    for one in brought:
        reservoir.remember(one.passages)
    return reservoir if settings.memory == "online" else reservoir.freeze()


def is_ordered(condition: Condition) -> bool:
    """Whether each question draws on those before it, so that shards are refused."""
    settings = condition.configured
    return RESERVOIR in settings.needs.values() and settings.memory == "online"


def key(condition: Condition) -> tuple[Any, ...] | None:
    """What a memory depends on, so that conditions can share one; None: each has its own."""
    settings: ERM4Settings = condition.configured
    if settings.memory != "filled":
        return None
    kept = (settings.trigger, settings.encoder, settings.same, settings.capacity)
    return (filling(condition).hash, settings.content, settings.fill_n, *kept)


def filling(condition: Condition) -> Condition:
    """The condition under which the filling questions are treated."""
    settings: ERM4Settings = condition.configured
    before = settings.filling()
    return replace(
        condition,
        dataset=settings.fill or condition.dataset,
        split=settings.fill_split,
        settings=asdict(before),
        reader=condition.reader if before.asks_reader else None,
        seed=0,
    )


def filled(condition: Condition, workshop: Workshop) -> list[Brought]:
    """What the filling questions bring, in their order; what the file lacks is asked now.

    Raises ReservoirFileError: too few questions, another corpus, questions that are asked
    later too, one that fails, or a file that cannot be used.
    """
    before, settings = filling(condition), condition.configured
    questions = asked(condition, workshop)
    facts = {
        "identity": before.identity,
        "content": settings.content or "raw",
        "questions": [question.id for question in questions],
        "fingerprint": workshop.fingerprint(before),
    }
    facts = json.loads(json.dumps(facts))
    with reservoir_file.opened(_path(condition, workshop), facts) as file:
        done = {one.question for one in file.brought}
        missing = [question for question in questions if question.id not in done]
        if missing:
            log.info("%s: %d questions fill the memory", file.path.name, len(missing))
            for one in _bring(before, facts["content"], missing, workshop):
                file.append(one)
        by_question = {one.question: one for one in file.brought}
    return [by_question[question.id] for question in questions]


def is_filled(condition: Condition, workshop: Workshop) -> bool:
    """Whether the file holds what all filling questions bring; nothing is asked or loaded."""
    path = _path(condition, workshop)
    if not path.is_file():
        return False
    facts, brought, _ = reservoir_file.read(path)
    return len(brought) == len(facts.get("questions", ()))


def asked(condition: Condition, workshop: Workshop) -> tuple[Question, ...]:
    """The filling questions. ReservoirFileError, where they cannot be."""
    settings: ERM4Settings = condition.configured
    own = workshop.dataset(condition.dataset, condition.split)
    others = workshop.dataset(settings.fill or condition.dataset, settings.fill_split)
    questions = others.first(settings.fill_n).questions
    name = f"{others.name}, split {settings.fill_split!r},"
    if others.corpus.sha256 != own.corpus.sha256:
        raise ReservoirFileError(
            f"{name} cannot fill the memory for {own.name}: its corpus is another one"
        )
    if len(questions) < settings.fill_n:
        raise ReservoirFileError(
            f"{name} has {len(questions)} questions, and {settings.fill_n} are to fill the "
            f"memory; take fill_n: {len(questions)}"
        )
    twice = next((question.id for question in questions if question.id in own.by_id), None)
    if twice is not None:
        raise ReservoirFileError(
            f"question {twice!r} fills the memory and is asked of it too; take another "
            "fill_split or fill"
        )
    return questions


def _path(condition: Condition, workshop: Workshop) -> Path:
    """Where the filling is kept: by its condition, content, number and corpus."""
    settings, before = condition.configured, filling(condition)
    corpus = workshop.dataset(condition.dataset, condition.split).corpus.sha256
    facts = [before.hash, settings.content or "raw", settings.fill_n, corpus]
    name = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    return cache_folder() / "reservoirs" / f"{before.label.replace('/', '_')}-{name}.jsonl"


def _bring(before: Condition, content: str, questions: list[Question], workshop: Workshop):
    """What each question brings, as soon as it is there."""
    brought: dict[str, Brought] = {}

    def keep(question: Question, settings: ERM4Settings) -> Flow:
        _, gathered, chosen = yield from knowledge(question, settings)
        new = fetched(gathered, chosen, content, settings.order)
        kept = {hit.passage.id for hit in new}
        found = tuple(
            (event["query"], tuple(name for name in event["found"] if name in kept))
            for event in gathered.events
        )
        brought[question.id] = Brought(question.id, tuple(hit.passage for hit in new), found)
        return Answer()

    services: Mapping[str, Any] = workshop.services(before)
    tasks = (engine.Task(question, keep, before.configured) for question in questions)
    with Bar(total=len(questions), desc="filling the memory", unit="q") as bar:
        for task, answer in engine.run(tasks, services, batch_size=workshop.batch_size):
            if answer.error is not None:
                raise ReservoirFileError(
                    f"question {task.question.id!r}, which is to fill the memory, failed: "
                    f"{answer.error}"
                )
            bar.update()
            yield brought.pop(task.question.id)
