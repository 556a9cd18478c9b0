"""The same passages with the gold ones first, in the middle or last: does a reader miss them?

R²AG starts from "lost in the middle" (Liu et al. 2024) and never shows it, since its
passages stand as the retriever ranks them. Here they are what the retriever finds, and
in its order, but for the gold ones, which stand together where `place` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...engine import Flow
from ...schema import Hit, Question
from ..base import MethodSpec, Settings, one_of
from ..stages import read, retrieve

PLACES = ("first", "middle", "last")


@dataclass(frozen=True)
class PlacedSettings(Settings):
    """place: where the gold passages stand among the k, one of PLACES."""

    k: int = 10
    place: str = "first"

    def __post_init__(self):
        super().__post_init__()
        one_of("place", self.place, PLACES)


def placed_gold(question: Question, settings: PlacedSettings) -> Flow:
    """Retrieve, move the gold passages that were found, read."""
    if not question.gold:
        raise ValueError(f"question {question.id!r} names no gold passages; none can be moved")
    hits = yield from retrieve(question, settings)
    return (yield from read(question, moved(question, hits, settings.place), settings))


def moved(question: Question, hits: Sequence[Hit], place: str) -> list[Hit]:
    """The hits with the gold ones together; where no middle is, it begins at the earlier place."""
    gold = [hit for hit in hits if hit.passage.id in question.gold_ids]
    others = [hit for hit in hits if hit.passage.id not in question.gold_ids]
    before = {"first": 0, "middle": len(others) // 2, "last": len(others)}[place]
    return [*others[:before], *gold, *others[before:]]


PLACED_GOLD = MethodSpec(
    "placed_gold", 1, placed_gold, PlacedSettings, "this book: Liu et al. 2024's control"
)
