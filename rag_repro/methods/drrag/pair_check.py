"""How well C tells pairs apart: a question's pairs with known labels, judged, and no reader.

Of equation 2's three kinds:

    two gold passages                                   positive
    a gold passage and one that came close ("hard")     negative
    one that came close and one drawn by chance         negative ("random")

As many of each negative kind as there are positives. Which, and in which of its
two orders a pair is asked, is drawn by the question's id. The trace holds what
a selection's holds ({"stage": "judge", ...}), so that records tell the pairs,
their probabilities and how many of the two are gold; no paper has this method,
which is a control of this book.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from ...engine import Flow
from ...schema import Answer, Hit, Question, Retrieve
from ..base import MethodSpec, Settings
from ..stages import RANDOM, search
from .judging import judged
from .second_stage import Events


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

    k: int = 10
    classifier: str = "drrag-classifier"
    threshold: float = 0.5

    judge = "classifier"

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold is {self.threshold}; a probability's lies between 0 and 1")
        # No reader is asked: what it would be shown must not make another condition.
        object.__setattr__(self, "prompt", None)
        object.__setattr__(self, "max_new_tokens", Settings.max_new_tokens)

    @property
    def needs(self) -> Mapping[str, str]:
        return {self.classifier: "scorer", RANDOM: "retriever"}


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


PAIR_CHECK = MethodSpec(
    "pair_check", 1, pair_check, PairCheckSettings, "this book: a check of DR-RAG's classifier"
)
