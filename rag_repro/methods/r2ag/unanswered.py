"""Prompts that a reader reads and does not answer: R²AG's, and RAG's without embeddings."""

from __future__ import annotations

from dataclasses import dataclass

from ...schema import Question
from ..base import Settings
from ..reading import PROMPTS
from ..stages import retrieve
from .method import R2AGSettings, informed

_NOT_TOLD = ("inputs", "encoder", "columns", "similarity", "exchange")


@dataclass(frozen=True)
class UnansweredSettings(R2AGSettings):
    """As R²AG's, but that a prompt may have no place for embeddings: nothing is told then."""

    def __post_init__(self):
        if self.prompt in PROMPTS and not PROMPTS[self.prompt].informed:
            # What is not told must not make another condition; "free" is told nothing either.
            for name in _NOT_TOLD:
                value = getattr(R2AGSettings, name)
                object.__setattr__(self, name, "free" if name == "inputs" else value)
        # Nothing is written.
        object.__setattr__(self, "max_new_tokens", Settings.max_new_tokens)
        super().__post_init__()

    def _check_prompt(self) -> None:
        if self.prompt is None:
            raise ValueError("a prompt is read here, and nothing else: name a prompt")


def prompted(question: Question, settings: UnansweredSettings):
    """-> the passages, the prompt that would be answered, and the trace of what was told."""
    hits = yield from retrieve(question, settings)
    template = PROMPTS[settings.prompt]
    soft, trace = (), []
    if template.informed:
        soft, trace = yield from informed(question, hits, settings)
    return hits, template.fill(question, hits, soft), trace
