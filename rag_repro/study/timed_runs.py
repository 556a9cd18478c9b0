"""Time an exhibit: its methods take turns at one question at a time.

A machine's speed drifts, so times compare only side by side: question by question, every method of
a data set answers in an order drawn for that question, one question in flight. Warm are weights,
indexes, and the code that one question before the first, which does not count, has touched;
forgotten before each answer are the call cache and the kept beginnings of prompts. Records lie in
a folder beside all others: lines tell the `turns` (`evaluation.cost_metrics`), headers the machine,
versions, threads and which conditions took turns; with others a record is not continued.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from rag_repro.bars import Bar
from rag_repro.digest import installed
from rag_repro.schema import Question
from rag_repro.schema.dataset import Dataset
from rag_repro.study import campaign, manifests, records, registering, runner
from rag_repro.study.clock import Clock, Notes, clocked
from rag_repro.study.conditions import Condition
from rag_repro.study.papers import Cell
from rag_repro.study.runner import Progress, RunError
from rag_repro.study.services import Workshop

log = logging.getLogger(__name__)

BUSY = 0.5  # processes that wait for a core before we begin


def run(
    cells: Sequence[Cell],
    workshop: Workshop,
    results: Path,
    *,
    n: int | None = None,
    repeats: int = 1,
    renew: bool = False,
    clock: Clock = time.perf_counter,
    report: Callable[[Progress], None] = lambda progress: None,
) -> int:
    """Time the cells' first n questions that are not timed yet -> answers timed now.

    Cells of one exhibit and data set sit together. n: None for the cells' own. repeats: how
    often each question is asked; of a registered test, as often as it says. renew: set records
    aside that other data or weights, another machine or other company made, where else they are
    refused.
    Raises RunError where a time would mean nothing, RecordError as `records`.
    """
    sittings: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        place = (cell.exhibit, cell.condition.dataset, cell.condition.split)
        sittings.setdefault(place, []).append(cell)
    timed = 0
    for (exhibit, *_), held in sittings.items():
        folder = records.times_beside(results, exhibit)
        timed += _sit(held, workshop, folder, n, repeats, renew, clock, report)
    return timed


def with_bar(cells: Sequence[Cell], workshop: Workshop, results: Path, **given: Any) -> int:
    """`run` with a progress bar a data set, and a word where the machine is busy."""
    if load() > BUSY:
        log.warning(
            "other programs are at work here (load %.1f): times will scatter; the load stands in "
            "the manifest",
            load(),
        )
    shown = None  # a disabled bar knows no description
    with Bar(unit="q") as bar:

        def report(progress: Progress) -> None:
            nonlocal shown
            if progress.dataset != shown:
                shown = progress.dataset
                bar.reset(progress.total)
                bar.set_description(shown)
            bar.update(progress.done - bar.n)

        timed = run(cells, workshop, results, report=report, **given)
    log.info("%s", f"{timed} answers timed" if timed else "complete")
    return timed


def _sit(
    cells: Sequence[Cell],
    workshop: Workshop,
    folder: Path,
    n: int | None,
    repeats: int,
    renew: bool,
    clock: Clock,
    report: Callable[[Progress], None],
) -> int:
    conditions = list({cell.condition.hash: cell.condition for cell in cells}.values())
    dataset = workshop.dataset(conditions[0].dataset, conditions[0].split)
    asked = dataset.first(campaign.least(n, *(cell.n for cell in cells))).questions
    notes: Notes = []
    stamps = [registering.stamp(folder, c, workshop) for c in conditions]
    repeats = max([registering.repeats(s) for s in stamps if s], default=repeats)
    seats = [Seat(c, workshop, clock, notes, s) for c, s in zip(conditions, stamps, strict=True)]
    facts = {**surroundings(), "beside": sorted(c.hash for c in conditions), "repeats": repeats}
    with ExitStack() as stack:
        for seat in seats:
            fingerprint = workshop.fingerprint(seat.condition) | facts
            if renew:
                records.set_aside(folder, seat.condition, fingerprint)
            seat.open(stack, folder, fingerprint, [q.id for q in dataset.questions])
        missing = [q for q in asked if any(q.id not in seat.record.done for seat in seats)]
        if not missing:
            return 0
        warm = dataset.questions[len(asked) % len(dataset.questions)]
        for seat in seats:
            seat.warm_up(warm)
        timed = 0
        with _no_collection():
            for place, question in enumerate(missing, start=len(asked) - len(missing) + 1):
                timed += take_turns(seats, question, repeats, dataset)
                report(Progress(dataset.name, place, len(asked)))
    return timed


def take_turns(seats: Sequence[Seat], question: Question, repeats: int, dataset: Dataset) -> int:
    """Every seat whose record lacks the question answers it; the lines are written together."""
    waiting = [seat for seat in seats if question.id not in seat.record.done]
    turns: dict[str, list[dict]] = {seat.condition.hash: [] for seat in waiting}
    answers = {}
    for turn in range(repeats):
        order = Random(f"turns {turn} {question.id}").sample(waiting, len(waiting))
        for seat in order:
            answers[seat.condition.hash], seconds = seat.ask(question)
            turns[seat.condition.hash].append(seconds)
    for seat in waiting:
        name = seat.condition.hash
        line = runner.line_of(question, answers[name], dataset, seat.condition)
        # Alone in its batch, an answer has a prefill of its own.
        line["cost"]["prefilled_tokens"] = answers[name].cost.prefilled_tokens
        seat.record.append(line | {"turns": turns[name]})
        seat.entry.answered()
    return len(waiting)


class Seat:
    """One condition at a sitting: its clocked services and its open record."""

    record: records.RecordWriter
    entry: manifests.Entry

    def __init__(
        self,
        condition: Condition,
        workshop: Workshop,
        clock: Clock,
        notes: Notes,
        stamp: Mapping[str, Any],
    ):
        services = workshop.services(condition)
        for name, service in services.items():
            if getattr(service, "ordered", False):
                raise RunError(
                    f"{condition.path}: the service {name!r} keeps state from question to "
                    "question, so its answers have no time of their own; leave the method out"
                )
        self.condition, self._stamp = condition, stamp
        self._services = clocked(services, clock, notes)
        self._clock, self._notes = clock, notes

    def open(
        self, stack: ExitStack, folder: Path, fingerprint: Mapping[str, Any], order: Sequence[str]
    ) -> None:
        opened = records.open_record(folder, self.condition, fingerprint, order=order)
        self.record = stack.enter_context(opened)
        facts = {**self._stamp, "batch_size": 1, "load": round(load(), 2)}
        told = manifests.written(folder, self.condition, **facts)
        self.entry = stack.enter_context(told)

    def ask(self, question: Question) -> tuple[Any, dict[str, Any]]:
        """-> the answer, and the turn as a record's line tells it."""
        for service in self._services.values():
            getattr(service, "forget", lambda: None)()
        self._notes.clear()
        start = self._clock()
        [(_, answer)] = runner.answers(self.condition, [question], self._services, 1)
        seconds = self._clock() - start
        told = [[kind, round(took, 6), items] for kind, took, items in self._notes]
        return answer, {"seconds": round(seconds, 6), "clock": told}

    def warm_up(self, question: Question) -> None:
        answer, _ = self.ask(question)
        if answer.error is not None:
            raise RunError(
                f"{self.condition.path} fails the question {question.id!r}, with which it should "
                f"warm up: {answer.error}; nothing is timed (another --n warms up with another)"
            )


@contextmanager
def _no_collection() -> Iterator[None]:
    """What lives now is out of Python's collector, whose pauses grow with the corpus."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def load() -> float:
    """Processes at work on this machine, averaged over the last minute; 0 where nobody tells."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def surroundings() -> dict[str, Any]:
    """What of this machine can move a time: processor, cores, threads, versions."""
    import torch  # also where nothing here needs it: a record tells the same of any sitting

    return {
        "machine": f"{manifests.processor()}; {manifests.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "threads": torch.get_num_threads(),
        "versions": {"python": sys.version.split()[0], **installed(manifests.PACKAGES)},
    }
