"""Classifier Inverse Selection (CIS): DR-RAG, section 2.2.2, equation 3.

    Cnt    = the k passages of equation 1
    P_i,j  = 1  if C(q, d'_i,j, d) is positive for any first-stage d
    Cnt    = Cnt - {d'_i,j with P_i,j = 0}

The paper's text differs: all C(k, 2) pairs are judged, and any passage that is
negative with all others goes, one of the first stage too. `pairs` chooses. In
the equation, "exists i" reuses the index of d'_i,j; we take any first-stage
passage, not only the one whose query found d'. All pairs go into one call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from ...engine import Flow
from ...schema import Question
from ..base import MethodSpec
from ..stages import read
from .judging import SelectionSettings, at_its_count, judged, refused_gold
from .second_stage import Events, Ranking, fill, one_of, since, two_rankings

PAIRS = ("equation", "text")


@dataclass(frozen=True)
class CISSettings(SelectionSettings):
    """pairs: which are judged, and who may go: "equation" 3 or the section's "text"."""

    pairs: str = "equation"

    def __post_init__(self):
        super().__post_init__()
        one_of("pairs", self.pairs, PAIRS)


def cis(question: Question, settings: CISSettings) -> Flow:
    """Two retrieval stages, inverse selection, one reading."""
    trace: Events = []
    # k2 is deep enough: at most k2 - 1 of a ranking can have been taken from others before.
    first, rankings = yield from two_rankings(question, settings, settings.k2, trace)
    second = fill(first, rankings, settings)[len(first) :]
    hits = yield from inverse_selection(question, first, second, settings, trace)
    answer = yield from read(question, hits, settings)
    return replace(answer, trace=tuple(trace))


def inverse_selection(
    question: Question, first: Ranking, second: Ranking, settings: CISSettings, trace: Events
):
    """Stage `select` -> what is left of first-stage and second-stage hits, in their order.

    A passage that no other stands beside was never judged negative, and stays.
    """
    if settings.pairs == "equation":
        fixed, judged_ones = tuple(first), tuple(second)
        pairs = [(d, e) for e in second for d in first]
    else:
        fixed, judged_ones = (), (*first, *second)
        pairs = list(combinations(judged_ones, 2))
    positive = yield from judged(question, pairs, settings, trace)
    saved = {
        hit.passage.id for pair, yes in zip(pairs, positive, strict=True) if yes for hit in pair
    }
    kept = [hit for hit in judged_ones if not pairs or hit.passage.id in saved]
    if back := refused_gold(question, kept, judged_ones, settings, trace):
        kept = [hit for hit in judged_ones if hit in kept or hit in back]
    return (yield from at_its_count(question, fixed, kept, judged_ones, settings, trace))


CIS = MethodSpec("cis", 2, cis, CISSettings, "DR-RAG, section 2.2.2, equation 3", since=since)
