"""Passages handed to the reader without a search: what it makes of gold, and of what stands beside.

No paper has this control. It tells a reader that cannot read from a retriever
that does not find (the study's gate), and redundancy from recall: gold passages
are all there, one is missing, or none is there, among others that are near the
question or drawn by chance. More `others` are those of before and further ones,
so that conditions differ by what is added and by nothing else; only the order
of the passages is drawn anew, by the question's id, since a reader may lean on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from ...engine import Flow
from ...schema import Hit, Question, Retrieve
from ..base import MethodSpec, Settings, one_of
from ..stages import RANDOM, read, search

GOLD = ("all", "some", "none")
KINDS = ("near", "random")


@dataclass(frozen=True)
class GivenSettings(Settings):
    """What the reader is given.

    gold: "all" gold passages; "some": all but one, which is drawn by the
        question's id, so that of a single one nothing is left; "none".
    others: how many passages that are not gold; None: up to k in all (all gold
        passages stay, be they more than k).
    kind: the others are the best that the retriever finds for the question
        (with `own_candidates` of the question's own), or drawn by chance.
    trace: note how unsure the reader is of its tokens (`stages.read`).
    """

    gold: str = "all"
    others: int | None = None
    kind: str = "near"
    trace: bool = False

    def __post_init__(self):
        super().__post_init__()
        one_of("gold", self.gold, GOLD)
        one_of("kind", self.kind, KINDS)
        if self.others is not None:
            if self.others < 0:
                raise ValueError(f"others is {self.others}; it must be at least 0")
            if self.k != Settings.k:
                raise ValueError(
                    f"k {self.k} would do nothing beside others {self.others}; leave one out"
                )
        if self.others == 0:  # none of either kind: the same condition
            object.__setattr__(self, "kind", "near")
        if self.trace and self.prompt is None:
            raise ValueError("trace would do nothing without a prompt; leave it out")

    @property
    def needs(self) -> Mapping[str, str]:
        return {RANDOM: "retriever"} if self.kind == "random" else {}


def given_passages(question: Question, settings: GivenSettings) -> Flow:
    """Take gold passages and others, shuffle them, read."""
    gold = question.gold_ids
    if not gold:
        raise ValueError(f"question {question.id!r} names no gold passages; none can be given")
    draw = Random(f"given {question.id}")
    kept = list(gold) if settings.gold == "all" else []
    if settings.gold == "some":
        kept = sorted(draw.sample(gold, len(gold) - 1), key=gold.index)
    hits: list[Hit] = []
    if kept:
        hits += yield Retrieve(question.text, k=len(kept), within=tuple(kept))
    count = max(0, settings.k - len(kept)) if settings.others is None else settings.others
    if count:
        hits += yield from others(question, count, settings)
    in_any_order(question, hits)
    return (yield from read(question, hits, settings, trace=settings.trace))


def in_any_order(question: Question, hits: list[Hit]) -> None:
    """Shuffle by the question's id, since a reader may lean on a place."""
    Random(f"order {question.id}").shuffle(hits)


def near(question: Question, count: int, settings: Settings):
    """So many passages that are not gold, the nearest to the question; fewer at the end."""
    found = yield search(question.text, count + len(question.gold), question, settings)
    return [hit for hit in found if hit.passage.id not in question.gold_ids][:count]


def others(question: Question, count: int, settings: GivenSettings):
    """So many passages that are not gold, best first; fewer where there are no more."""
    if settings.kind == "near":
        return (yield from near(question, count, settings))
    # The service ranks by chance, seeded by the query.
    call = search(question.id, count + len(question.gold), question, settings)
    found = yield replace(call, service=RANDOM)
    return [hit for hit in found if hit.passage.id not in question.gold_ids][:count]


GIVEN_PASSAGES = MethodSpec(
    "given_passages", 1, given_passages, GivenSettings, "this book: a control of readers"
)
