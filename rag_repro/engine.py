"""Write a method for one question, run it for many.

A method is a generator: it yields a call, or a list of calls (a gather), and
is sent the result, or the list of results. `run` advances many such
generators together, hands the waiting calls of all of them to each service
as one batch, and lets new tasks in as others finish. No method knows of it.

Only counting happens here. Prompts, tensors, indexes and caches belong to
the services; time is never taken from batches.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from rag_repro.schema import (
    Answer,
    Call,
    Cost,
    Encode,
    Generate,
    Hit,
    Question,
    Read,
    Recall,
    Remember,
    Retrieve,
    Score,
)

log = logging.getLogger(__name__)

Flow = Generator["Call | list[Call]", Any, Answer]
Method = Callable[[Question, Any], Flow]

READER_CALLS = (Generate, Read)


MAX_CALLS = 2000
"""Several times what any method of this book asks of one question."""


class MethodError(ValueError):
    """A method asked for something that cannot be: the question has failed."""


class ServiceError(ValueError):
    """A service is missing or broke its promise: the whole run must stop."""


@dataclass(frozen=True)
class Task:
    """One question to be answered by one method with its settings."""

    question: Question
    method: Method
    settings: Any = None


def run(
    tasks: Iterable[Task],
    services: Mapping[str, Any],
    *,
    batch_size: int = 16,
    max_calls: int = MAX_CALLS,
) -> Iterator[tuple[Task, Answer]]:
    """Answer tasks, yielding each with its answer as soon as it is finished.

    services: by the name that calls carry ("reader", "retriever", ...).
    batch_size: tasks in flight at once, and the most calls a reader is handed
        together. 1 where any service is `ordered` (keeps state from question
        to question): tasks then run strictly one after another.
    max_calls: a question that asks for more fails, so that no loop is endless.

    A method that raises, or is refused a call, fails alone: its answer has
    `error` set and counts as wrong. A missing or broken service raises
    ServiceError here, since no later question could fare better.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
    if any(getattr(service, "ordered", False) for service in services.values()):
        batch_size = 1
    waiting_tasks = iter(tasks)
    active: list[_Run] = []
    try:
        while True:
            # Few lines, but they are the continuous batching: make room, then serve.
            for running in [r for r in active if r.answer is not None]:
                active.remove(running)
                yield running.task, running.answer
            while len(active) < batch_size and (task := next(waiting_tasks, None)) is not None:
                active.append(_Run(task, max_calls))
            if not active:
                return
            if all(r.answer is None for r in active):
                _serve(active, services, batch_size)
    finally:
        for running in active:
            running.flow.close()


@dataclass(eq=False)
class _Run:
    """One method under way: its generator and the calls it waits for."""

    task: Task
    max_calls: int
    waiting: list[Call] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    gather: bool = False
    calls: list[str] = field(default_factory=list)
    wishes: int = 0
    cost: Cost = field(default_factory=Cost)
    remembered: list = field(default_factory=list)
    answer: Answer | None = None

    def __post_init__(self):
        self.flow: Flow = self.task.method(self.task.question, self.task.settings)
        self._advance(lambda: next(self.flow))

    def receive(self, slot: int, result: Any) -> None:
        """Take one call's result; go on once all calls of the gather are back."""
        call = self.waiting[slot]
        self.results[slot] = result
        if not isinstance(result, Exception):
            self.cost += cost_of(call, result)
            if isinstance(call, Remember):
                self.remembered.extend(call.passages)
        if any(r is _PENDING for r in self.results):
            return
        refused = next((r for r in self.results if isinstance(r, Exception)), None)
        if refused is not None:
            self._advance(lambda: self.flow.throw(refused))
        else:
            reply = list(self.results) if self.gather else self.results[0]
            self._advance(lambda: self.flow.send(reply))

    def _advance(self, step: Callable[[], Call | list[Call]]) -> None:
        """Run the method to its next call, its answer or its failure.

        An empty gather asks for nothing and gets its empty list at once; it
        counts as a wish all the same, or a loop of them would never end.
        """
        try:
            self._wait_for(step())
            while not self.waiting:
                self._wait_for(self.flow.send([]))
        except StopIteration as stop:
            if trouble := _trouble(stop.value):
                self._fail(MethodError(f"the method returned {trouble}"))
            else:
                self._finish(stop.value)
        except Exception as error:  # the question fails, the run goes on
            self._fail(error)

    def _wait_for(self, wish: Call | list[Call]) -> None:
        self.gather = isinstance(wish, list)
        self.waiting = wish if self.gather else [wish]
        for call in self.waiting:
            if not isinstance(call, Call):
                raise MethodError(f"the method yielded {type(call).__name__}, which is no call")
        self.results = [_PENDING] * len(self.waiting)
        self.calls.extend(type(call).__name__ for call in self.waiting)
        self.wishes += max(1, len(self.waiting))
        if self.wishes > self.max_calls:
            raise MethodError(f"more than {self.max_calls} calls for one question (max_calls)")

    def _finish(self, answer: Answer) -> None:
        self.answer = replace(
            answer,
            cost=self.cost,
            calls=tuple(self.calls),
            remembered=tuple(self.remembered),
        )

    def _fail(self, error: Exception) -> None:
        self.flow.close()
        # A service's refusal says itself what is wrong; our stack around it would hide that.
        refused = any(error is result for result in self.results)
        stack = error.__cause__ if refused else error
        log.warning("question %s failed: %s", self.task.question.id, error, exc_info=stack)
        self._finish(Answer(error=f"{type(error).__name__}: {error}"))


