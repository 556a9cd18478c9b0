"""What a method returns for a question, and what that took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_repro.schema.texts import Hit, Passage


@dataclass(frozen=True, slots=True)
class Cost:
    """What an answer took, counted; cached calls count like any other.

    `reads` are passes over a given text (teacher forcing), counted apart from
    the calls in which a reader writes. `prefilled_tokens` depend on what the
    questions of one batch share, so records leave them out unless a question
    was alone, as where it is timed.
    """

    reader_calls: int = 0
    reads: int = 0
    prompt_tokens: int = 0
    prefilled_tokens: int = 0
    new_tokens: int = 0
    retrievals: int = 0
    encoded: int = 0
    scored: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, n) + getattr(other, n) for n in self.__slots__))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method returns for one question.

    text: the reader's words; prediction: the answer extracted from them, None
    where they did not follow the asked form (counted, scored as wrong).
    trace: the method's own events, plain data. The engine fills `cost`,
    `calls` (kinds in order), `remembered` (what went into a reservoir, so that
    an interrupted run can rebuild it) and, where the question failed, `error`.
    """

    text: str = ""
    prediction: str | None = None
    hits: tuple[Hit, ...] = ()
    trace: tuple[Mapping[str, Any], ...] = ()
    cost: Cost = Cost()
    calls: tuple[str, ...] = ()
    remembered: tuple[Passage, ...] = ()
    error: str | None = None
