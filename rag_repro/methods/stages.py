"""The stages that methods are made of: formulate, retrieve, select, read.

Each is a generator of calls, used with `yield from`, so that the ideas of the
four papers can be combined without copying any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..engine import Flow
from ..schema import Answer, Generate, Hit, Question, Retrieve, Soft
from .base import Settings
from .reading import PROMPTS, extract

RANDOM = "random"  # the retriever that ranks by chance


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
