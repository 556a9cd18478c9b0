"""How likely does a reader hold the right answer? Measured, with embeddings and without them.

Whether an answer is right is one bit, and hundreds of questions are needed to tell two
formers apart by it. Here nothing is written: each accepted answer is put where the reader's
own would begin, as the lessons have it, and the reader tells how likely it holds each token:

    log p(a) = sum of log p(token | question, passages, a's tokens before it)

which answers even where both formers are wrong, or both right. It is what a former is
trained to raise, without the answer's end, and it heeds the form as well: a reader that
begins with "The answer is" holds the bare answer less likely, be it right or wrong.

The trace, behind what R²AG tells of features:

    {"stage": "likelihood", "nats": log p of each accepted answer}
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...engine import Flow
from ...schema import Answer, Question, Read
from ..base import MethodSpec
from ..reading import PROMPTS
from .unanswered import UnansweredSettings, prompted


@dataclass(frozen=True)
class LikelihoodCheckSettings(UnansweredSettings):
    """answers: how many of a question's accepted ones are read, the first."""

    answers: int = 4

    def __post_init__(self):
        if self.answers < 1:
            raise ValueError(f"answers is {self.answers}; it must be at least 1")
        super().__post_init__()


def likelihood_check(question: Question, settings: LikelihoodCheckSettings) -> Flow:
    """Put each accepted answer behind the prompt, and tell how likely the reader holds it.

    ValueError: the question has no answer.
    """
    if not question.answers:
        raise ValueError(f"question {question.id!r} has no answer whose likelihood could be told")
    hits, prompt, trace = yield from prompted(question, settings)
    told = map(PROMPTS[settings.prompt].told, question.answers[: settings.answers])
    passes = yield [Read(prompt, answer) for answer in told]
    nats = [_log(one.trace.probability) for one in passes]
    return Answer(hits=tuple(hits), trace=(*trace, {"stage": "likelihood", "nats": nats}))


def _log(probability: np.ndarray) -> float:
    """log p of tokens (n,); one that the reader rules out is as likely as float32 can tell."""
    least = np.finfo(np.float32).tiny
    return float(np.log(np.maximum(probability.astype(float), least)).sum())


LIKELIHOOD_CHECK = MethodSpec(
    "likelihood_check", 1, likelihood_check, LikelihoodCheckSettings, "this book"
)
