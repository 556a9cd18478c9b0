"""ERM4's memory as a condition asks for it: empty and online, or filled and frozen.

The questions that fill it go through the same pipeline, up to the reading and without a memory of
their own. What each fetches is kept in the call cache at once, and enters the reservoir in the
order of the questions. The reservoir's hash stands in the record's fingerprint.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rag_repro import cache, engine
from rag_repro.bars import Bar
from rag_repro.engine import Flow
from rag_repro.methods.erm4.erm4_settings import RESERVOIR, ERM4Settings
from rag_repro.methods.erm4.pipeline import fetched, knowledge
from rag_repro.retrieval.reservoir import QueryCache, Reservoir
from rag_repro.schema import Answer, Passage, Question
from rag_repro.study.conditions import Condition
from rag_repro.study.files import alone
from rag_repro.study.names import is_outside

if TYPE_CHECKING:
    from rag_repro.study.services import Workshop

log = logging.getLogger(__name__)

VERSION = 1
"""Of what the cache holds of a filling."""


class ReservoirError(ValueError):
    """A memory that cannot be what its settings ask; the message says why."""


@dataclass(frozen=True)
class Brought:
    """What one question brings into the memory.

    passages: in the order of their remembering. found: each query with the ids of what it
    found, best first.
    """

    passages: tuple[Passage, ...]
    found: tuple[tuple[str, tuple[str, ...]], ...]

    def packed(self) -> bytes:
        return json.dumps([[[p.id, p.title, p.text] for p in self.passages], self.found]).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> Brought:
        passages, found = json.loads(data)
        return cls(
            tuple(Passage(*one) for one in passages),
            tuple((query, tuple(ids)) for query, ids in found),
        )


def build_reservoir(condition: Condition, workshop: Workshop) -> Any:
    """The service: a new one each time where it is online, since its state is the run's."""
    settings: ERM4Settings = condition.configured
    if settings.memory == "online" and is_outside(condition.retriever):
        raise ReservoirError(
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
    """What the filling questions bring, in their order; what the cache lacks is asked now, alone:
    a second run waits here.

    Raises ReservoirError: too few questions, another corpus, questions that are asked later too,
    or one that fails.
    """
    before, content = filling(condition), condition.configured.content or "raw"
    questions, store = asked(condition, workshop), workshop.store
    facts = [before.identity, content, workshop.fingerprint(before)]
    whole = _whole(condition, workshop)
    with alone(store.path.with_name(f"reservoir-{whole.hex()[:16]}.lock")):
        brought = cache.through(
            store,
            [cache.key_of(["reservoir", VERSION, *facts, question.id]) for question in questions],
            lambda places, keep: _bring(
                before, content, [questions[i] for i in places], workshop, keep
            ),
            Brought.packed,
            Brought.unpacked,
        )
        store.put([(whole, b"")])
    return brought


def is_filled(condition: Condition, workshop: Workshop) -> bool:
    """Whether the cache holds what all filling questions bring; nothing is asked or loaded."""
    return workshop.store.get([_whole(condition, workshop)]) != [None]


def _whole(condition: Condition, workshop: Workshop) -> bytes:
    """The key that says so: by the filling's condition, content, number and corpus."""
    settings = condition.configured
    corpus = workshop.dataset(condition.dataset, condition.split).corpus.sha256
    facts = [filling(condition).hash, settings.content or "raw", settings.fill_n, corpus]
    return cache.key_of(["reservoir", VERSION, *facts])


def asked(condition: Condition, workshop: Workshop) -> tuple[Question, ...]:
    """The filling questions. ReservoirError, where they cannot be."""
    settings: ERM4Settings = condition.configured
    own = workshop.dataset(condition.dataset, condition.split)
    others = workshop.dataset(settings.fill or condition.dataset, settings.fill_split)
    questions = others.first(settings.fill_n).questions
    name = f"{others.name}, split {settings.fill_split!r},"
    if others.corpus.sha256 != own.corpus.sha256:
        raise ReservoirError(
            f"{name} cannot fill the memory for {own.name}: its corpus is another one"
        )
    if len(questions) < settings.fill_n:
        raise ReservoirError(
            f"{name} has {len(questions)} questions, and {settings.fill_n} are to fill the "
            f"memory; take fill_n: {len(questions)}"
        )
    twice = next((question.id for question in questions if question.id in own.by_id), None)
    if twice is not None:
        raise ReservoirError(
            f"question {twice!r} fills the memory and is asked of it too; take another "
            "fill_split or fill"
        )
    return questions


def _bring(
    before: Condition,
    content: str,
    questions: list[Question],
    workshop: Workshop,
    keep: cache.Keep,
) -> list[Brought]:
    """What each question brings, kept as soon as it is there."""
    log.info("%s: %d questions fill the memory", before.label, len(questions))
    brought: dict[str, Brought] = {}

    def fetch(question: Question, settings: ERM4Settings) -> Flow:
        _, gathered, chosen = yield from knowledge(question, settings)
        new = fetched(gathered, chosen, content, settings.order)
        kept = {hit.passage.id for hit in new}
        found = tuple(
            (event["query"], tuple(name for name in event["found"] if name in kept))
            for event in gathered.events
        )
        brought[question.id] = Brought(tuple(hit.passage for hit in new), found)
        return Answer()

    services: Mapping[str, Any] = workshop.services(before)
    places = {question.id: place for place, question in enumerate(questions)}
    tasks = (engine.Task(question, fetch, before.configured) for question in questions)
    with Bar(total=len(questions), desc="filling the memory", unit="q") as bar:
        for task, answer in engine.run(tasks, services, batch_size=workshop.batch_size):
            name = task.question.id
            if answer.error is not None:
                raise ReservoirError(
                    f"question {name!r}, which is to fill the memory, failed: {answer.error}"
                )
            bar.update()
            keep(places[name], brought[name])
    return [brought[question.id] for question in questions]
