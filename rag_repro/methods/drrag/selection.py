"""Selection by the classifier C(q, d, d'): are two passages needed together? DR-RAG, section 2.2.2.

A pair is given as the texts (question, passage found first, the other), without
titles, as table 10 shows them; C is trained on both orders, and asked for one.

Classifier Inverse Selection (CIS), equation 3:

    Cnt    = the k passages of equation 1
    P_i,j  = 1  if C(q, d'_i,j, d) is positive for any first-stage d
    Cnt    = Cnt - {d'_i,j with P_i,j = 0}

The paper's text differs: all C(k, 2) pairs are judged, and any passage that is
negative with all others goes, one of the first stage too. `pairs` chooses. In
the equation, "exists i" reuses the index of d'_i,j; we take any first-stage
passage, not only the one whose query found d'. All pairs go into one call.

Classifier Forward Selection (CFS), equation 4, algorithm 1:

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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice
from math import ceil
from random import Random
from typing import Literal

from rag_repro.engine import Flow
from rag_repro.methods.base import Count, Share, builtin
from rag_repro.methods.drrag.concatenation import (
    Events,
    Ranking,
    TwoStageSettings,
    fill,
    outside,
    selected,
    since,
    two_rankings,
)
from rag_repro.methods.stages import probabilities_of, read, search
from rag_repro.schema import Hit, Question, Score

BM25 = "bm25"


@dataclass(frozen=True)
class SelectionSettings(TwoStageSettings):
    """Who decides, and from when on a pair is positive.

    judge: "classifier": C. The others are controls that the paper lacks.
        "oracle": the gold labels, by equation 2, in place of C: the most that
        selection could do. "random": C says how many passages are kept; which
        ones, of those on offer, is drawn by chance (seeded by the question's
        id). "ranked": likewise the first that the second queries find, as QDC
        takes them. "nearest": likewise, and those go that are least similar to
        the question. "similarity": C says how many; the question's own ranking,
        which, with no second query. "bm25": likewise BM25's ranking.
    classifier: the service that is C; none with the oracle.
    threshold: the least probability that is positive. The paper calls it
        predefined and does not give it.
    put_back: gold passages that C refused come back, beyond k where need be, to
        show what these mistakes cost (not in the paper; it needs the labels).
    """

    judge: Literal["classifier", "oracle", "random", "similarity", "nearest", "bm25", "ranked"] = (
        "classifier"
    )
    classifier: str | None = "drrag-classifier"
    threshold: Share = 0.5
    put_back: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.put_back and self.judge != "classifier":
            raise ValueError(
                f"put_back is on, and judge is {self.judge!r}; it mends what the classifier "
                "refused: leave judge at 'classifier'"
            )
        if self.judge == "oracle":
            if self.threshold != 0.5:
                raise ValueError(
                    f"threshold {self.threshold} would do nothing with judge 'oracle', whose "
                    "labels are 0 and 1; leave it out"
                )
            # The name of what is not asked must not make it another condition.
            object.__setattr__(self, "classifier", None)
        elif not self.classifier:
            raise ValueError(f"judge {self.judge!r} needs a classifier's name")

    @property
    def needs(self) -> Mapping[str, str]:
        scorer = {self.classifier: "scorer"} if self.classifier else {}
        lexical = {BM25: "retriever"} if self.judge == BM25 else {}
        return {**super().needs, **scorer, **lexical}


def judged(
    question: Question,
    pairs: Sequence[tuple[Hit, Hit]],
    settings: SelectionSettings,
    trace: Events,
):
    """Which pairs are positive, in their order; one call for all of them, none for no pair.

    Raises ValueError where the oracle lacks labels, or the classifier gives
    something else than one probability a pair.
    """
    if not pairs:
        return []
    if settings.judge == "oracle":
        by, gold = "oracle", _gold_of(question, "judge 'oracle'")
        # Equation 2: 1 where both passages are gold.
        probabilities = [float(gold >= {d.passage.id, e.passage.id}) for d, e in pairs]
        positive = [p == 1.0 for p in probabilities]
    else:
        texts = tuple((question.text, d.passage.text, e.passage.text) for d, e in pairs)
        scores = yield Score(texts, service=settings.classifier)
        by = "classifier"
        probabilities = probabilities_of(scores, texts, settings.classifier, "pairs")
        # In the scores' own precision: 0.7 as a float32 is less than 0.7.
        positive = (scores >= settings.threshold).tolist()
    for (d, e), p, yes in zip(pairs, probabilities, positive, strict=True):
        trace.append(
            {
                "stage": "judge",
                "by": by,
                "pair": [d.passage.id, e.passage.id],
                "probability": p,
                "positive": yes,
            }
        )
    return positive


def _gold_of(question: Question, needing: str) -> set[str]:
    if not question.gold:
        raise ValueError(f"question {question.id!r} names no gold passages; {needing} needs them")
    return set(question.gold_ids)


def refused_gold(
    question: Question, kept: Ranking, offered: Ranking, settings: SelectionSettings, trace: Events
) -> list[Hit]:
    """With `put_back`, the gold of `offered` that was judged and is not in `kept`; else none.

    Raises ValueError where the question names no gold.
    """
    if not settings.put_back:
        return []
    gold = _gold_of(question, "put_back")
    judged_ones = {name for event in trace if event["stage"] == "judge" for name in event["pair"]}
    left = (judged_ones & gold) - {hit.passage.id for hit in kept}
    back = [hit for hit in offered if hit.passage.id in left]
    trace.append({"stage": "put back", "passages": [hit.passage.id for hit in back]})
    return back


def at_its_count(
    question: Question,
    fixed: Ranking,
    chosen: Ranking,
    offered: Ranking,
    settings: SelectionSettings,
    trace: Events,
):
    """What stays: `fixed` and `chosen`, or a control that keeps as many.

    offered: what `chosen` was chosen from, in the order in which it is kept; with judge "ranked"
    in the order of `fill`.
    """
    kept = (*fixed, *chosen)
    if settings.judge == "random":
        draw = Random(f"select {question.id}")
        places = sorted(draw.sample(range(len(offered)), len(chosen)))
        kept = (*fixed, *(offered[place] for place in places))
    elif settings.judge == "ranked":
        kept = (*fixed, *offered[: len(chosen)])
    elif settings.judge == "nearest" and chosen:
        call = search(question.text, len(chosen), question, settings)
        hits = yield replace(call, within=tuple(hit.passage.id for hit in offered))
        nearest = {hit.passage.id for hit in hits}
        kept = (*fixed, *(hit for hit in offered if hit.passage.id in nearest))
    elif settings.judge in ("similarity", BM25) and kept:
        call = search(question.text, len(kept), question, settings)
        kept = yield replace(call, service=BM25) if settings.judge == BM25 else call
    trace.append(selected(settings.judge, kept, offered))
    return tuple(kept)


@dataclass(frozen=True)
class CISSettings(SelectionSettings):
    """pairs: which are judged, and who may go: "equation" 3 or the section's "text"."""

    pairs: Literal["equation", "text"] = "equation"


@builtin("cis", 2, CISSettings, "DR-RAG, section 2.2.2, equation 3", since)
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

    depth: Count | None = None
    cap: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.depth is None:
            deep = DEPTH if self.first == "equation" else max(1, self.k2)
            object.__setattr__(self, "depth", deep)
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


@builtin("cfs", 2, CFSSettings, "DR-RAG, section 2.2.2, equation 4 and algorithm 1", since)
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
    if settings.judge == "ranked":
        others = fill(first, rankings, replace(settings, k=len(first) + len(others)))[len(first) :]
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
