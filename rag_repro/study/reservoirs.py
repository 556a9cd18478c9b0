"""ERM4's memory as a condition asks for it: empty and online, or filled and frozen.

The questions that fill it go through the same pipeline, up to the reading and without a memory of
their own. What they fetch is kept in a file beside the call cache, a line a question, and enters
the reservoir in the order of the questions. Its hash stands in the record's fingerprint.
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
from ..methods.erm4.settings import RESERVOIR, ERM4Settings
from ..schema import Answer, Question
from .conditions import Condition

if TYPE_CHECKING:
    from .services import Workshop

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ..digest import forget_parts, write_whole
from ..plain import PlainError, from_json, shortened
from ..schema import Passage
from .files import alone, set_aside, trouble, write_all
from .line_fields import EXACT, Text

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
    with opened(_path(condition, workshop), facts) as file:
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
    facts, brought, _ = read(path)
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


FORMAT = 1
AGAIN = "delete it, and it is filled anew"


class ReservoirFileError(ValueError):
    """A memory's file that cannot be used; the message names it and the remedy."""


@dataclass(frozen=True)
class Brought:
    """What one question brings into the memory.

    passages: in the order of their remembering. found: each query with the ids of what it
    found, best first.
    """

    question: str
    passages: tuple[Passage, ...]
    found: tuple[tuple[str, tuple[str, ...]], ...]

    def line(self) -> bytes:
        made = {
            "id": self.question,
            "passages": [[p.id, p.title, p.text] for p in self.passages],
            "found": [[query, list(ids)] for query, ids in self.found],
        }
        return json.dumps(made | {"sum": _sum(made)}, ensure_ascii=True).encode() + b"\n"


def _sum(made: Mapping[str, Any]) -> str:
    """What a line says of its own content, so that a changed one is no passage of a memory."""
    return hashlib.sha256(json.dumps(made, ensure_ascii=True).encode()).hexdigest()[:16]


class _Line(TypedDict):
    __pydantic_config__ = EXACT
    id: Text
    passages: list[tuple[Text, Text, Text]]
    found: list[tuple[Text, list[Text]]]


def header_bytes(made: Mapping[str, Any]) -> bytes:
    """made: all that can change what is in the file, as JSON has it."""
    return json.dumps({"reservoir": FORMAT, "made": dict(made)}, ensure_ascii=True).encode() + b"\n"


def read(path: Path) -> tuple[dict[str, Any], list[Brought], int]:
    """The header's `made`, the whole lines, and how many bytes these are. ReservoirFileError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReservoirFileError(f"{path} cannot be read ({trouble(error)})") from error
    whole = data[: data.rfind(b"\n") + 1]
    first, *rest = whole.splitlines() or [b""]
    made = _header(path, first)
    brought: dict[str, Brought] = {}
    for number, row in enumerate(rest, start=2):
        one = _brought(path, number, row)
        if one.question in brought:
            raise ReservoirFileError(
                f"{path}, line {number}: question {one.question!r} is there twice; {AGAIN}"
            )
        brought[one.question] = one
    return made, list(brought.values()), len(whole)


def _header(path: Path, first: bytes) -> dict[str, Any]:
    try:
        header = from_json(first)
    except PlainError:
        header = None
    known = isinstance(header, dict) and set(header) == {"reservoir", "made"}
    if not known or header["reservoir"] != FORMAT or not isinstance(header["made"], dict):
        raise ReservoirFileError(
            f"{path} is no memory's file of format {FORMAT} (its first line is not our header); "
            "move it away"
        )
    return header["made"]


def _brought(path: Path, number: int, row: bytes) -> Brought:
    try:
        line = from_json(row)
    except PlainError as error:
        raise ReservoirFileError(f"{path}, line {number}: {error}; {AGAIN}") from error
    # Files of before there were sums have none.
    given = line.pop("sum", None) if isinstance(line, dict) else None
    try:
        TypeAdapter(_Line).validate_python(line)
    except ValidationError as error:
        raise ReservoirFileError(
            f"{path}, line {number}: not what a question brings "
            f"({shortened(repr(line), 60)}); {AGAIN}"
        ) from error
    if given is not None and given != _sum(line):
        raise ReservoirFileError(f"{path}, line {number}: its checksum is another; {AGAIN}")
    return Brought(
        line["id"],
        tuple(Passage(*one) for one in line["passages"]),
        tuple((query, tuple(ids)) for query, ids in line["found"]),
    )


class Writer:
    """Appends to a memory's file; see `opened`."""

    def __init__(self, path: Path, brought: Sequence[Brought], descriptor: int):
        self.path, self.brought = path, list(brought)
        self._descriptor = descriptor

    def append(self, one: Brought) -> None:
        """On the disk before this returns."""
        try:
            write_all(self._descriptor, one.line())
            os.fsync(self._descriptor)
        except OSError as error:
            raise _stuck(self.path, error) from error
        self.brought.append(one)


@contextmanager
def opened(path: Path, made: Mapping[str, Any]) -> Iterator[Writer]:
    """The file, to be gone on with, alone: a second run waits here.

    A file that was made otherwise goes aside under another name, as what it was made with is
    no longer there. ReservoirFileError: it is foreign or damaged, or the disk takes nothing.
    """
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(alone(path.with_name(path.name + ".lock")))
            forget_parts(path)
            if path.exists() and read(path)[0] != dict(made):
                set_aside(path)
            if not path.exists():
                write_whole(path, header_bytes(made))
            _, brought, size = read(path)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
            stack.callback(os.close, descriptor)
            os.ftruncate(descriptor, size)
        except OSError as error:
            raise _stuck(path, error) from error
        yield Writer(path, brought, descriptor)


def _stuck(path: Path, error: OSError) -> ReservoirFileError:
    return ReservoirFileError(
        f"{path} cannot be written ({trouble(error)}, and run the same command again)"
    )
