"""Adaptive Retrieval: search only for what is too little known to be remembered.

    retrieve  iff  popularity(q) < threshold         (Mallen et al. 2023, section 6)

The original takes the monthly page views of the one entity that its questions
are about, and a threshold for each kind of relation, the one that would have
been best on training questions. DR-RAG's table 2 does not say what popularity
is for questions that name several entities, or none; its "Step" of 0.50 on all
three data sets looks like a median. Here: the least popular entity that the
question names; one threshold, by default the median of the testbed's world A
(for training and tuning only), or the one that `best_threshold` finds on records of tune
questions (`study.tuning`, `rag-repro tune`).
HotpotQA, 2Wiki and MuSiQue have no page views: a question without popularity
fails by name, or "mentions" stands in for it.

The trace: {"stage": "decide", "by": source, "value": popularity, "threshold": t,
"retrieve": bool}.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from random import Random
from types import MappingProxyType
from typing import Literal

from rag_repro.engine import Flow
from rag_repro.methods.base import Settings, builtin, fill_or_refuse
from rag_repro.methods.stages import read, retrieve
from rag_repro.schema import Question, Retrieve

# source of popularity -> where a question's `meta` has it
META = MappingProxyType({"testbed": "popularity", "wikipedia": "s_pop"})
THRESHOLDS = MappingProxyType({"testbed": 60.0, "shuffled": 0.5})


@dataclass(frozen=True)
class AdaptiveRetrievalSettings(Settings):
    """What popularity is, and below which of it passages are fetched.

    popularity: "testbed": views of the least popular entity that the question
        names (`meta["popularity"]`). "wikipedia": page views of the subject
        (PopQA's `meta["s_pop"]`). "mentions", a stand-in of ours: how many
        passages name the question's rarest capitalised name, counted among the
        `depth` best hits for it; each name costs a search, which the original's
        table does not. "shuffled", the control: no popularity but a rank in
        [0, 1) that the question's id and `seed` draw, so that `threshold` is
        the share of questions that retrieve: popularity permuted over questions.
    threshold: None: 60 for "testbed" (world A's median) and 0.5 for "shuffled".
    """

    popularity: Literal["testbed", "wikipedia", "mentions", "shuffled"] = "testbed"
    threshold: float | None = None
    depth: int | None = None
    seed: int | None = None

    def __post_init__(self):
        super().__post_init__()
        for name, source, default in (("depth", "mentions", 100), ("seed", "shuffled", 0)):
            by = f"popularity {self.popularity!r}"
            fill_or_refuse(self, self.popularity == source, {name: default}, by)
        if self.threshold is None:
            if self.popularity not in THRESHOLDS:
                raise ValueError(
                    f"popularity {self.popularity!r} needs a threshold in its own unit; find one "
                    "on questions that are not tested on: rag-repro tune"
                )
            object.__setattr__(self, "threshold", THRESHOLDS[self.popularity])
        most = {"shuffled": 1, "mentions": self.depth}.get(self.popularity, math.inf)
        if not 0 <= self.threshold <= most or math.isinf(self.threshold):
            raise ValueError(
                f"threshold is {self.threshold}; with popularity {self.popularity!r} it lies "
                f"between 0 and {most}"
            )


@builtin("adaptive_retrieval", 1, AdaptiveRetrievalSettings, "Mallen et al. 2023, section 6")
def adaptive_retrieval(question: Question, settings: AdaptiveRetrievalSettings) -> Flow:
    """Look at the popularity, fetch passages or none, read."""
    value = yield from popularity(question, settings)
    needed = value < settings.threshold
    decided = {
        "stage": "decide",
        "by": settings.popularity,
        "value": value,
        "threshold": settings.threshold,
        "retrieve": needed,
    }
    hits = (yield from retrieve(question, settings)) if needed else ()
    answer = yield from read(question, hits, settings)
    return replace(answer, trace=(decided,))


def popularity(question: Question, settings: AdaptiveRetrievalSettings):
    """The question's popularity, in the unit of its source."""
    if settings.popularity == "shuffled":
        return Random(f"popularity {settings.seed} {question.id}").random()
    if settings.popularity == "mentions":
        return (yield from mentions(names(question.text), settings.depth))
    value = question.meta.get(META[settings.popularity])
    if value is None:
        raise ValueError(
            f"question {question.id!r} has no {META[settings.popularity]!r} in its meta, which "
            f"popularity {settings.popularity!r} needs; popularity: mentions counts passages"
        )
    return float(value)


def mentions(asked: Sequence[str], depth: int):
    """How many passages name the rarest of these names, `depth` at most; 0 without any name."""
    found = yield [Retrieve(name, k=depth) for name in asked]
    counts = []
    for name, hits in zip(asked, found, strict=True):
        texts = (f"{hit.passage.title} {hit.passage.text}".casefold() for hit in hits)
        counts.append(sum(name.casefold() in text for text in texts))
    return float(min(counts, default=0))


_OPENER = re.compile(
    "an?|the|who|whom|whose|what|which|where|when|why|how|is|are|was|were|did|do|does|has|have|had|"
    "can|could|in|on|at|of|for|from|by|to|with|between|if|name"
)
_LINKS = frozenset(("of", "the", "de", "la", "da", "du", "di", "van", "von", "der"))
_PIECES = re.compile(r"[^\W\d_]\.(?=\s)|\w[\w'’&-]*|[^\w\s]")


def names(text: str) -> tuple[str, ...]:
    """Runs of capitalised words, "Mary of Denmark" being one; each once, in their order.

    A question's opening word is no name by itself, capital or not.
    """
    found: list[str] = []
    run: list[str] = []
    for place, piece in enumerate([*_PIECES.findall(text), ""]):
        word = re.sub(r"['’]s?$", "", piece)
        opener = place == 0 and _OPENER.fullmatch(word.lower())
        named = (word[:1].isupper() and not opener) or (run and word.isdigit())
        if named or (run and word in _LINKS):
            run.append(word)
        if word != piece or not (named or word in _LINKS):
            while run and run[-1] in _LINKS:
                run.pop()
            if run:
                found.append(" ".join(run))
            run = []
    return tuple(dict.fromkeys(found))


def best_threshold(
    popularities: Sequence[float], without: Sequence[float], with_passages: Sequence[float]
) -> float:
    """The threshold under which training questions would have scored best in all.

    without, with_passages: each question's score without and with retrieval. Of
    equal ones the lowest, which searches least (the original's argmax takes it
    too). One that no question reaches (always retrieve) is the highest plus 1.
    The original looks at ten steps of log popularity, we at each value.
    """
    questions = sorted(zip(popularities, without, with_passages, strict=True), key=itemgetter(0))
    if not questions:
        raise ValueError("no questions to find a threshold on")
    best = total = 0.0  # gains over never searching
    threshold = questions[0][0]
    values = [
        (value, sum(given - alone for _, alone, given in group))
        for value, group in groupby(questions, key=itemgetter(0))
    ]
    following = [value for value, _ in values[1:]] + [values[-1][0] + 1]
    for (_, gain), value in zip(values, following, strict=True):
        total += gain
        if total > best:
            best, threshold = total, value
    return threshold