def _trouble(answer: Any) -> str | None:
    """What of a method's return value is no answer."""
    if not isinstance(answer, Answer):
        return f"{answer!r}, not an Answer"
    if not isinstance(answer.text, str):
        return f"text {answer.text!r}, not a str"
    if not isinstance(answer.prediction, str | None):
        return f"prediction {answer.prediction!r}, not a str or None"
    wrong = next((hit for hit in answer.hits if not isinstance(hit, Hit)), None)
    return wrong and f"{wrong!r} among its hits, not a Hit"


_PENDING = object()


def _serve(active: Sequence[_Run], services: Mapping[str, Any], batch_size: int) -> None:
    """Serve the cheap calls of all runs or, when only reader calls wait, those.

    Runs that have just begun thus catch up with the others before a reader is
    called, which keeps its batches full.
    """
    slots = [
        (running, slot, call)
        for running in active
        for slot, call in enumerate(running.waiting)
        if running.results[slot] is _PENDING
    ]
    cheap = [entry for entry in slots if not isinstance(entry[2], READER_CALLS)]
    batches: dict[tuple[type, str], list] = defaultdict(list)
    for entry in cheap or slots:
        batches[type(entry[2]), entry[2].service].append(entry)
    for (kind, name), entries in batches.items():
        if name not in services:
            raise ServiceError(
                f"a method asks for {kind.__name__} of the service {name!r}, which this run "
                f"does not have; it has: {', '.join(sorted(services)) or 'none'}"
            )
        size = batch_size if kind in READER_CALLS else len(entries)
        for start in range(0, len(entries), size):
            batch = entries[start : start + size]
            calls = [call for _, _, call in batch]
            try:
                results = serve(kind, services[name], calls)
            except ServiceError as error:
                raise ServiceError(f"the service {name!r}: {error}") from error
            if len(results) != len(calls):
                raise ServiceError(
                    f"the service {name!r} gave {len(results)} results for {len(calls)} calls"
                )
            for (running, slot, _), result in zip(batch, results, strict=True):
                running.receive(slot, result)


def serve(kind: type, service: Any, calls: Sequence[Any]) -> list[Any]:
    """Hand calls of one kind to one service as a batch -> a result a call.

    A result may be an exception: it is raised inside the method that asked.
    """
    if kind is Generate:
        return list(service.generate(calls))
    if kind is Read:
        return list(service.read(calls))
    if kind is Retrieve:
        return _retrieve(service, calls)
    if kind is Encode:
        return _split(service.encode, [call.texts for call in calls])
    if kind is Score:
        return _split(service.score, [call.items for call in calls])
    if kind is Recall:
        return [tuple(service.recall(call.query, call.k)) for call in calls]
    return [service.remember(call.passages) for call in calls]


def _retrieve(service: Any, calls: Sequence[Retrieve]) -> list[Any]:
    """One search for each k in the batch; hits in the order of the calls.

    A retriever refuses a blank query with all that came beside it: here its own question fails.
    """
    blank = MethodError("a search has a blank query: a method must not search for nothing")
    results: list[Any] = [None if call.query.strip() else blank for call in calls]
    asked = [i for i, result in enumerate(results) if result is None]
    for k in sorted({calls[i].k for i in asked}):
        places = [i for i in asked if calls[i].k == k]
        within = [calls[i].within for i in places]
        limited = any(w is not None for w in within)
        found = service.search([calls[i].query for i in places], k, within if limited else None)
        if len(found) != len(places):
            raise ServiceError(f"gave {len(found)} results for {len(places)} searches")
        for place, hits in zip(places, found, strict=True):
            results[place] = hits if isinstance(hits, Exception) else tuple(hits)
    return results


def _split(serve_all: Callable[[list], Any], parts: Sequence[Sequence]) -> list[Any]:
    """Serve all parts as one list, and cut the result back into parts."""
    together = serve_all(list(chain.from_iterable(parts)))
    if len(together) != (wanted := sum(map(len, parts))):
        raise ServiceError(f"gave {len(together)} results for {wanted} texts")
    results, start = [], 0
    for part in parts:
        results.append(together[start : start + len(part)])
        start += len(part)
    return results


def cost_of(call: Call, result: Any) -> Cost:
    """What one answered call adds to its question's cost."""
    if isinstance(call, READER_CALLS):
        new = len(result.tokens) if result.written is None else result.written
        return Cost(
            reader_calls=int(isinstance(call, Generate)),
            reads=int(isinstance(call, Read)),
            prompt_tokens=result.prompt_tokens,
            prefilled_tokens=result.prefilled,
            new_tokens=new if isinstance(call, Generate) else 0,
        )
    if isinstance(call, Retrieve | Recall):
        return Cost(retrievals=1)
    if isinstance(call, Encode):
        return Cost(encoded=len(call.texts))
    if isinstance(call, Score):
        return Cost(scored=len(call.items))
    return Cost()
