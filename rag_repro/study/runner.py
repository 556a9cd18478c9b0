"""Run a condition: ask its method every question that its record lacks."""

from __future__ import annotations

import logging
import time
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rag_repro import engine
from rag_repro.evaluation.metrics import score
from rag_repro.methods.dragin.alarms import watched
from rag_repro.schema import Answer, Cost, Passage, Question
from rag_repro.schema.dataset import Dataset
from rag_repro.study import line_fields, manifests, records
from rag_repro.study.conditions import Condition
from rag_repro.study.lines import Record
from rag_repro.study.names import is_outside
from rag_repro.study.registering import stamp
from rag_repro.study.services import Workshop

log = logging.getLogger(__name__)

AHEAD = 3
"""Questions in flight for each row that a reader writes at once.

While the longest answers of a batch are written, and others wait for what they search for,
more questions take the rows that are free: a third more answers in the same time (measured).
"""
ALL_FAILED = 8  # so many failures without a single answer: the cause is common, stop
PATIENT = 4  # times as many where an earlier run had answers: some may fail for themselves
TRIAL = 4  # questions that an estimate asks
_SHARED = "prefilled_tokens"  # depends on the batch, so it is no property of an answer


class RunError(ValueError):
    """A run that makes no sense to begin or to continue."""


@dataclass(frozen=True)
class Progress:
    """What a run, or a sitting, reports after each question."""

    dataset: str
    done: int
    total: int


def run(
    condition: Condition,
    workshop: Workshop,
    results: Path,
    *,
    n: int | None = None,
    kinds: Collection[str] = (),
    shard: tuple[int, int] = (1, 1),
    batch_size: int = 16,
    report: Callable[[Progress], None] = lambda progress: None,
) -> int:
    """Answer the condition's first n questions that are not recorded yet -> how many now.

    n: None for all questions of its split. kinds: only of these; none named: of all. shard (i, of):
    every `of`-th question beginning with the i-th, counted from 1, into a part of its own, so that
    shards can run at once; a run without shard joins the parts that no run is writing. Each answer
    is appended as it is finished. Where nothing is missing, what cannot be loaded is not asked for.
    Refused where a service keeps state from question to question, and where a registered record
    could not count.
    """
    dataset = workshop.dataset(condition.dataset, condition.split)
    i, of = shard
    wanted = dataset.first(n, kinds).questions[i - 1 :: of]
    part, facts = shard_name(shard), stamp(results, condition, workshop)
    try:
        services = workshop.services(condition)
        fingerprint = workshop.fingerprint(condition)
    except (ValueError, OSError):
        if not part:
            join(condition, workshop, results)
        if {q.id for q in wanted} <= recorded(results, condition).ids(shard):
            return 0
        raise
    known: set[str] = set()
    there = recorded(results, condition)
    # One's own record begins with the committed lines of these very data and weights.
    behind = there.committed
    same = behind is not None and records.is_same(behind.header, fingerprint)
    copied = behind.by_question if same else {}
    if part:
        if is_ordered(services):
            raise RunError(
                f"{condition.path} cannot be run in shards: each question may draw on those "
                "before it; run it without --shard"
            )
        known = replace(there, committed=None).ids()
    else:
        records.absorb(results, condition)
    with (
        records.open_record(
            results, condition, fingerprint, part, [q.id for q in dataset.questions]
        ) as record,
        manifests.written(results, condition, part, batch_size=batch_size, **facts) as entry,
    ):
        for question in wanted:
            if question.id in copied and question.id not in record.done | known:
                record.append(copied[question.id])
        missing = [q for q in wanted if q.id not in record.done and q.id not in known]
        rebuild(services, record.lines, dataset)
        worked = any("error" not in line for line in record.lines)
        pairs, ties = answers(condition, missing, services, batch_size), _ties(services)
        asked = [q.id for q in missing]
        alarms = watched(condition.configured)
        for question, answer in _once_one_works(pairs, condition, asked, worked):
            record.append(line_of(question, answer, dataset, condition))
            if ties is not None:
                entry.facts["ties"] = _ties(services) - ties
            entry.answered()
            done = len(wanted) - len(missing) + entry.facts["questions"]
            report(Progress(dataset.name, done, len(wanted)))
            if alarms is not None:
                alarms.add(answer)
        if alarms is not None and (remark := alarms.remark()):
            log.warning("%s: %s", condition.path, remark)
    return len(missing)


