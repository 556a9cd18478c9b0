"""What compressors share: how a reader is shown what they leave, and how the trace tells it.

What is left stands in the reading prompt as passages of its own, so that any
reading prompt will do; with nothing left the reader is asked without passages.
Without `prompt` no reader answers: what is left is all that the trace tells.

    {"stage": "compress", "by": name, "texts": what is left, "after": its size,
     "before": {passage id: size given}, "kept": {passage id: size left} or None}

`kept` is None where nobody knows from which passage the words are. Sizes are in
characters without white space: not all compressors come with a tokenizer, and
one that drops parts of words leaves nearly as many words as there were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..engine import Flow
from ..schema import Hit, Passage, Question
from .base import Settings
from .stages import read


@dataclass(frozen=True)
class CompressorSettings(Settings):
    """k: passages that are compressed together (R²AG's ten)."""

    k: int = 10
    max_new_tokens: int = 100

    @property
    def answers(self) -> bool:
        return self.prompt is not None


def left(text: str, rank: int = 1) -> Hit:
    """A text that a compressor made or left over, as a reading prompt takes it: untitled."""
    return Hit(Passage("", "", text), 0.0, rank)


def before(hits: Sequence[Hit]) -> dict[str, str]:
    """Passage id -> text, as most compressors are given it."""
    return {hit.passage.id: hit.passage.text for hit in hits}


def told(
    by: str,
    before: Mapping[str, str],
    shown: Sequence[Hit],
    kept: Mapping[str, str] | None,
    **more: Any,
) -> dict[str, Any]:
    """The event that says what was compressed. before, kept: passage id -> text."""
    texts = [hit.passage.text for hit in shown]
    return {
        "stage": "compress",
        "by": by,
        "texts": texts,
        "after": sum(map(size, texts)),
        "before": {name: size(text) for name, text in before.items()},
        "kept": None if kept is None else {name: size(text) for name, text in kept.items()},
        **more,
    }


def size(text: str) -> int:
    """Characters that are no white space."""
    return len("".join(text.split()))


def read_left(
    question: Question,
    shown: Sequence[Hit],
    found: Sequence[Hit],
    settings: Settings,
    trace: Sequence[Mapping[str, Any]],
) -> Flow:
    """Read what is left. The answer's hits are the passages that were found, not what is left."""
    answer = yield from read(question, shown, settings)
    return replace(answer, hits=tuple(found), trace=(*trace, *answer.trace))


def fill_or_refuse(settings: Settings, used: Mapping[str, Any], unused: Sequence[str], by: str):
    """Give settings that were left out (None) their defaults; refuse those without effect.

    used: name -> default. by: the choice under which the unused ones do nothing.
    """
    for name in unused:
        if getattr(settings, name) is not None:
            raise ValueError(f"{name} would do nothing with {by}; leave it out")
    for name, default in used.items():
        if getattr(settings, name) is None:
            object.__setattr__(settings, name, default)


def at_least_one(settings: Settings, *names: str) -> None:
    """Refuse counts below 1; None is let through."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
