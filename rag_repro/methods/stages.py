"""The stages that methods are made of: formulate, retrieve, select, read.

Each is a generator of calls, used with `yield from`, so that the ideas of the
four papers can be combined without copying any.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rag_repro.engine import Flow
from rag_repro.methods.base import Settings
from rag_repro.methods.reading import PROMPTS, extract
from rag_repro.schema import Answer, Generate, Hit, Question, Retrieve, Soft

RANDOM = "random"  # the retriever that ranks by chance


@dataclass(frozen=True)
class Retrieved:
    """What the stages before a reading bring: hits, an embedding each (or none), their trace."""

    hits: tuple[Hit, ...]
    soft: tuple[Soft, ...] = ()
    events: tuple[Any, ...] = ()


Below = Callable[[Question], Generator[Any, Any, Retrieved]]
"""The stages below a reader, which a dynamic one calls again: question (or query) -> Retrieved."""


def search(query: str, k: int, question: Question, settings: Settings) -> Retrieve:
    """The call that fetches k passages for a query made from the question.

    Raises ValueError where `own_candidates` is asked of a question without any.
    """
    if settings.own_candidates and not question.candidates:
        raise ValueError(f"question {question.id!r} came without candidates of its own")
    within = question.candidates if settings.own_candidates else None
    return Retrieve(query, k=k, within=within)


def retrieve(question: Question, settings: Settings):
    """Stage `retrieve` in one step: the k best hits for the question's own text."""
    return (yield search(question.text, settings.k, question, settings))


def read(
    question: Question,
    hits: Sequence[Hit],
    settings: Settings,
    *,
    trace: bool = False,
    soft: Sequence[Soft] = (),
) -> Flow:
    """Stage `read`: one reader call over the hits, and the answer extracted.

    soft: an embedding before each hit, where the prompt has places for them.

    With `settings.prompt` None the hits are the whole answer. With `trace` the
    answer's trace has {"stage": "read", "entropy": the highest of the tokens', in nats}.
    """
    if settings.prompt is None:
        return Answer(hits=tuple(hits))
    template = PROMPTS[settings.prompt]
    out = yield Generate(
        template.fill(question, hits, soft),
        max_new_tokens=settings.max_new_tokens,
        stop=template.stop,
        trace=trace,
    )
    events = ()
    if trace and len(out.trace.entropy):
        events = ({"stage": "read", "entropy": float(out.trace.entropy.max())},)
    prediction = extract(out.text, template)
    return Answer(text=out.text, prediction=prediction, hits=tuple(hits), trace=events)


def side_by_side(flows: Iterable[Generator[Any, Any, Any]]):
    """Several stages in step -> their results, in their order.

    What they wait for is asked together, as one gather; those that end early wait for the others.
    """
    flows = list(flows)
    results: list[Any] = [None] * len(flows)
    waiting: dict[int, Any] = {}

    def advance(place: int, told: Any) -> None:
        try:
            waiting[place] = flows[place].send(told)
        except StopIteration as end:
            results[place] = end.value

    for place in range(len(flows)):
        advance(place, None)
    while waiting:
        asked, waiting = waiting, {}
        calls = [c for one in asked.values() for c in (one if isinstance(one, list) else [one])]
        told = iter((yield calls))
        for place, one in asked.items():
            advance(place, [next(told) for _ in one] if isinstance(one, list) else next(told))
    return results


def probabilities_of(
    scores: Iterable[float], items: Sequence, name: str, what: str = "items"
) -> list[float]:
    """A classifier's answer to a `Score` call; ValueError: not one probability for each item."""
    probabilities = [float(p) for p in scores]
    if len(probabilities) != len(items):
        raise ValueError(
            f"the classifier {name!r} gave {len(probabilities)} scores for {len(items)} {what}"
        )
    wrong = next((p for p in probabilities if not 0 <= p <= 1), None)
    if wrong is not None:
        raise ValueError(f"the classifier {name!r} gave {wrong}, which is no probability")
    return probabilities
