"""The plainest ways to answer: without passages, with one search, with gold.

`no_retrieval` and `gold_passages` frame every other result: what the reader
knows by itself, and what it could do if retrieval were perfect.

`given_passages`: passages handed to the reader without a search.
No paper has this control. It tells a reader that cannot read from a retriever
that does not find (the study's gate), and redundancy from recall: gold passages
are all there, one is missing, or none is there, among others that are near the
question or drawn by chance. More `others` are those of before and further ones,
so that conditions differ by what is added and by nothing else; only the order
of the passages is drawn anew, by the question's id, since a reader may lean on it.

`placed_gold`: the same passages with the gold ones first, in the middle or last.
R²AG starts from "lost in the middle" (Liu et al. 2024) and never shows it, since its
passages stand as the retriever ranks them. Here they are what the retriever finds, and
in its order, but for the gold ones, which stand together where `place` says.

`guess`: answers guessed from the question's words, without passage or reader.
What a method scores on comparisons and on yes/no questions means something only
above these rows (`evaluation.heuristics`). No paper has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Annotated, Literal

from rag_repro.engine import Flow
from rag_repro.evaluation import heuristics
from rag_repro.methods.base import Count, Settings, Within, builtin
from rag_repro.methods.stages import RANDOM, read, retrieve, search
from rag_repro.schema import Answer, Hit, Question, Retrieve


@builtin("no_retrieval", 2, Settings, "no passages")
def no_retrieval(question: Question, settings: Settings) -> Flow:
    """The reader alone."""
    return (yield from read(question, (), settings))


@builtin("single_step", 1, Settings, "retrieve once, then read")
def single_step(question: Question, settings: Settings) -> Flow:
    """Retrieve the k best passages for the question itself, then read them."""
    hits = yield from retrieve(question, settings)
    return (yield from read(question, hits, settings))


@builtin("gold_passages", 1, Settings, "read the gold passages")
def gold_passages(question: Question, settings: Settings) -> Flow:
    """Read the question's gold passages: the ceiling of any retrieval."""
    hits = yield Retrieve(question.text, k=len(question.gold), within=question.gold_ids)
    return (yield from read(question, hits, settings))


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

    gold: Literal["all", "some", "none"] = "all"
    others: Annotated[int, Within(0)] | None = None
    kind: Literal["near", "random"] = "near"
    trace: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.others is not None and self.k != Settings.k:
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


@builtin("given_passages", 1, GivenSettings, "this book: a control of readers")
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


@dataclass(frozen=True)
class PlacedSettings(Settings):
    """place: where the gold passages stand among the k, together."""

    k: Count = 10
    place: Literal["first", "middle", "last"] = "first"


@builtin("placed_gold", 1, PlacedSettings, "this book: Liu et al. 2024's control")
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


@dataclass(frozen=True)
class GuessSettings(Settings):
    """How to guess; k, prompt and max_new_tokens do nothing here.

    rule: "pick_one": `closed` where yes or no is asked for, else the first of
        two that the question offers, else nothing. "majority": `closed`
        whatever is asked.
    closed: the commonest answer, counted on questions that may be trained on.
    """

    rule: Literal["pick_one", "majority"] = "pick_one"
    closed: str = "yes"

    def __post_init__(self):
        super().__post_init__()
        if not self.closed.strip():
            raise ValueError("closed is empty; it is the answer that is guessed, as yes")


@builtin("guess", 2, GuessSettings, "this book: evaluation.heuristics")
def guess(question: Question, settings: GuessSettings) -> Flow:
    """One guess; "" where the rule knows none, which is wrong."""
    yield []  # asks for nothing: the engine knows methods as generators of calls
    if settings.rule == "majority":
        said = settings.closed
    else:
        said = heuristics.guess(question.text, closed=settings.closed) or ""
    return Answer(text=said, prediction=said)
