"""Is the dynamic-relevant passage crowded out? A probe of DR-RAG's section 1, not in the paper.

"The knowledge base contains too much information about 'spouse'", it says, so that
the passage which is needed ranks low. Then it must rise when the others that share
that word are gone; and rise more than when as many others go that stand as high.

The words are those that the question shares with its dynamic-relevant gold passages,
names left out. So the labels are used, as no method could: this measures a ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...engine import Flow
from ...retrieval.analyzer import Analyzer
from ...schema import Hit, Passage, Question, Retrieve
from ..base import MethodSpec, Settings, one_of
from ..stages import read, search

DROPPED = ("sharing", "others")
ASKING = {"whose"}  # that the stop words leave in
# Words that the question does not begin with a capital: no names, no first word.
SMALL = re.compile(r"(?<![\w'’])[^\W\d_A-Z][^\W\d_]{2,}")


@dataclass(frozen=True)
class CrowdSettings(Settings):
    """dropped: of the `depth` best, which go, gold never: "sharing", those that hold such a word;
    "others", those that hold none; of each the best, as many as there are of both kinds.
    """

    dropped: str = "sharing"
    depth: int = 200

    def __post_init__(self):
        super().__post_init__()
        one_of("dropped", self.dropped, DROPPED)
        if self.depth < self.k:
            raise ValueError(f"depth is {self.depth}; it must be at least k = {self.k}")


def uncrowded(question: Question, settings: CrowdSettings) -> Flow:
    """One search, passages left out, one reading; plain search where no word is shared."""
    ranked = yield search(question.text, settings.depth, question, settings)
    needed = tuple(gold.passage_id for gold in question.gold if gold.role == "dynamic")
    found = (yield Retrieve(question.text, k=len(needed), within=needed)) if needed else ()
    words = shared_words(question.text, [hit.passage for hit in found])
    gone = dropped(ranked, words, question.gold_ids, settings.dropped)
    hits = [hit for hit in ranked if hit.passage.id not in gone][: settings.k]
    answer = yield from read(question, hits, settings)
    event = {"stage": "crowd", "words": sorted(words), "dropped": sorted(gone)}
    return replace(answer, trace=(*answer.trace, event))


def shared_words(question: str, passages: Iterable[Passage]) -> set[str]:
    """Small words of the question, stop words left out, that one of the passages holds too."""
    terms = Analyzer(stop_words="english_plus")
    small = set(terms(" ".join(SMALL.findall(question)))) - ASKING
    return small.intersection(*[set().union(*(terms(passage.text) for passage in passages))])


def dropped(ranked: Sequence[Hit], words: set[str], gold: Iterable[str], which: str) -> set[str]:
    """Ids of the passages that go: as many of either kind as there are of the rarer one."""
    terms, kept = Analyzer(), set(gold)
    kinds: dict[str, list[str]] = {name: [] for name in DROPPED}
    for passage in (hit.passage for hit in ranked if hit.passage.id not in kept):
        shares = not words.isdisjoint(terms(passage.text))
        kinds["sharing" if shares else "others"].append(passage.id)
    # Where most of the ranking shares a word, all of it would go against a few others.
    return set(kinds[which][: min(map(len, kinds.values()))])


UNCROWDED = MethodSpec("uncrowded", 2, uncrowded, CrowdSettings, "DR-RAG, section 1, a probe")
