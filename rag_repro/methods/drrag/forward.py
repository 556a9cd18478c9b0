"""Classifier Forward Selection (CFS): DR-RAG, section 2.2.2, equation 4, algorithm 1.

    P_i,j = 1  if C(q, d_i, d'_i,j) is positive
    Cnt   = {d_i} + the first d'_i,j of each i with P_i,j = 1

A passage comes in when it is positive beside the passage whose query found it;
else the next of that ranking is tried. What the paper leaves open, and what we
take: a passage that is in Cnt already is passed over (algorithm 1 says so,
equation 4 does not); k passages are the most (table 5's mean numbers stay below
k); each d_i brings in one passage, or ceil(k2 / k1) in as many rounds, since
with k1 < k2 one each could not give k. A d_i that finds no partner leaves its
place empty. Algorithm 1 has no break after a positive one; `first` chooses.

C is asked for no pair that this search does not need. What it must read in any
case goes into one call: with room for n passages, the next n of a ranking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import ceil

from ...engine import Flow
from ...schema import Hit, Question
from ..base import MethodSpec
from ..stages import read
from .judging import SelectionSettings, at_its_count, judged, refused_gold
from .second_stage import Events, Ranking, outside, since, two_rankings

DEPTH = 10
MOST_PAIRS = 150  # asked one by one, each waits for the one before


@dataclass(frozen=True)
class CFSSettings(SelectionSettings):
    """How far a positive partner is looked for.

    depth: how deep each second ranking is read, first-stage passages not
        counted; None: 10 with equation 4, whose text searches on "for the next"
        without saying how long, and k2 with algorithm 1, which says so.
    cap: stop at k passages. Without (algorithm 1 to the letter) up to
        k1 x depth are added.
    """

    depth: int | None = None
    cap: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.depth is None:
            deep = DEPTH if self.first == "equation" else max(1, self.k2)
            object.__setattr__(self, "depth", deep)
        if self.depth < 1:
            raise ValueError(f"depth is {self.depth}; it must be at least 1")
        if self.first == "equation":
            if not self.cap:
                raise ValueError(
                    "cap is off, which equation 4 cannot mean: it adds one passage at a time "
                    "until there are k; leave cap on, or take first: algorithm"
                )
            if self.k1 * self.depth > MOST_PAIRS:
                raise ValueError(
                    f"k1 = {self.k1} rankings read {self.depth} deep may ask "
                    f"{self.k1 * self.depth} pairs one by one; at most {MOST_PAIRS} are asked: "
                    f"take a depth of at most {MOST_PAIRS // self.k1}"
                )


def cfs(question: Question, settings: CFSSettings) -> Flow:
    """Two retrieval stages, forward selection, one reading."""
    trace: Events = []
    hits = yield from two_stages_selected(question, settings, trace)
    answer = yield from read(question, hits, settings)
    return replace(answer, trace=tuple(trace))


def two_stages_selected(question: Question, settings: CFSSettings, trace: Events):
    """All stages before the reading -> hits."""
    first, rankings = yield from two_rankings(question, settings, settings.depth, trace)
    return (yield from forward_selection(question, first, rankings, settings, trace))


def forward_selection(
    question: Question,
    first: Ranking,
    rankings: Sequence[Ranking],
    settings: CFSSettings,
    trace: Events,
):
    """Stage `select` -> first-stage hits, then those accepted, in the order of acceptance.

    rankings: for each of `first` the candidates beside it, best first. Any
    ranked hits will do: hits[:k1] and [hits[k1:]] * k1.
    """
    offered: dict[str, Hit] = {}
    for hit in outside(first, chain(*rankings)):
        offered.setdefault(hit.passage.id, hit)
    chosen: list[Hit] = []
    seen = {hit.passage.id for hit in first}
    places = max(0, settings.k - len(first)) if settings.cap else len(offered)
    walks = list(zip(first, map(iter, rankings), strict=False))
    rounds = ceil(settings.k2 / settings.k1) if settings.first == "equation" else 1
    for d, ranking in walks * rounds:
        room = places - len(chosen)
        wanted = min(room, 1) if settings.first == "equation" else room
        new = yield from _partners(question, d, ranking, wanted, seen, settings, trace)
        chosen += new
        seen |= {hit.passage.id for hit in new}
    others = tuple(offered.values())
    chosen += refused_gold(question, (*first, *chosen), others, settings, trace)
    return (yield from at_its_count(question, first, chosen, others, settings, trace))


def _partners(
    question: Question,
    d: Hit,
    ranking: Iterator[Hit],
    wanted: int,
    seen: set[str],
    settings: CFSSettings,
    trace: Events,
):
    """The ranking's next `wanted` unseen passages that are positive beside d, or all there are."""
    unseen = (hit for hit in ranking if hit.passage.id not in seen)
    found: list[Hit] = []
    while batch := list(islice(unseen, wanted - len(found))):
        positive = yield from judged(question, [(d, hit) for hit in batch], settings, trace)
        found += [hit for hit, yes in zip(batch, positive, strict=True) if yes]
    return found


CFS = MethodSpec(
    "cfs", 2, cfs, CFSSettings, "DR-RAG, section 2.2.2, equation 4 and algorithm 1", since=since
)
