"""What a number of questions resolves.

Normal theory for the mean of a paired difference: an effect d with variance
v a question is found with 80 % power at two-sided 5 % where
d = (z(0.975) + z(0.80)) sqrt(v / n).
"""

from __future__ import annotations

from rag_repro.evaluation.intervals import Interval, normal


def mde_of(interval: Interval, *, power: float = 0.8) -> float:
    """Smallest true difference that is found with that power, read off an interval.

    Clusters, seeds and Holm are in its width.
    """
    return interval.width / 2 * (1 + normal(2 * (1 - power)) / normal(1 - interval.level))


def needed(interval: Interval, effect: float) -> float:
    """As many questions as it takes to find an effect with 80 % power, read off an interval of n;
    infinite where that is infinite.
    """
    return interval.n * (mde_of(interval) / effect) ** 2
