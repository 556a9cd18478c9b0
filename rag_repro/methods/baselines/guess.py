"""Answers guessed from the question's words: no passage, no reader.

What a method scores on comparisons and on yes/no questions means something only
above these rows (`evaluation.heuristics`). No paper has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...engine import Flow
from ...evaluation import heuristics
from ...schema import Answer, Question
from ..base import MethodSpec, Settings, one_of

RULES = ("pick_one", "majority")


@dataclass(frozen=True)
class GuessSettings(Settings):
    """How to guess; k, prompt and max_new_tokens do nothing here.

    rule: "pick_one": `closed` where yes or no is asked for, else the first of
        two that the question offers, else nothing. "majority": `closed`
        whatever is asked.
    closed: the commonest answer, counted on questions that may be trained on.
    """

    rule: str = "pick_one"
    closed: str = "yes"

    def __post_init__(self):
        super().__post_init__()
        one_of("rule", self.rule, RULES)
        if not self.closed.strip():
            raise ValueError("closed is empty; it is the answer that is guessed, as yes")


def guess(question: Question, settings: GuessSettings) -> Flow:
    """One guess; "" where the rule knows none, which is wrong."""
    yield []  # asks for nothing: the engine knows methods as generators of calls
    if settings.rule == "majority":
        said = settings.closed
    else:
        said = heuristics.guess(question.text, closed=settings.closed) or ""
    return Answer(text=said, prediction=said)


GUESS = MethodSpec("guess", 2, guess, GuessSettings, "this book: evaluation.heuristics")
