"""How many questions an effect needs, and what a number of questions resolves.

Normal theory for the mean of a paired difference: an effect d with variance
v a question is found with 80 % power at two-sided 5 % where
d = (z(0.975) + z(0.80)) sqrt(v / n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .intervals import Interval, StatisticsError
from .resampling import unit_sums, values_of


def _quantile(p: float) -> float:
    from scipy.stats import norm

    return float(norm.ppf(p))


def minimum_detectable_effect(
    variance: float, n: int, *, power: float = 0.8, alpha: float = 0.05
) -> float:
    """Smallest true difference that n questions show with that power.

    variance: of the paired difference, a question.
    """
    if n < 1 or variance < 0:
        raise StatisticsError(f"n = {n} and variance = {variance:g}: n >= 1, variance >= 0 needed")
    return (_quantile(1 - alpha / 2) + _quantile(power)) * math.sqrt(variance / n)


def mde_of(interval: Interval, *, power: float = 0.8) -> float:
    """The same, read off an interval: clusters, seeds and Holm are in its width."""
    z = _quantile(0.5 + interval.level / 2)
    return interval.width / 2 * (1 + _quantile(power) / z)


@dataclass(frozen=True, slots=True)
class Needed:
    """Questions whose interval just excludes zero, and with 80 % power."""

    to_exclude_zero: int
    with_power: int


def questions_needed(effect: float, mean_square: float) -> Needed:
    """Questions for a paired difference of mean `effect`.

    mean_square: mean of the squared difference a question, measured or assumed
    (0.20 for EM with different contexts, 0.08 for recall ...). Then
    n = 3.84 (V - d^2) / d^2, and 2.04 times that for 80 % power; not below
    6 / d, since fewer than about six discordant answers show nothing.
    """
    if not effect or mean_square < effect**2:
        raise StatisticsError(
            f"effect {effect:g} with mean square {mean_square:g}: the effect must not be zero "
            "and its square not above the mean square"
        )
    d = abs(effect)
    bare = 3.84 * (mean_square - d**2) / d**2
    least = max(bare, 6 / d)
    return Needed(math.ceil(least), math.ceil(2.04 * least))


def variance_of_mean(values, clusters=None) -> float:
    """Variance of the mean of (questions,), the between-cluster one where given."""
    array = np.atleast_2d(values_of(values))
    sums, sizes = unit_sums(array, clusters)
    units = len(sizes)
    if array.shape[0] != 1 or units < 2:
        raise StatisticsError("a variance needs one score a question and two units or more")
    deviations = sums[0] - array.mean() * sizes
    return units / (units - 1) * float((deviations**2).sum()) / array.size**2
