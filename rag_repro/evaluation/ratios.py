"""Bootstrap of a ratio of two means on the same questions, as a time against another; of shares.

The ratio of the means, not the mean of the ratios: a question that both sides
answer in no time would else weigh as much as the slowest. Both means are drawn
together, so that a question that is slow for both moves neither side alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rag_repro.evaluation.bootstrap_draws import over_draws
from rag_repro.evaluation.intervals import Interval, Resampled, StatisticsError
from rag_repro.evaluation.resampling import DRAWS, resample, unit_sums, values_of

BEYOND = 1e9  # in place of infinity, between which and itself no quantile lies


def percent_interval(shares, *, rng: np.random.Generator, clusters=None) -> Interval:
    """95 % interval of a mean of shares, one a question, in points: never beyond 0 and 100.

    shares: (questions,), each between 0 and 1, or true and false.
    """
    points = 100 * np.asarray(shares, dtype=float)
    drawn = resample(points, rng=rng, clusters=clusters, span=100.0)
    return drawn.within(0.0, 100.0).interval()


def resample_ratio(
    above,
    below,
    *,
    rng: np.random.Generator,
    clusters: Sequence | None = None,
    draws: int = DRAWS,
    span: float | None = None,
) -> Resampled:
    """Bootstrap of mean(above) / mean(below), questions or clusters drawn.

    above, below: (questions,), none below negative and not all zero; a draw of
    nothing but zeros below counts as `BEYOND`. The draws are widened for few units as
    those of `resample`. span: the largest value above; with it, a ratio that is the same in
    every unit gets the interval of what n units may have left unseen, without it one of zero
    width. Errors: StatisticsError for other values, and for sides of unequal length.
    """
    a, b = (np.atleast_2d(values_of(side)) for side in (above, below))
    if a.shape != b.shape or len(a) > 1:
        raise StatisticsError(
            f"{a.shape[-1]} against {b.shape[-1]} values: a ratio needs one value a question "
            "on both sides"
        )
    if b.min() < 0 or not b.any():
        raise StatisticsError(
            f"a ratio needs values of 0 or more below, not all 0; they go from {b.min():g} to "
            f"{b.max():g}"
        )
    sums_a, _ = unit_sums(a, clusters)
    sums_b, _ = unit_sums(b, clusters)
    units, n = sums_a.shape[1], a.shape[1]
    estimate = float(a.mean() / b.mean())
    if units == 1:
        return Resampled(estimate, np.full(2, estimate), n, 0.0)
    sums = np.concatenate([sums_a, sums_b]).T  # (units, 2)

    def quotient(times: np.ndarray) -> np.ndarray:
        top, bottom = (times @ sums).T
        return np.divide(top, bottom, out=np.full(len(top), BEYOND), where=bottom > 0)

    if span is not None and np.abs(sums_a - estimate * sums_b).max() < 1e-9:
        unseen = ((span / float(b.mean()), units),)
        return Resampled(estimate, np.full(draws, estimate), n, math.inf, unseen)
    ratios = over_draws(quotient, units, draws, rng)
    widened = estimate + (ratios - estimate) * math.sqrt(units / (units - 1))
    return Resampled(estimate, widened, n, units - 1.0)
