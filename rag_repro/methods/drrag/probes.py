"""Two probes of DR-RAG that no paper has: its classifier alone, and its section 1.

`pair_check`: how well C tells pairs apart. A question's pairs with known labels are judged, and no
reader is asked. Of equation 2's three kinds:

    two gold passages                                   positive
    a gold passage and one that came close ("hard")     negative
    one that came close and one drawn by chance         negative ("random")

As many of each negative kind as there are positives. Which, and in which of its
two orders a pair is asked, is drawn by the question's id. The trace holds what
a selection's holds ({"stage": "judge", ...}), so that records tell the pairs,
their probabilities and how many of the two are gold; no paper has this method,
which is a control of this book.

`uncrowded`: is the dynamic-relevant passage crowded out?
"The knowledge base contains too much information about 'spouse'", it says, so that
the passage which is needed ranks low. Then it must rise when the others that share
that word are gone; and rise more than when as many others go that stand as high.

The words are those that the question shares with its dynamic-relevant gold passages,
names left out. So the labels are used, as no method could: this measures a ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from typing import Literal

from rag_repro.engine import Flow
from rag_repro.methods.base import Count, Settings, Share, builtin
from rag_repro.methods.drrag.concatenation import Events
from rag_repro.methods.drrag.selection import judged
from rag_repro.methods.stages import RANDOM, read, search
from rag_repro.retrieval.analyzer import Analyzer
from rag_repro.schema import Answer, Hit, Passage, Question, Retrieve


@dataclass(frozen=True)
class PairCheckSettings(Settings):
    """Whose pairs, and who judges them.

    k: how many passages count as close: the retriever's best that are not gold,
        with `own_candidates` of the question's own. By chance one is drawn from
        the whole corpus in any case, as for training.
    classifier: the service that is C; a cross-encoder's
        NAME@256 gives each pair room for 256 tokens.
    threshold: the least probability that is positive.
    """

    k: Count = 10
    classifier: str = "drrag-classifier"
    threshold: Share = 0.5

    judge = "classifier"

    def __post_init__(self):
        super().__post_init__()
        # No reader is asked: what it would be shown must not make another condition.
        object.__setattr__(self, "prompt", None)
        object.__setattr__(self, "max_new_tokens", Settings.max_new_tokens)

    @property
    def needs(self) -> Mapping[str, str]:
        return {self.classifier: "scorer", RANDOM: "retriever"}


@builtin("pair_check", 1, PairCheckSettings, "this book: a check of DR-RAG's classifier")
def pair_check(question: Question, settings: PairCheckSettings) -> Flow:
    """Judge a question's labelled pairs; -> the passages of those accepted, as hits.

    A question with fewer than two gold passages has no positive pair, and none is asked.
    """
    gold_ids = tuple(dict.fromkeys(question.gold_ids))
    if len(gold_ids) < 2:
        return Answer()
    gold = yield Retrieve(question.text, k=len(gold_ids), within=gold_ids)
    found = yield search(question.text, settings.k + len(gold), question, settings)
    close = [hit for hit in found if hit.passage.id not in gold_ids][: settings.k]
    positives = list(combinations(gold, 2))
    # The service ranks by chance, seeded by the query: the same passages at every run.
    deep = len(positives) + len(gold) + len(close)
    drawn = yield Retrieve(question.id, k=deep, service=RANDOM)
    pairs = labelled(question, positives, gold, close, drawn)
    trace: Events = []
    positive = yield from judged(question, pairs, settings, trace)
    accepted = [hit for pair, yes in zip(pairs, positive, strict=True) if yes for hit in pair]
    hits = tuple({hit.passage.id: hit for hit in accepted}.values())
    return Answer(hits=hits, trace=tuple(trace))


def labelled(
    question: Question,
    positives: Sequence[tuple[Hit, Hit]],
    gold: Sequence[Hit],
    close: Sequence[Hit],
    drawn: Sequence[Hit],
) -> list[tuple[Hit, Hit]]:
    """The positives, then hard and random negatives, each in an order drawn by chance.

    Fewer negatives where there are not enough passages; no pair twice.
    """
    random = Random(f"pair_check {question.id}")
    hard = [(one, other) for one in gold for other in close]
    taken = {hit.passage.id for hit in (*gold, *close)}
    chance = [hit for hit in drawn if hit.passage.id not in taken]
    lone = list(zip(random.sample(close, len(close)), chance, strict=False))
    n = len(positives)
    pairs = [*positives]
    for kind in (hard, lone):
        pairs += random.sample(kind, min(n, len(kind)))
    return [pair if random.random() < 0.5 else pair[::-1] for pair in pairs]


ASKING = {"whose"}  # that the stop words leave in
# Words that the question does not begin with a capital: no names, no first word.
SMALL = re.compile(r"(?<![\w'’])[^\W\d_A-Z][^\W\d_]{2,}")


@dataclass(frozen=True)
class CrowdSettings(Settings):
    """dropped: of the `depth` best, which go, gold never: "sharing", those that hold such a word;
    "others", those that hold none; of each the best, as many as there are of both kinds.
    """

    dropped: Literal["sharing", "others"] = "sharing"
    depth: int = 200

    def __post_init__(self):
        super().__post_init__()
        if self.depth < self.k:
            raise ValueError(f"depth is {self.depth}; it must be at least k = {self.k}")


@builtin("uncrowded", 2, CrowdSettings, "DR-RAG, section 1, a probe")
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
    kinds: dict[str, list[str]] = {"sharing": [], "others": []}
    for passage in (hit.passage for hit in ranked if hit.passage.id not in kept):
        shares = not words.isdisjoint(terms(passage.text))
        kinds["sharing" if shares else "others"].append(passage.id)
    # Where most of the ranking shares a word, all of it would go against a few others.
    return set(kinds[which][: min(map(len, kinds.values()))])
