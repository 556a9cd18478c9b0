"""How well a pair classifier tells a question's own pairs apart, out of its record's line.

A line's `judged` holds [d, e, probability, how many of the two are gold] of each
pair. By DR-RAG's equation 2 a pair is positive where both are gold. These are
scores of one question, which a mean and its interval can be taken of; what needs
the pairs of all questions at once (a reliability diagram) is in `analysis.pair_judgements`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from rag_repro.evaluation.metric import Line, described

HARD, RANDOM = 1, 0
"""How many of a negative's two passages are gold: one beside another, or none."""
BOTH = (HARD, RANDOM)


def auc(positives: Sequence[float], negatives: Sequence[float]) -> float | None:
    """How often a positive has the higher probability; equal ones count half. None: no two."""
    compared = [(p > n) + 0.5 * (p == n) for p in positives for n in negatives]
    return sum(compared) / len(compared) if compared else None


def probabilities(line: Line, gold: Collection[int]) -> list[float]:
    """Of the judged pairs with so many gold passages."""
    return [p for _, _, p, g in line.get("judged", ()) if g in gold]


def auc_against(gold: Collection[int], line: Line) -> float | None:
    """AUC of the question's positives against its negatives with so many gold passages."""
    return auc(probabilities(line, (2,)), probabilities(line, gold))


def swapped(gold: Collection[int], line: Line) -> float | None:
    """1 - AUC: what chance has at a half, a claim can say to be well below it."""
    value = auc_against(gold, line)
    return None if value is None else 1 - value


def accuracy(line: Line, threshold: float = 0.5) -> float | None:
    """Share judged rightly, positives and negatives at equal weight; None without either."""
    positives, negatives = probabilities(line, (2,)), probabilities(line, BOTH)
    if not positives or not negatives:
        return None
    found = sum(p >= threshold for p in positives) / len(positives)
    refused = sum(p < threshold for p in negatives) / len(negatives)
    return (found + refused) / 2


TABLE = (
    described("pair_auc", partial(auc_against, BOTH)),
    described("pair_auc_hard", partial(auc_against, (HARD,))),
    described("pair_auc_random", partial(auc_against, (RANDOM,))),
    described("pair_accuracy", accuracy),
    described("pair_swapped_hard", partial(swapped, (HARD,))),
    described("pair_swapped_random", partial(swapped, (RANDOM,))),
)
