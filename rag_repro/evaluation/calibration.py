"""Do a classifier's probabilities rank, and do they mean what they say? Over all questions' pairs.

Judged things hang together by question, so the question (or the testbed's
cluster of questions) is what the bootstrap draws, and every statistic here is
written as sums over such units. Positives and negatives get equal weight in all
of them: how often a pair is positive was decided by whoever made the pairs, and
C is trained on as many of each.

    AUC        share of (positive, negative) comparisons that the positive wins
    accuracy   mean of the shares of positives at or above 0.5 and negatives below
    Brier      mean of (p - y)^2, so 0.25 for one half whatever is asked
    ECE        sum over bins of weight x |mean p - share of positives|

Expected calibration error is biased upwards where bins hold few things; the
counts stand beside it (`Bin.n`). Source of ECE: Naeini and others 2015.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rag_repro.evaluation.bootstrap_draws import over_draws
from rag_repro.evaluation.intervals import Interval, Resampled, StatisticsError
from rag_repro.evaluation.ratios import resample_ratio

BINS = 10
DRAWS = 2000  # of some hundred units each, for five statistics of every condition
HALF = 0.5


@dataclass(frozen=True, eq=False)
class Judgements:
    """Things judged: p their probability, y whether they are positive, unit the question's.

    p: (things,) from 0 to 1. y: (things,) of bool. unit: (things,) of whole numbers
    from 0, the units that are drawn. Raises StatisticsError without both kinds.
    """

    p: np.ndarray
    y: np.ndarray
    unit: np.ndarray

    @classmethod
    def from_labels(cls, p: Sequence[float], y: Sequence[bool], units: Sequence[str]) -> Judgements:
        """units: a label of each."""
        positive = np.asarray(y, dtype=bool)
        if not positive.any() or positive.all():
            raise StatisticsError("judgements of one kind alone: both are needed to compare them")
        _, unit = np.unique(np.asarray(units), return_inverse=True)
        return cls(np.asarray(p, dtype=float), positive, unit)

    @property
    def units(self) -> int:
        return int(self.unit.max()) + 1


@dataclass(frozen=True)
class Bin:
    """One bar of a reliability diagram: mean probability, share of positives, how many things."""

    p: float
    share: float
    n: int


def auc(judged: Judgements, rng: np.random.Generator, draws: int = DRAWS) -> Interval:
    """Of all comparisons, within a question and across; equal probabilities count half."""
    return _interval(_comparisons(judged), judged, rng, draws)


def auc_gain(
    ours: Judgements, theirs: Judgements, rng: np.random.Generator, draws: int = DRAWS
) -> Interval:
    """The difference of two AUCs on the same things, of which the same units are drawn.

    Raises StatisticsError where the things, their kinds or their units differ.
    """
    if not (np.array_equal(ours.y, theirs.y) and np.array_equal(ours.unit, theirs.unit)):
        raise StatisticsError("a difference of AUCs needs the same things judged on both sides")
    a, b = _comparisons(ours), _comparisons(theirs)

    def statistic(times: np.ndarray) -> np.ndarray:
        return a(times) - b(times)

    return _interval(statistic, ours, rng, draws, (-1.0, 1.0))


def _comparisons(judged: Judgements) -> Callable[[np.ndarray], np.ndarray]:
    """From how often each unit is drawn, (draws, units), to the AUC of each draw."""
    pos, neg = judged.y, ~judged.y
    units = judged.units
    # (units, units): comparisons that positives of one win against negatives of the other.
    won = np.zeros((units, units))
    for p, unit in zip(judged.p[pos], judged.unit[pos], strict=True):
        wins = (judged.p[neg] < p) + 0.5 * (judged.p[neg] == p)
        won[unit] += np.bincount(judged.unit[neg], weights=wins, minlength=units)
    n_pos = np.bincount(judged.unit[pos], minlength=units)
    n_neg = np.bincount(judged.unit[neg], minlength=units)

    def statistic(times: np.ndarray) -> np.ndarray:
        wins = np.einsum("du,du->d", times @ won, times)
        return wins / ((times @ n_pos) * (times @ n_neg))

    return statistic


def accuracy(judged: Judgements, rng: np.random.Generator, draws: int = DRAWS) -> Interval:
    right = np.where(judged.y, judged.p >= HALF, judged.p < HALF).astype(float)
    return _balanced(right, judged, rng, draws)


def brier(judged: Judgements, rng: np.random.Generator, draws: int = DRAWS) -> Interval:
    return _balanced((judged.p - judged.y) ** 2, judged, rng, draws)


def ece(judged: Judgements, rng: np.random.Generator, draws: int = DRAWS) -> Interval:
    """Expected calibration error over `BINS` bins of equal width."""
    tables = [_by_bin(judged, kind, of) for kind in (True, False) for of in (1.0, judged.p)]

    def statistic(times: np.ndarray) -> np.ndarray:
        pos, pos_p, neg, neg_p = (times @ table for table in tables)
        n_pos, n_neg = pos.sum(1, keepdims=True), neg.sum(1, keepdims=True)
        # Each kind weighs one half; (weight x mean p) - (weight x share) in each bin.
        return np.abs(pos_p / n_pos + neg_p / n_neg - pos / n_pos).sum(1) / 2

    return _interval(statistic, judged, rng, draws)


def share(
    part: np.ndarray, whole: np.ndarray, units: Sequence[str], rng: np.random.Generator
) -> Interval | None:
    """How much of `whole` is in `part`, things by things; None where there is nothing."""
    part, whole = (np.asarray(side, dtype=float) for side in (part, whole))
    if not whole.any():
        return None
    drawn = resample_ratio(part, whole, rng=rng, clusters=units, draws=DRAWS)
    return drawn.within(0.0, 1.0).interval()


def bins(judged: Judgements) -> list[Bin]:
    """The reliability diagram: bins that hold anything, both kinds at equal weight."""
    pos, pos_p, neg, neg_p = (
        _by_bin(judged, kind, of).sum(0) for kind in (True, False) for of in (1.0, judged.p)
    )
    made = []
    for i in range(BINS):
        a, b = pos[i] / pos.sum(), neg[i] / neg.sum()
        if a + b:
            mean_p = (pos_p[i] / pos.sum() + neg_p[i] / neg.sum()) / (a + b)
            made.append(Bin(float(mean_p), float(a / (a + b)), int(pos[i] + neg[i])))
    return made


def _by_bin(judged: Judgements, kind: bool, of: float | np.ndarray) -> np.ndarray:
    """Sums (units, BINS) of `of` over the things of a kind; 1.0 as the last bin's."""
    place = np.minimum((judged.p * BINS).astype(int), BINS - 1)
    chosen = judged.y == kind
    table = np.zeros((judged.units, BINS))
    weights = np.broadcast_to(of, judged.p.shape)[chosen]
    np.add.at(table, (judged.unit[chosen], place[chosen]), weights)
    return table


