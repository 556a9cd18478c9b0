"""Bootstrap draws of means of scores and of their paired differences.

The unit that is resampled is the question or, where questions hang together,
the cluster (testbed: world and chain). `intervals` says what follows from the draws.

Randomness is a numpy Generator handed in. Errors: StatisticsError.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from rag_repro.evaluation.bootstrap_draws import over_draws
from rag_repro.evaluation.intervals import Resampled, StatisticsError, Unseen

Key = TypeVar("Key", int, str)
DRAWS = 20_000


def new_generator() -> np.random.Generator:
    """What draws for a page: begun anew each time, the same scores give the same interval."""
    return np.random.default_rng(20240607)


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
    of_units = np.stack([sums, sizes], axis=1)

    def means(times: np.ndarray) -> np.ndarray:
        top, bottom = (times @ of_units).T
        return top / bottom

    return over_draws(means, len(sums), draws, rng)


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

    values: (questions,), or (seeds, questions) of something trained: then the questions' means over
    the seeds are drawn, and each seed's own mean adds its spread (`Resampled.trainings`, by its
    place): the seeds are the same whatever the questions, so that over several data sets theirs
    does not average out. clusters: one label a question. span: the largest difference between two
    values (1 for a score in [0, 1]); with it, values that are all equal get the interval of
    what n units may have left unseen, without it one of zero width. signed: the values are
    differences, which can lie to either side of zero; where none lies to one side, the interval
    leaves room there, too, for what n units may have left unseen, each as large as the largest
    that was seen.
    One unit: an infinite interval. No unit: an error.
    """
    array = values_of(values)
    if array.ndim == 2:
        told = {"rng": rng, "clusters": clusters, "draws": draws, "span": span, "signed": signed}
        drawn = resample(array.mean(0), **told)
        if len(array) == 1:
            # One seed says nothing about seeds; give (questions,) to leave them aside.
            return replace(drawn, df=0.0)
        return replace(drawn, trainings=dict(enumerate(array.mean(1) - array.mean())))
    [sums], sizes = unit_sums(array[None], clusters)
    units, n, estimate = len(sums), len(array), float(array.mean())
    if units == 1:
        return Resampled(estimate, np.full(2, estimate), n, 0.0)
    if np.ptp(sums / sizes) < 1e-12:  # whatever is drawn, the mean is the same
        unseen = () if span is None else ((float(span), units),)
        return Resampled(estimate, np.full(draws, estimate), n, math.inf, unseen)
    means = _one_level(sums, sizes, draws, rng)
    means = estimate + (means - estimate) * math.sqrt(units / (units - 1))
    # No larger than what was seen on the other side.
    reach = min(float(np.abs(array).max()), math.inf if span is None else span)
    room = ((reach, units),) if signed and span is not None else ()
    above, below = (room if (side <= 0).all() else () for side in (array, -array))
    return Resampled(estimate, means, n, units - 1.0, above=above, below=below)


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


def combine(parts: Sequence[Resampled], families: Sequence[Any] | None = None) -> Resampled:
    """The mean of means, over different questions but for `families`: a macro-average of data sets.

    Settings that share their questions (k = 3, 4, 6) are averaged a question first.

    families: a label a part; None: each its own. Parts of one family share questions (NQ's with
    ten passages and with twenty) and count as if they rose and fell together, which is the widest
    that their mean can be; n counts their questions once.
    """
    if not parts:
        raise StatisticsError("nothing to combine: give at least one cell")
    weight = 1 / len(parts)
    estimate = sum(weight * p.estimate for p in parts)
    labels = list(range(len(parts)) if families is None else families)
    if len(labels) != len(parts):
        raise StatisticsError(f"{len(labels)} families for {len(parts)} cells")
    held = {label: [i for i, own in enumerate(labels) if own == label] for label in labels}
    n = sum(max(parts[i].n for i in of) for of in held.values())
    # Rounded: a third of 100 three times is a little less, and would leave a gap to 100.
    ends = zip(*(p.limits for p in parts), strict=True)
    limits = tuple(round(math.fsum(weight * end for end in side), 9) for side in ends)
    if any(p.df == 0 for p in parts):
        return Resampled(estimate, np.full(2, estimate), n, 0.0, limits=limits)
    # Draws of different families are independent: add them in the order drawn.
    sizes = {len(p.draws) for p in parts}
    if len(sizes) > 1:
        raise StatisticsError(
            f"cells with {sorted(sizes)} draws cannot be combined; use one number"
        )
    # Cells drawn with equal seeds would move together: shuffle each one's draws
    # (they have no order), the same way every time.
    sums = [_together([weight * parts[i].draws for i in of]) for of in held.values()]
    means = sum(
        np.random.default_rng(of[0]).permutation(drawn)
        for of, drawn in zip(held.values(), sums, strict=True)
    )
    spread = [float(np.var(drawn)) for drawn in sums]
    dfs = [min(parts[i].df for i in of) for of in held.values()]
    below = sum(s**2 / df for s, df in zip(spread, dfs, strict=True))
    df = sum(spread) ** 2 / below if below else math.inf
    return Resampled(
        float(estimate),
        means,
        n,
        df,
        unseen=_scaled(weight, [p.unseen for p in parts]),
        above=_scaled(weight, [p.above for p in parts]),
        below=_scaled(weight, [p.below for p in parts]),
        limits=limits,
        # A seed is one training in all of the parts.
        trainings=_summed(weight, [p.trainings for p in parts]),
        borrowed=_summed(weight, [p.borrowed for p in parts]),
    )


def _together(draws: Sequence[np.ndarray]) -> np.ndarray:
    """Draws of a sum whose terms are all high at once; of one term as they are."""
    return draws[0] if len(draws) == 1 else np.sum([np.sort(one) for one in draws], axis=0)


def _summed(weight: float, held: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    names = sorted({name for one in held for name in one})
    return {name: math.fsum(weight * one.get(name, 0.0) for one in held) for name in names}


def _scaled(weight: float, held: Sequence[Unseen]) -> Unseen:
    return tuple((weight * span, units) for one in held for span, units in one)
