"""Query-document concatenation (QDC): DR-RAG, section 2.2.1, equation 1.

    {d_1 .. d_k1}        = Retriever(q)
    q*_i                 = Concat(q, d_i)
    {d'_i,1 .. d'_i,k2}  = Retriever(q*_i)
    Cnt                  = {d_i} + the first d'_i,j of each i that is not in Cnt

What the equation leaves open, and what we take: Concat is "question passage"
with one space; the second stage adds one passage an i and goes round again
until k passages are chosen (with k1 < k2 one round would not give k);
passages stand in the order in which they were added.

`qdc` is this; `two_stage` leaves its choices open (equation 1, appendix A.2):

Equation 1 writes {d'_i,1 .. d'_i,k2} = Retriever(q*_i). Read to the letter, the
first of these is nearly always d_i itself, since q*_i holds its text, and with
k = 3 nothing could ever be added. Appendix A.2 matches q*_i "with the remaining
documents", and so do we: a ranking's depth counts passages outside the first
stage only.

The trace of these stages, plain data in `Answer.trace`, one entry an event:

    {"stage": "retrieve", "query": text, "beside": passage id or None, "found": ids}
    {"stage": "judge", "by": who, "pair": [d, d'], "probability": p, "positive": bool}
    {"stage": "put back", "passages": ids of gold that the classifier had refused}
    {"stage": "select", "by": who, "kept": ids, "left_out": ids offered and not kept}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from typing import Any, Literal

from rag_repro.engine import Flow
from rag_repro.methods.base import Settings, builtin
from rag_repro.methods.stages import RANDOM, read, search
from rag_repro.schema import Hit, Passage, Question


@dataclass(frozen=True)
class QDCSettings(Settings):
    """k1: passages of the first stage; None: half of k, rounded up.

    The second stage fills up to k, so k2 = k - k1. The paper gives no split.
    """

    k1: int | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.k1 is None:  # spelt out, so that it is the same condition either way
            object.__setattr__(self, "k1", ceil(self.k / 2))
        if not 1 <= self.k1 <= self.k:
            raise ValueError(f"k1 is {self.k1}; it must lie between 1 and k = {self.k}")


@builtin("qdc", 1, QDCSettings, "DR-RAG, section 2.2.1, equation 1")
def qdc(question: Question, settings: QDCSettings) -> Flow:
    """Two retrieval stages, then one reading."""
    hits = yield from two_stages(question, settings)
    return (yield from read(question, hits, settings))


def two_stages(question: Question, settings: QDCSettings):
    """Equation 1 up to Cnt: k hits, first stage first."""
    first = yield search(question.text, settings.k1, question, settings)
    # k is deep enough: fewer than k passages are in Cnt, so each ranking holds a new one.
    rankings = yield [
        search(concat(question.text, hit.passage), settings.k, question, settings) for hit in first
    ]
    return take_in_turns(first, rankings, settings.k)


def concat(query: str, passage: Passage) -> str:
    """q*_i = Concat(q, d_i)."""
    return f"{query} {passage.text}"


def take_in_turns(
    first: Sequence[Hit], rankings: Sequence[Sequence[Hit]], k: int
) -> tuple[Hit, ...]:
    """From each ranking in turn its first passage that is not yet chosen, up to k."""
    chosen = list(first[:k])
    seen = {hit.passage.id for hit in chosen}
    walks = [iter(ranking) for ranking in rankings]
    while walks and len(chosen) < k:
        for walk in tuple(walks):
            new = next((hit for hit in walk if hit.passage.id not in seen), None)
            if new is None:
                walks.remove(walk)
            elif len(chosen) < k:
                chosen.append(new)
                seen.add(new.passage.id)
    return tuple(chosen)


Ranking = Sequence[Hit]
Events = list[Mapping[str, Any]]


@dataclass(frozen=True)
class TwoStageSettings(QDCSettings):
    """What the second stage asks, and how it reads what it gets.

    second: "concat": each first-stage passage is put behind the question (QDC).
        "next" (table 4's "w/o QDC", which the paper does not define): no second
        query; the next passages of the question's own ranking stand in for the
        ranking of every d_i. "random" (not in the paper): the control, in which
        a passage drawn by chance from outside the first stage takes d_i's place
        in the query, and nowhere else.
    first: what "first" in the equations lets in. "equation": of each ranking in
        turn one passage, and round again until k. "algorithm": ranking after
        ranking, each to its end, as algorithm 1 without a break.
    """

    second: Literal["concat", "next", "random"] = "concat"
    first: Literal["equation", "algorithm"] = "equation"

    @property
    def k2(self) -> int:
        return self.k - self.k1

    @property
    def needs(self) -> Mapping[str, str]:
        return {RANDOM: "retriever"} if self.second == "random" else {}


def since(settings: TwoStageSettings) -> int:
    """The version since which these settings have answered the same.

    Before the second, a passage drawn into a query was handed on as what the query had found.
    """
    return 2 if settings.second == "random" else 1


@builtin("two_stage", 2, TwoStageSettings, "DR-RAG, section 2.2.1, equation 1, its readings", since)
def two_stage(question: Question, settings: TwoStageSettings) -> Flow:
    """Both stages, then one reading: QDC and its variants, without a classifier."""
    trace: Events = []
    first, rankings = yield from two_rankings(question, settings, settings.k2, trace)
    hits = fill(first, rankings, settings)
    trace.append(selected("rank", hits, chain(first, *rankings)))
    answer = yield from read(question, hits, settings)
    return replace(answer, trace=tuple(trace))


def two_rankings(question: Question, settings: TwoStageSettings, depth: int, trace: Events):
    """Stage `retrieve` -> first stage's hits, and the ranking of others for each of them.

    A ranking holds up to `depth` passages, none of the first stage or of a query. There are
    as many as first-stage hits, save where fewer random passages can be drawn.
    With k1 = k nothing is left to a second stage, and its rankings are empty.
    """
    if settings.second == "next":
        k = settings.k1 + (depth if settings.k2 else 0)
        hits = yield search(question.text, k, question, settings)
        trace.append(retrieved(question.text, None, hits))
        first, others = hits[: settings.k1], hits[settings.k1 :]
        return first, [others] * len(first)
    first = yield search(question.text, settings.k1, question, settings)
    trace.append(retrieved(question.text, None, first))
    if not settings.k2 or not first:
        return first, [()] * len(first)
    beside = first
    if settings.second == "random":
        beside = yield from drawn_outside(first, question, settings)
    queries = [concat(question.text, hit.passage) for hit in beside]
    # What stands in a query comes back first: a drawn passage is no find either.
    known = tuple({hit.passage.id: hit for hit in chain(first, beside)}.values())
    found = yield [search(q, depth + len(known), question, settings) for q in queries]
    rankings = [outside(known, ranking)[:depth] for ranking in found]
    for query, hit, ranking in zip(queries, beside, rankings, strict=True):
        trace.append(retrieved(query, hit.passage.id, ranking))
    return first, rankings


def drawn_outside(first: Ranking, question: Question, settings: TwoStageSettings):
    """As many passages as `first` holds, by chance from the others; the same at every run.

    The service ranks by chance, seeded by the query, for which the question's
    id stands; with `own_candidates` it draws from these alone.
    """
    call = search(question.id, 2 * len(first), question, settings)
    hits = yield replace(call, service=RANDOM)
    return outside(first, hits)[: len(first)]


def outside(first: Ranking, ranking: Iterable[Hit]) -> tuple[Hit, ...]:
    """The ranking without the passages of `first`."""
    taken = {hit.passage.id for hit in first}
    return tuple(hit for hit in ranking if hit.passage.id not in taken)


def fill(
    first: Ranking, rankings: Sequence[Ranking], settings: TwoStageSettings
) -> tuple[Hit, ...]:
    """Cnt of equation 1: the first stage, filled up to k without a classifier."""
    if settings.first == "algorithm":
        rankings = [list(chain.from_iterable(rankings))]
    return take_in_turns(first, rankings, settings.k)


def retrieved(query: str, beside: str | None, hits: Iterable[Hit]) -> dict[str, Any]:
    return {
        "stage": "retrieve",
        "query": query,
        "beside": beside,
        "found": [hit.passage.id for hit in hits],
    }


def selected(by: str, kept: Iterable[Hit], offered: Iterable[Hit]) -> dict[str, Any]:
    chosen = [hit.passage.id for hit in kept]
    left_out = dict.fromkeys(hit.passage.id for hit in offered if hit.passage.id not in chosen)
    return {"stage": "select", "by": by, "kept": chosen, "left_out": list(left_out)}
