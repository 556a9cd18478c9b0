"""How well a pair classifier tells a question's own pairs apart, out of its record's line.

A line's `judged` holds [d, e, probability, how many of the two are gold] of each
pair. By DR-RAG's equation 2 a pair is positive where both are gold. These are
scores of one question, which a mean and its interval can be taken of; what needs
the pairs of all questions at once (a reliability diagram) is in `analysis.pair_judgements`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from .metric import Line, percent

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
    percent(
        "pair_auc",
        "AUC",
        "line",
        partial(auc_against, BOTH),
        "how often a pair of gold passages gets a higher probability than another pair of "
        "the same question",
    ),
    percent(
        "pair_auc_hard",
        "AUC (hard)",
        "line",
        partial(auc_against, (HARD,)),
        "as AUC, against pairs of a gold passage and another",
    ),
    percent(
        "pair_auc_random",
        "AUC (random)",
        "line",
        partial(auc_against, (RANDOM,)),
        "as AUC, against pairs without a gold passage",
    ),
    percent(
        "pair_accuracy",
        "Accuracy",
        "line",
        accuracy,
        "share of pairs judged rightly at 0.5, positives and negatives at equal weight",
    ),
    percent(
        "pair_swapped_hard",
        "Swapped (hard)",
        "line",
        partial(swapped, (HARD,)),
        "how often a pair of a gold passage and another gets a higher probability than a pair "
        "of gold passages of the same question (1 - AUC)",
        higher=False,
    ),
    percent(
        "pair_swapped_random",
        "Swapped (random)",
        "line",
        partial(swapped, (RANDOM,)),
        "as Swapped (hard), of pairs without a gold passage",
        higher=False,
    ),
)
