"""Whether two passages are needed together: the classifier C(q, d, d'), and what controls it.

A pair is given as the texts (question, passage found first, the other), without
titles, as table 10 shows them; C is trained on both orders, and asked for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from ...schema import Hit, Question, Score
from ..stages import probabilities_of, search
from .second_stage import Events, Ranking, TwoStageSettings, one_of, selected

BM25 = "bm25"
JUDGES = ("classifier", "oracle", "random", "similarity", "nearest", BM25)


@dataclass(frozen=True)
class SelectionSettings(TwoStageSettings):
    """Who decides, and from when on a pair is positive.

    judge: "classifier": C. The others are controls that the paper lacks.
        "oracle": the gold labels, by equation 2, in place of C: the most that
        selection could do. "random": C says how many passages are kept; which
        ones, of those on offer, is drawn by chance (seeded by the question's
        id). "nearest": likewise, and those go that are least similar to the
        question. "similarity": C says how many; the question's own ranking,
        which, with no second query. "bm25": likewise BM25's ranking.
    classifier: the service that is C; none with the oracle.
    threshold: the least probability that is positive. The paper calls it
        predefined and does not give it.
    put_back: gold passages that C refused come back, beyond k where need be, to
        show what these mistakes cost (not in the paper; it needs the labels).
    """

    judge: str = "classifier"
    classifier: str | None = "drrag-classifier"
    threshold: float = 0.5
    put_back: bool = False

    def __post_init__(self):
        super().__post_init__()
        one_of("judge", self.judge, JUDGES)
        if self.put_back and self.judge != "classifier":
            raise ValueError(
                f"put_back is on, and judge is {self.judge!r}; it mends what the classifier "
                "refused: leave judge at 'classifier'"
            )
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold is {self.threshold}; a probability's lies between 0 and 1")
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
        by, probabilities = "oracle", _labels(question, pairs)
        positive = [p == 1.0 for p in probabilities]
    else:
        texts = tuple((question.text, d.passage.text, e.passage.text) for d, e in pairs)
        scores = yield Score(texts, service=settings.classifier)
        by, probabilities = (
            "classifier",
            probabilities_of(scores, texts, settings.classifier, "pairs"),
        )
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


def _labels(question: Question, pairs: Sequence[tuple[Hit, Hit]]) -> list[float]:
    """Equation 2: 1 where both passages are gold."""
    gold = _gold_of(question, "judge 'oracle'")
    return [float(gold >= {d.passage.id, e.passage.id}) for d, e in pairs]


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

    offered: what `chosen` was chosen from, in the order in which it is kept.
    """
    kept = (*fixed, *chosen)
    if settings.judge == "random":
        draw = Random(f"select {question.id}")
        places = sorted(draw.sample(range(len(offered)), len(chosen)))
        kept = (*fixed, *(offered[place] for place in places))
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
