"""Paired tests, and Holm's correction for several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from .intervals import Interval, Resampled, StatisticsError
from .resampling import unit_sums, values_of


def sign_flip_p(
    differences,
    *,
    rng: np.random.Generator,
    clusters: Sequence | None = None,
    draws: int = 9_999,
    alternative: str = "two-sided",
) -> float:
    """p-value of the paired permutation test: signs flipped at random, sums compared.

    Clusters are flipped as a whole. Exact where there are no more sign patterns
    than `draws`, else (1 + as extreme) / (1 + draws), which is never 0.
    alternative: "two-sided", "greater" (mean > 0) or "less".
    """
    if alternative not in ("two-sided", "greater", "less"):
        raise StatisticsError(f"alternative {alternative!r} is none of two-sided, greater, less")
    array = np.atleast_2d(values_of(differences))
    if array.shape[0] != 1:
        raise StatisticsError("the sign-flip test takes one score a question; average seeds first")
    sums = unit_sums(array, clusters)[0][0]
    sums = sums[sums != 0]  # a zero keeps its value under either sign
    if not len(sums):
        return 1.0
    # How often each size gets a plus sign is all that the sum depends on.
    size, count = np.unique(np.abs(sums), return_counts=True)
    observed, slack = sums.sum(), 1e-9 * np.abs(sums).sum()
    exact = 2.0 ** len(sums) <= draws
    if exact:
        patterns = np.array(list(product((-1.0, 1.0), repeat=len(sums))))
        null = patterns @ np.abs(sums)
    else:
        null = (2 * rng.binomial(count, 0.5, size=(draws, len(size))) - count) @ size
    if alternative == "two-sided":
        extreme = np.abs(null) >= abs(observed) - slack
    else:
        sign = 1 if alternative == "greater" else -1
        extreme = sign * null >= sign * observed - slack
    return float(extreme.mean() if exact else (1 + extreme.sum()) / (1 + draws))


@dataclass(frozen=True, slots=True)
class McNemar:
    """Discordant counts of two yes/no scores on the same questions, exact p."""

    only_ours: int
    only_theirs: int
    p: float


def mcnemar(ours, theirs) -> McNemar:
    """McNemar's exact test (statsmodels) for scores that are 0 or 1."""
    from statsmodels.stats.contingency_tables import mcnemar as exact

    a, b = values_of(ours, "ours"), values_of(theirs, "theirs")
    if a.shape != b.shape or a.ndim != 1:
        raise StatisticsError("McNemar's test needs one score a question on both sides")
    if not np.isin(np.concatenate([a, b]), (0.0, 1.0)).all():
        raise StatisticsError("McNemar's test takes scores of 0 and 1; use sign_flip_p for others")
    won, lost = int(((a == 1) & (b == 0)).sum()), int(((a == 0) & (b == 1)).sum())
    if won + lost == 0:
        return McNemar(0, 0, 1.0)
    table = [[int(((a == 1) & (b == 1)).sum()), won], [lost, int(((a == 0) & (b == 0)).sum())]]
    return McNemar(won, lost, min(1.0, float(exact(table, exact=True).pvalue)))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's adjusted p-values (statsmodels), by name."""
    if not p_values:
        return {}
    from statsmodels.stats.multitest import multipletests

    adjusted = multipletests(list(p_values.values()), method="holm")[1]
    return {name: float(p) for name, p in zip(p_values, adjusted, strict=True)}


def holm_intervals(contrasts: Mapping[str, Resampled], level: float = 0.95) -> dict[str, Interval]:
    """Intervals of several contrasts, widened so that they decide as Holm does.

    In the order of their p-values, the j-th of m has level 1 - alpha / (m - j +
    1), until one holds zero; the rest keep that level. So the chance that *any*
    true null's interval excludes zero stays below alpha: it is the direction
    of the contrasts that is protected. Joint coverage of all values is not
    claimed (that needs alpha / m for each).
    """
    order = sorted(contrasts, key=lambda name: (contrasts[name].p_value(), name))
    remaining, stopped = len(order), False
    intervals: dict[str, Interval] = {}
    for name in order:
        interval = contrasts[name].interval(1 - (1 - level) / remaining)
        stopped = stopped or interval.lo <= 0 <= interval.hi
        if not stopped:
            remaining = max(1, remaining - 1)
        intervals[name] = interval
    return {name: intervals[name] for name in contrasts}