def _balanced(
    values: np.ndarray, judged: Judgements, rng: np.random.Generator, draws: int
) -> Interval:
    """Mean of the two kinds' means."""
    parts = [
        [
            np.bincount(judged.unit[chosen], weights=w[chosen], minlength=judged.units)
            for w in (values, np.ones(len(values)))
        ]
        for chosen in (judged.y, ~judged.y)
    ]

    def statistic(times: np.ndarray) -> np.ndarray:
        return sum((times @ total) / (times @ n) for total, n in parts) / 2

    return _interval(statistic, judged, rng, draws)


def _interval(
    statistic, judged: Judgements, rng, draws: int, limits: tuple[float, float] = (0.0, 1.0)
) -> Interval:
    """95 % by drawing units, widened for few of them as `resampling` does; within limits."""
    units = judged.units
    estimate = float(statistic(np.ones((1, units)))[0])
    if units == 1:
        drawn = Resampled(estimate, np.full(2, estimate), units, 0.0)
        return drawn.within(*limits).interval()
    kinds = np.stack([np.bincount(judged.unit[k], minlength=units) for k in (judged.y, ~judged.y)])

    def defined(times: np.ndarray) -> np.ndarray:
        # A draw without a positive or without a negative has no value.
        return statistic(times[(times @ kinds.T > 0).all(axis=1)])

    drawn = over_draws(defined, units, draws, rng)
    means = estimate + (drawn - estimate) * math.sqrt(units / (units - 1))
    # Where all draws are alike, as of a perfect score, what so many units may have left unseen.
    unseen = ((limits[1] - limits[0], units),) if np.ptp(means) < 1e-12 else ()
    made = Resampled(estimate, means, units, units - 1.0, unseen)
    return made.within(*limits).interval()