def _ties(services: Mapping[str, Any]) -> int | None:
    """New tokens so far whose best two logits lay so close that another order of sums may
    exchange them; None: the reader does not count them. Of calls that were kept none is counted.
    """
    return getattr(services.get("reader"), "ties", None)


def _once_one_works(
    pairs: Iterable[tuple[Question, Answer]],
    condition: Condition,
    asked: Sequence[str],
    worked: bool,
) -> Iterator[tuple[Question, Answer]]:
    """The same pairs; first failures are held back until one answer has come.

    asked: ids of all that are asked, in that order. Where the first `ALL_FAILED` fail, or all that
    there are, the cause is common: the run stops, and has recorded no failure that a repaired run
    would have to forget. Those that fail at once overtake those that are answered, so that it is
    the first ones asked that tell, and not the first to come back. worked: some question has been
    answered in an earlier run; then `PATIENT` times as many must fail, and all that there are may.
    """
    held: list[tuple[Question, Answer]] = []
    most = ALL_FAILED * (PATIENT if worked else 1)
    waiting = set(asked[:most]) if len(asked) >= most else set()
    pairs = iter(pairs)
    for question, answer in pairs:
        held.append((question, answer))
        if answer.error is None:
            break
        if waiting == {question.id}:
            raise _common(condition, f"the first {most} questions", answer)
        waiting.discard(question.id)
    else:
        if held and not worked:
            raise _common(condition, f"the {len(held)} questions asked", held[-1][1])
    yield from held
    yield from pairs


def _common(condition: Condition, which: str, last: Answer) -> RunError:
    return RunError(
        f"{which} of {condition.path} all failed, the last with {last.error!r}; none of them is "
        "recorded: mend the cause and run again, what was recorded before stays"
    )


def answers(
    condition: Condition,
    questions: Iterable[Question],
    services: Mapping[str, Any],
    batch_size: int,
) -> Iterable[tuple[Question, Answer]]:
    """The condition's answers to some questions, recorded nowhere.

    batch_size: rows that a reader writes at once; `AHEAD` times as many questions are in flight.
    """
    tasks = (
        engine.Task(question, condition.spec.run, condition.configured) for question in questions
    )
    for task, answer in engine.run(tasks, services, batch_size=AHEAD * batch_size):
        yield task.question, answer


def line_of(
    question: Question, answer: Answer, dataset: Dataset, condition: Condition
) -> dict[str, Any]:
    """One question's record: ids, our model's words, costs, scores; no text of the data.

    gold: [role, hop, rank among the hits or None] of each gold passage, so that
    pages can tell static from dynamic without the data at hand. What a method's trace
    leaves: as `line_fields` says.
    """
    ids = [hit.passage.id for hit in answer.hits]
    rank = {name: place for place, name in enumerate(ids, start=1)}
    passages = _passages(answer, dataset, condition)
    scores = score(
        question,
        answer.prediction,
        ids,
        passages=passages,
        # A question that failed before its reader was asked is wrong all the same, and a
        # guess is an answer without a reader. One that writes a compression answers nothing.
        answered=bool(answer.cost.reader_calls and condition.configured.answers)
        or answer.prediction is not None
        or bool(answer.error and condition.reader),
    )
    line: dict[str, Any] = {
        "id": question.id,
        "kind": question.kind,
        "hops": question.hops,
        "cluster": question.unit,
        "hits": ids,
        "gold": [[g.role, g.hop, rank.get(g.passage_id)] for g in question.gold],
        "scores": {name: round(value, 6) for name, value in scores.items()},
        "cost": {name: n for name, n in asdict(answer.cost).items() if n and name != _SHARED},
    }
    # What thresholds are chosen from: elsewhere nobody reads it, and it is long.
    tuned_on = condition.split == "tune"
    theta = getattr(condition.configured, "threshold", None)
    line |= line_fields.trace_fields(question, answer, passages, theta, signals=tuned_on)
    if answer.text or answer.prediction:
        line |= {"text": answer.text, "prediction": answer.prediction}
    if answer.remembered:
        line["remembered"] = [passage.id for passage in answer.remembered]
    if answer.error is not None:
        line["error"] = answer.error
    return line


def _passages(answer: Answer, dataset: Dataset, condition: Condition) -> Mapping[str, Passage]:
    """The corpus by id; of a service outside, what it brought stands in place of its own.

    A page that was read says something else than the passage of its id, and another engine's
    is in no corpus at all. Hits of our own retrievers must be.
    """
    known = dataset.corpus.by_id
    if condition.retriever is None or not is_outside(condition.retriever):
        return known
    return ChainMap({hit.passage.id: hit.passage for hit in answer.hits}, known)


