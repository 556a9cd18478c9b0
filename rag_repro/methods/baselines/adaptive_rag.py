"""Adaptive-RAG: a classifier tells how complex a question is, and that picks the method.

    class = argmax over A, B, C of Classifier(q)     (Jeong et al. 2024, section 3.2)
    A: the reader alone    B: one search    C: multi-step (`ircot`)

The classifier is a scorer: its items are (question, "A"), (question, "B") and
(question, "C"), their values the three classes' probabilities, so that no item
depends on another. Ties go to the simpler class. The original looks its answers
up in three finished runs, which is the same; it gives B 15 passages and C up to
15, the defaults here.

The classifier is trained from outcomes (T5-large in the original; an encoder with three
logits here); `training.complexity` makes the labels.

The trace begins with {"stage": "classify", "by": judge, "probabilities": [a, b, c]
or None, "class": letter}; a multi-step answer's own events follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from typing import Literal

from rag_repro.engine import Flow
from rag_repro.methods.base import builtin, fill_or_refuse
from rag_repro.methods.baselines.controls import no_retrieval, single_step
from rag_repro.methods.baselines.ircot import IRCoTSettings, ircot
from rag_repro.methods.sentences import ENGLISH, Sentences
from rag_repro.methods.stages import probabilities_of
from rag_repro.schema import Question, Score

CLASSES = ("A", "B", "C")


@dataclass(frozen=True)
class AdaptiveRAGSettings(IRCoTSettings):
    """Who says how complex a question is; the rest is multi-step's.

    judge: "classifier", or the control "random": the class is drawn by the
        question's id and `seed`, with given `shares` of A, B and C. With the
        shares that the classifier gave, it costs the same and knows nothing.
    classifier: the scorer's name; none with "random". One trained on
        shuffled labels is the other control, by its own name.
    """

    judge: Literal["classifier", "random"] = "classifier"
    classifier: str | None = "complexity-testbed"
    shares: Mapping[str, float] | None = None
    seed: int | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.judge == "classifier":
            if not self.classifier:
                raise ValueError("judge 'classifier' needs a classifier's name")
            fill_or_refuse(self, False, {"shares": None, "seed": None}, "judge 'classifier'")
            return
        shares = self.shares or {}
        whole = set(shares) == set(CLASSES) and abs(sum(shares.values()) - 1) < 1e-6
        if not whole or min(shares.values()) < 0:
            raise ValueError(
                f"shares is {self.shares}; judge 'random' needs how often the classifier says A, "
                "B and C, as {A: 0.5, B: 0.3, C: 0.2}, which add up to 1"
            )
        object.__setattr__(self, "shares", {letter: float(shares[letter]) for letter in CLASSES})
        object.__setattr__(self, "seed", self.seed or 0)
        object.__setattr__(self, "classifier", None)

    @property
    def needs(self) -> Mapping[str, str]:
        scorer = {self.classifier: "scorer"} if self.classifier else {}
        return {**super().needs, **scorer}


@builtin("adaptive_rag", 2, AdaptiveRAGSettings, "Jeong et al. 2024, section 3.2")
def adaptive_rag(
    question: Question, settings: AdaptiveRAGSettings, sentences: Sentences = ENGLISH
) -> Flow:
    """Classify the question, then answer it by its class's method."""
    judged = yield from classify(question, settings)
    if judged["class"] == "A":
        answer = yield from no_retrieval(question, settings)
    elif judged["class"] == "B":
        answer = yield from single_step(question, settings)
    else:
        answer = yield from ircot(question, settings, sentences)
    return replace(answer, trace=(judged, *answer.trace))


def classify(question: Question, settings: AdaptiveRAGSettings):
    """The question's class, as the trace's first event."""
    probabilities = None
    if settings.judge == "random":
        drawn = Random(f"complexity {settings.seed} {question.id}").random()
        # Sums of shares may end below 1 by a last bit.
        number = min(sum(edge <= drawn for edge in accumulate(settings.shares.values())), 2)
    else:
        items = tuple((question.text, letter) for letter in CLASSES)
        scores = yield Score(items, service=settings.classifier)
        probabilities = probabilities_of(scores, items, settings.classifier, "classes")
        number = probabilities.index(max(probabilities))
    return {
        "stage": "classify",
        "by": settings.judge,
        "probabilities": probabilities,
        "class": CLASSES[number],
    }
