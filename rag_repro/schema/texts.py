"""The material: passages, questions with what they need, and what a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Passage:
    """A titled piece of text in a corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Gold:
    """A passage that a question needs.

    `role` is "static" where the passage's subject is named in the question,
    "dynamic" where it is reachable only through another passage (DR-RAG,
    section 1), None where nobody knows. `hop` counts from 1.
    """

    passage_id: str
    role: str | None = None
    hop: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One single-hop step of a question's chain."""

    question: str
    answer: str
    passage_id: str | None = None


@dataclass(frozen=True, slots=True)
class Interpretation:
    """One way to understand an ambiguous question, with its own answers."""

    question: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its accepted answers and, where known, what it needs.

    `candidates` are the ids of the passages that its data set hands out with
    it; `cluster` names what the bootstrap resamples together (the question
    itself where empty); `interpretations` are filled for ambiguous ones.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    kind: str | None = None
    hops: int | None = None
    gold: tuple[Gold, ...] = ()
    candidates: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    interpretations: tuple[Interpretation, ...] = ()
    cluster: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gold_ids(self) -> tuple[str, ...]:
        return tuple(gold.passage_id for gold in self.gold)

    @property
    def unit(self) -> str:
        """What the bootstrap resamples it with."""
        return self.cluster or self.id


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage; `rank` counts from 1 within its own search."""

    passage: Passage
    score: float
    rank: int