def is_ordered(services: Mapping[str, Any]) -> bool:
    """Whether one of them keeps state from question to question."""
    return any(getattr(service, "ordered", False) for service in services.values())


def rebuild(services: Mapping[str, Any], lines: Iterable[Mapping], dataset: Dataset) -> None:
    """Fill an ordered service with what the recorded questions put into it."""
    for service in services.values():
        if getattr(service, "ordered", False):
            for line in lines:
                service.remember(
                    tuple(dataset.corpus.by_id[name] for name in line.get("remembered", ()))
                )


@dataclass(frozen=True)
class Estimate:
    """What a condition's missing questions would cost, from a trial of a few."""

    missing: int
    trial: int
    seconds_a_question: float
    cost_a_question: Mapping[str, float]

    @property
    def seconds(self) -> float:
        return self.missing * self.seconds_a_question


def estimate(
    condition: Condition,
    workshop: Workshop,
    *,
    missing: int,
    batch_size: int = 16,
    done: Collection[str] = (),
) -> Estimate:
    """Try a few of the condition's questions, record nothing, and reckon.

    done: ids of questions that are answered already: their calls lie in the cache and take no
    time. Building indexes and loading weights is not in the time: it is paid once.
    """
    dataset = workshop.dataset(condition.dataset, condition.split)
    services = workshop.services(condition)
    questions = [q for q in dataset.questions if q.id not in done][:TRIAL]
    start = time.perf_counter()
    tried = list(answers(condition, questions, services, batch_size))
    seconds = time.perf_counter() - start
    total = sum((answer.cost for _, answer in tried), Cost())
    return Estimate(
        missing,
        len(tried),
        seconds / max(1, len(tried)),
        {name: count / max(1, len(tried)) for name, count in asdict(total).items() if count},
    )


def shard_name(shard: tuple[int, int]) -> str:
    """(1, 4) -> "1-of-4"; "" where there is one shard alone, which is the record."""
    return "{}-of-{}".format(*shard) if shard[1] > 1 else ""


@dataclass(frozen=True)
class Recorded:
    """What is recorded of a condition: its record, and its parts that are not joined yet.

    written: names of the parts that runs are writing now; all others will be joined.
    committed: the record that one's own builds on (`records.committed`).
    """

    whole: Record | None
    parts: Mapping[str, Record]
    written: frozenset[str] = frozenset()
    committed: Record | None = None

    def ids(self, shard: tuple[int, int] = (1, 1)) -> set[str]:
        """The questions that this shard need not ask.

        Those of the record, of the committed one that it builds on, of the parts that will be
        joined, and of its own part.
        """
        own = shard_name(shard)
        there = [part for key, part in self.parts.items() if key not in self.written or key == own]
        there += [record for record in (self.whole, self.committed) if record is not None]
        return set().union(*(record.by_question for record in there))

    def is_complete(self, wanted: set[str]) -> bool:
        """Whether the record itself has all wanted answers, and no part is left.

        This is what "complete" means everywhere.
        """
        return not self.parts and wanted <= self.ids()


def recorded(root: Path, condition: Condition) -> Recorded:
    """The condition's record and its parts, as they are now."""
    # Parts before the record: what is joined between the two looks is then met twice, not never.
    names = records.parts(root, condition)
    # Before they are read: a part whose run ends between the two looks is then met later.
    written = frozenset(key for key in names if records.is_written(root, condition, key))
    found = {key: records.load(root, condition, key) for key in names}
    whole = records.load(root, condition)
    kept = {key: part for key, part in found.items() if part is not None}
    behind = records.committed(root)
    return Recorded(whole, kept, written, records.load(behind, condition) if behind else None)


def join(condition: Condition, workshop: Workshop, results: Path) -> int:
    """Join the condition's parts that no run is writing into its record -> answers that it now
    has more.

    No question is asked, and no index or reader loaded: what a run without shard does first,
    alone. The record is left as by a run, in the order of the questions.
    """
    added = records.absorb(results, condition)
    record = records.load(results, condition)
    if record is not None:
        dataset = workshop.dataset(condition.dataset, condition.split)
        order = [question.id for question in dataset.questions]
        fingerprint = record.header["fingerprint"]
        with records.open_record(results, condition, fingerprint, "", order):
            manifests.absorb(results, condition)
    return added
