"""McNemar's test, and Holm's correction of several contrasts' intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_repro.evaluation.intervals import Interval, Resampled, StatisticsError
from rag_repro.evaluation.resampling import values_of


@dataclass(frozen=True, slots=True)
class McNemar:
    """Discordant counts of two yes/no scores on the same questions, exact p."""

    only_ours: int
    only_theirs: int
    p: float


def mcnemar(ours, theirs) -> McNemar:
    """McNemar's exact test for scores that are 0 or 1: SciPy's binomial of the discordant pairs."""
    from scipy.stats import binomtest

    a, b = values_of(ours, "ours"), values_of(theirs, "theirs")
    if a.shape != b.shape or a.ndim != 1:
        raise StatisticsError("McNemar's test needs one score a question on both sides")
    if not np.isin(np.concatenate([a, b]), (0.0, 1.0)).all():
        raise StatisticsError("McNemar's test takes scores of 0 and 1 alone")
    won, lost = int(((a == 1) & (b == 0)).sum()), int(((a == 0) & (b == 1)).sum())
    if won + lost == 0:
        return McNemar(0, 0, 1.0)
    return McNemar(won, lost, float(binomtest(won, won + lost).pvalue))


def holm_intervals(
    contrasts: Mapping[Any, Resampled],
    level: float = 0.95,
    bounds: Mapping[Any, Sequence[float]] | None = None,
    size: int | None = None,
) -> dict[Any, Interval]:
    """Intervals of several contrasts, widened so that they decide as Holm does.

    bounds: what a contrast is judged against, where that is not zero: 50 for a level that is to lie
    above one half, both ends of a margin for an equivalence. In the order of their p-values (of
    two bounds the larger), the j-th of m has level 1 - alpha / (m - j + 1), until one holds a
    bound; the rest keep that level. So the chance that *any* true null's interval excludes its
    bound stays below alpha: it is the direction of the contrasts that is protected. Joint
    coverage of all values is not claimed (that needs alpha / m for each). size: m, where contrasts
    that cannot exclude their bound on the side that is asked for are left out.
    """
    against = {name: tuple((bounds or {}).get(name, (0.0,))) for name in contrasts}
    p = {name: max(map(drawn.p_value, against[name])) for name, drawn in contrasts.items()}
    order = sorted(contrasts, key=lambda name: (p[name], name))
    remaining, stopped = size or len(order), False
    intervals: dict[Any, Interval] = {}
    for name in order:
        interval = contrasts[name].interval(1 - (1 - level) / remaining)
        stopped = stopped or any(interval.lo <= at <= interval.hi for at in against[name])
        if not stopped:
            remaining = max(1, remaining - 1)
        intervals[name] = interval
    return {name: intervals[name] for name in contrasts}
