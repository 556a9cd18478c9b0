"""Query-document concatenation (QDC): DR-RAG, section 2.2.1, equation 1.

    {d_1 .. d_k1}        = Retriever(q)
    q*_i                 = Concat(q, d_i)
    {d'_i,1 .. d'_i,k2}  = Retriever(q*_i)
    Cnt                  = {d_i} + the first d'_i,j of each i that is not in Cnt

What the equation leaves open, and what we take: Concat is "question passage"
with one space; the second stage adds one passage an i and goes round again
until k passages are chosen (with k1 < k2 one round would not give k);
passages stand in the order in which they were added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from ...engine import Flow
from ...schema import Hit, Passage, Question
from ..base import MethodSpec, Settings
from ..stages import read, search


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


QDC = MethodSpec("qdc", 1, qdc, QDCSettings, "DR-RAG, section 2.2.1, equation 1")
