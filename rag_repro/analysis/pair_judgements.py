"""What a pair classifier said of pairs, out of records: its judgements, and thresholds for them.

A line's `judged` holds [d, e, probability, how many of the two are gold] of each pair in the order
asked (`study.runner.line_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_repro.evaluation.calibration import Judgements
from rag_repro.evaluation.pair_metrics import BOTH

Line = Mapping[str, Any]


def judgements(lines: Iterable[Line], against: Sequence[int] = BOTH) -> Judgements | None:
    """The judged pairs of recorded answers: positives, and the negatives with so many gold passages
    (`against`); None where there are not both.
    """
    pairs = [
        (p, gold == 2, line["cluster"])
        for line in lines
        for _, _, p, gold in line.get("judged", ())
        if gold == 2 or gold in against
    ]
    if len({positive for _, positive, _ in pairs}) < 2:
        return None
    return Judgements.from_labels(*zip(*pairs, strict=True))


@dataclass(frozen=True)
class Pairs:
    """Judged pairs at one threshold; the shares lie in [0, 1], None where of nothing.

    right: pairs whose verdict is that of the labels (equation 2). precision: gold pairs among the
    positive ones. recall: positive ones among the gold pairs.
    """

    threshold: float
    pairs: int
    positive: float
    gold: float
    right: float
    precision: float | None
    recall: float | None

    @property
    def f1(self) -> float:
        if not self.precision or not self.recall:
            return 0.0
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def at_threshold(lines: Iterable[Line], threshold: float) -> Pairs | None:
    """The lines' labelled pairs at a threshold, each (question, pair) once; None: no pair."""
    pairs = {
        (line["id"], d, e): (p >= threshold, gold == 2)
        for line in lines
        for d, e, p, gold in line.get("judged", ())
        if gold is not None
    }
    if not pairs:
        return None
    positive, gold = (sum(pair[i] for pair in pairs.values()) for i in (0, 1))
    both = sum(yes and needed for yes, needed in pairs.values())
    return Pairs(
        threshold,
        len(pairs),
        positive / len(pairs),
        gold / len(pairs),
        sum(yes == needed for yes, needed in pairs.values()) / len(pairs),
        both / positive if positive else None,
        both / gold if gold else None,
    )


def best_threshold(lines: Sequence[Line], measure: str = "f1") -> Pairs | None:
    """The pairs at the threshold that makes `measure` ("f1" or "right") largest.

    Tried are 0.01 to 0.99 by 0.01; of equals it is the one nearest to 0.5.
    """
    tried = [at_threshold(lines, step / 100) for step in range(1, 100)]
    if tried[0] is None:
        return None
    return max(tried, key=lambda p: (getattr(p, measure), -abs(p.threshold - 0.5)))
