"""Bootstrap intervals for means of scores and of their paired differences.

The unit that is resampled is the question or, where questions hang together,
the cluster (testbed: world and chain). Intervals are percentile intervals of
the bootstrap, widened for few units:

* each draw's deviation from the estimate is multiplied by sqrt(c / (c - 1)),
  since resampling c units loses that much variance, and by t / z, the ratio of
  the Student and normal quantiles with c - 1 degrees of freedom (the idea of
  Hesterberg 2015, "What teachers should know about the bootstrap", section
  4.3). With 100 units that is 1.7 %, with 5 clusters 58 %.
* why not BCa: with few discordant answers (2 + 2 % of 100 questions) its
  interval excludes zero on the upper side in 4.4 % of null samples, where
  2.5 % are meant and the percentile has 1.7 %; elsewhere they agree. A test
  holds the percentile's rates there.
* of differences of which none lies to one side the bootstrap shows nothing there: with one loss
  in 60 and no gain it would call a true gain of 2 points impossible in 8 % of samples. So the
  interval reaches at least as far as what as many units may have left unseen.

Randomness is a numpy Generator handed in. Errors: StatisticsError.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

DRAWS = 20_000
CHUNK = 4_000_000  # numbers in memory at once

Unseen = tuple[tuple[float, int], ...]
"""(span, units) of parts: how much one unit could differ that none has shown, and of how many."""


class StatisticsError(ValueError):
    """Data from which the asked statistic cannot be computed."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval; n counts questions, level is 0.95 or more.

    lo = -inf and hi = inf where a single unit allows no interval.
    """

    estimate: float
    lo: float
    hi: float
    n: int
    level: float = 0.95

    def __post_init__(self):
        if not self.lo <= self.estimate <= self.hi:
            raise StatisticsError(
                f"an interval [{self.lo:g}, {self.hi:g}] must hold its estimate {self.estimate:g}"
            )

    @property
    def width(self) -> float:
        return self.hi - self.lo

    def shifted(self, by: float) -> Interval:
        return replace(self, estimate=self.estimate + by, lo=self.lo + by, hi=self.hi + by)

    def cut(self, low: float, high: float) -> Interval:
        """Without what the quantity cannot be."""
        lo, hi = max(self.lo, low), min(self.hi, high)
        return replace(self, lo=min(lo, self.estimate), hi=max(hi, self.estimate))

    def flipped(self) -> Interval:
        """The same interval in the other direction."""
        return replace(self, estimate=-self.estimate, lo=-self.hi, hi=-self.lo)


@dataclass(frozen=True, eq=False)
class Resampled:
    """An estimate with its bootstrap draws, from which any interval follows.

    draws: in the order drawn, already corrected for the number of units. df: degrees of
    freedom; 0 where one unit allows no interval. unseen: (span, units) of
    every part whose values are all equal (see `resample`); above, below: of every part of
    differences of which none is above, or none below, zero. limits: what the
    quantity cannot go beyond (a share: 0 and 1), so that no interval does.
    """

    estimate: float
    draws: np.ndarray
    n: int
    df: float
    unseen: Unseen = ()
    above: Unseen = ()
    below: Unseen = ()
    limits: tuple[float, float] = (-math.inf, math.inf)

    def within(self, low: float, high: float) -> Resampled:
        """The same with these limits."""
        return replace(self, limits=(low, high))

    def interval(self, level: float = 0.95) -> Interval:
        """Two-sided interval of that level."""
        return self._unlimited(level).cut(*self.limits)

    def _unlimited(self, level: float) -> Interval:
        if not 0 < level < 1:
            raise StatisticsError(f"level {level:g} must lie between 0 and 1, as 0.95")
        if self.df == 0:
            return Interval(self.estimate, -math.inf, math.inf, self.n, level)
        alpha = 1 - level
        if alpha / 2 * len(self.draws) < 5 - 1e-6:
            raise StatisticsError(
                f"{len(self.draws)} draws are too few for a level of {level:g}: "
                f"ask for at least {math.ceil(10 / alpha)}"
            )
        low, high = map(float, np.quantile(self.draws, [alpha / 2, 1 - alpha / 2]) - self.estimate)
        stretch = _student(alpha, self.df) / _normal(alpha)
        slack = _slack(self.unseen, alpha)
        return Interval(
            self.estimate,
            self.estimate + min(low * stretch, -_slack(self.below, alpha)) - slack,
            self.estimate + max(high * stretch, _slack(self.above, alpha)) + slack,
            self.n,
            level,
        )

    def p_value(self) -> float:
        """Smallest alpha whose interval excludes zero; never below 10 / draws."""
        low, high = 10 / len(self.draws), 1 - 1e-9
        if self.df == 0 or self._holds_zero(high):
            return 1.0
        if not self._holds_zero(low):
            return low
        for _ in range(40):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._holds_zero(middle) else (low, middle)
        return high

    def _holds_zero(self, alpha: float) -> bool:
        interval = self.interval(1 - alpha)
        return interval.lo <= 0 <= interval.hi


def _slack(unseen: Unseen, alpha: float) -> float:
    """What no unit showed may still exist: 1 - (alpha / 2)^(1 / units) is the largest share that
    stays unseen with probability alpha / 2.
    """
    return sum(span * (1 - (alpha / 2) ** (1 / units)) for span, units in unseen)


@lru_cache(maxsize=1024)  # the same few levels and sizes again and again
def _normal(alpha: float) -> float:
    from scipy.stats import norm

    return float(norm.isf(alpha / 2))


@lru_cache(maxsize=1024)
def _student(alpha: float, df: float) -> float:
    from scipy.stats import t

    return float(t.isf(alpha / 2, df)) if math.isfinite(df) else _normal(alpha)


# ------------------------------------------------------------------- resampling


def values_of(values, name: str = "values") -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim not in (1, 2):
        raise StatisticsError(
            f"{name} have {array.ndim} dimensions; give (questions,) or (seeds, questions)"
        )
    if not array.size:
        raise StatisticsError(f"{name} are empty: no question was scored")
    wrong = int((~np.isfinite(array)).sum())
    if wrong:
        raise StatisticsError(
            f"{wrong} of {array.size} {name} are not finite; leave questions without a score out"
        )
    return array


def unit_sums(values: np.ndarray, clusters) -> tuple[np.ndarray, np.ndarray]:
    """Sums (seeds, units) and sizes (units,) of the units to resample."""
    n = values.shape[1]
    if clusters is None:
        return values, np.ones(n)
    labels = np.asarray(clusters)
    if labels.shape != (n,):
        raise StatisticsError(f"{len(labels)} cluster labels for {n} questions; give one each")
    _, unit = np.unique(labels, return_inverse=True)
    sizes = np.bincount(unit).astype(float)
    return np.stack([np.bincount(unit, weights=row) for row in values]), sizes


def _one_level(sums: np.ndarray, sizes: np.ndarray, draws: int, rng) -> np.ndarray:
    """Means of `draws` resamples of the units. sums, sizes: (units,) -> (draws,)."""
    kinds, counts = np.unique(np.stack([sums, sizes], axis=1), axis=0, return_counts=True)
    units = len(sums)
    if len(kinds) * 4 <= units:  # few distinct scores: draw how often each comes
        drawn = rng.multinomial(units, counts / units, size=draws)
        return (drawn @ kinds[:, 0]) / (drawn @ kinds[:, 1])
    means = np.empty(draws)
    step = max(1, CHUNK // units)
    for start in range(0, draws, step):
        chosen = rng.integers(0, units, size=(min(step, draws - start), units))
        means[start : start + step] = sums[chosen].sum(1) / sizes[chosen].sum(1)
    return means


def _two_levels(sums: np.ndarray, sizes: np.ndarray, draws: int, rng) -> np.ndarray:
    """Seeds and units drawn independently. sums: (seeds, units) -> (draws,)."""
    seeds, units = sums.shape
    means = np.empty(draws)
    step = max(1, CHUNK // units)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        of_seed = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=size) / seeds
        chosen = rng.integers(0, units, size=(size, units))
        drawn = np.take_along_axis(of_seed @ sums, chosen, axis=1)
        means[start : start + size] = drawn.sum(1) / sizes[chosen].sum(1)
    return means


def resample(
    values,
    *,
    rng: np.random.Generator,
    clusters: Sequence | None = None,
    draws: int = DRAWS,
    span: float | None = None,
    signed: bool = False,
) -> Resampled:
    """Bootstrap of a mean.

    values: (questions,), or (seeds, questions) of something trained, then seeds
    and questions are both drawn (crossed), and the degrees of freedom are
    Satterthwaite's, so three seeds cost what three seeds must. clusters: one
    label a question. span: the largest difference between two values (1 for a
    score in [0, 1]); with it, values that are all equal get the interval of
    what n units may have left unseen, without it one of zero width. signed: the values are
    differences, which can lie to either side of zero; where none lies to one side, the interval
    leaves room there, too, for what n units may have left unseen, each as large as the largest
    that was seen.
    One unit: an infinite interval. No unit: an error.
    """
    array = np.atleast_2d(values_of(values))
    sums, sizes = unit_sums(array, clusters)
    seeds, units = sums.shape
    n = array.shape[1]
    estimate = float(array.mean())
    if units == 1 or (seeds == 1 and np.ndim(values) == 2):
        # One seed says nothing about seeds; give (questions,) to leave them aside.
        return Resampled(estimate, np.full(2, estimate), n, 0.0)
    if np.ptp(array) < 1e-12:
        unseen = () if span is None else ((float(span), units),)
        return Resampled(estimate, np.full(draws, estimate), n, math.inf, unseen)
    per_unit = sums.mean(0) - estimate * sizes
    var_units = units / (units - 1) * float((per_unit**2).sum()) / n**2
    if seeds == 1:
        means = _one_level(sums[0], sizes, draws, rng)
        df = units - 1.0
    else:
        means = _two_levels(sums, sizes, draws, rng)
        var_seeds = float(array.mean(1).var(ddof=1)) / seeds
        df = (var_units + var_seeds) ** 2 / (
            var_units**2 / (units - 1) + var_seeds**2 / (seeds - 1)
        )
        # The seeds' share of the spread is short by (seeds - 1) / seeds.
        short = (var_units + var_seeds) / (var_units + var_seeds * (seeds - 1) / seeds)
        means = estimate + (means - estimate) * math.sqrt(short)
    means = estimate + (means - estimate) * math.sqrt(units / (units - 1))
    # No larger than what was seen on the other side.
    reach = min(float(np.abs(array).max()), math.inf if span is None else span)
    room = ((reach, units),) if signed and span is not None else ()
    above, below = (room if (side <= 0).all() else () for side in (array, -array))
    return Resampled(estimate, means, n, df, above=above, below=below)


def resample_difference(
    ours,
    theirs,
    *,
    rng: np.random.Generator,
    clusters: Sequence | None = None,
    draws: int = DRAWS,
    span: float | None = None,
) -> Resampled:
    """Bootstrap of mean(ours - theirs) on the same questions, in the same order."""
    a, b = values_of(ours, "ours"), values_of(theirs, "theirs")
    if a.shape[-1] != b.shape[-1]:
        raise StatisticsError(
            f"{a.shape[-1]} against {b.shape[-1]} scores: a paired difference needs "
            "the same questions on both sides"
        )
    return resample(a - b, rng=rng, clusters=clusters, draws=draws, span=span, signed=True)


def combine(parts: Sequence[Resampled], weights: Sequence[float] | None = None) -> Resampled:
    """A weighted sum of means over *different* questions; equal weights: their mean.

    A macro-average over data sets has weights 1 / m; a gap between two groups
    of questions, or a difference of differences, has 1 and -1. Settings that
    share their questions (k = 3, 4, 6) are averaged a question first.
    """
    if not parts:
        raise StatisticsError("nothing to combine: give at least one cell")
    w = [1 / len(parts)] * len(parts) if weights is None else list(weights)
    if len(w) != len(parts):
        raise StatisticsError(f"{len(w)} weights for {len(parts)} cells")
    estimate = sum(f * p.estimate for f, p in zip(w, parts, strict=True))
    n = sum(p.n for p in parts)
    ends = [sorted(f * end for end in p.limits) for f, p in zip(w, parts, strict=True) if f]
    # Rounded: a third of 100 three times is a little less, and would leave a gap to 100.
    limits = tuple(round(math.fsum(side), 9) for side in zip((0.0, 0.0), *ends, strict=True))
    if any(p.df == 0 for p in parts):
        return Resampled(estimate, np.full(2, estimate), n, 0.0, limits=limits)
    # Draws of different cells are independent: add them in the order drawn.
    sizes = {len(p.draws) for p in parts}
    if len(sizes) > 1:
        raise StatisticsError(
            f"cells with {sorted(sizes)} draws cannot be combined; use one number"
        )
    # Cells drawn with equal seeds would move together: shuffle each one's draws
    # (they have no order), the same way every time.
    means = sum(
        f * np.random.default_rng(i).permutation(p.draws)
        for i, (f, p) in enumerate(zip(w, parts, strict=True))
    )
    spread = [float(np.var(f * p.draws)) for f, p in zip(w, parts, strict=True)]
    below = sum(s**2 / p.df for s, p in zip(spread, parts, strict=True))
    df = sum(spread) ** 2 / below if below else math.inf
    weighted = list(zip(w, parts, strict=True))
    # What is taken away turns its sides around.
    sides = [(f, (p.above, p.below) if f > 0 else (p.below, p.above)) for f, p in weighted]
    return Resampled(
        float(estimate),
        means,
        n,
        df,
        unseen=_scaled((f, p.unseen) for f, p in weighted),
        above=_scaled((f, above) for f, (above, _) in sides),
        below=_scaled((f, below) for f, (_, below) in sides),
        limits=limits,
    )


def _scaled(held: Iterable[tuple[float, Unseen]]) -> Unseen:
    return tuple((abs(factor) * span, units) for factor, one in held for span, units in one)


def mean_interval(values, *, rng, clusters=None, level=0.95, draws=DRAWS, span=None) -> Interval:
    """`resample(...)`, then its interval."""
    return resample(values, rng=rng, clusters=clusters, draws=draws, span=span).interval(level)


def paired_interval(
    ours, theirs, *, rng, clusters=None, level=0.95, draws=DRAWS, span=None
) -> Interval:
    """`resample_difference(...)`, then its interval."""
    drawn = resample_difference(ours, theirs, rng=rng, clusters=clusters, draws=draws, span=span)
    return drawn.interval(level)


def interaction_interval(
    with_both, with_a, with_b, with_none, *, rng, clusters=None, level=0.95, draws=DRAWS, span=None
) -> Interval:
    """Interval of (both - a) - (b - none), all four on the same questions."""
    gains = np.subtract(with_both, with_a), np.subtract(with_b, with_none)
    return paired_interval(*gains, rng=rng, clusters=clusters, level=level, draws=draws, span=span)
