"""What an index needs by its number of passages: a power, fitted and carried on.

A straight line through the measured sizes on logarithmic axes. The interval is the one in which one
more measurement would be expected, were the line to hold that far. It need not: beyond the memory
of a machine nothing goes on as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10, sqrt

import numpy as np

from rag_repro.evaluation.intervals import Interval
from rag_repro.study.growth import Growth, Size

SPAN = 100
"""Sizes down to the largest divided by this enter a fit; in small ones much does not grow."""
UNTOLD = 100
"""An interval whose ends are further apart than this factor says nothing of a size."""


@dataclass(frozen=True)
class Quantity:
    """Something of a size that grows, less what it began with.

    unit: the value is divided by it. digits: of the measured value.
    """

    label: str
    unit: float
    digits: int
    field: str
    less: str = ""

    def read(self, size: Size) -> float | None:
        """The value of a size, in its unit; None where it was not measured, or is nothing."""
        value = getattr(size, self.field)
        base = getattr(size, self.less) if self.less else 0
        if value is None or base is None or value <= base:
            return None
        return (value - base) / self.unit

    def points(self, growth: Growth) -> list[tuple[int, float]]:
        """(passages, value) of each measured size."""
        found = [(size.passages, self.read(size)) for size in growth.measured]
        return [(n, value) for n, value in found if value is not None]


DISK = Quantity("index on the disk, GB", 1e9, 3, "index")
MEMORY = Quantity("memory, GB", 1e9, 2, "memory", less="empty")
BUILDING = Quantity("hours to build", 3600, 4, "build_cpu")
SEARCHING = Quantity("ms a search", 1, 2, "lookup_cpu")
QUANTITIES = (DISK, MEMORY, BUILDING, SEARCHING)


@dataclass(frozen=True)
class Fit:
    """log10(value) = intercept + power * log10(passages), by least squares.

    residual: standard deviation about the line, in decades, m - 2 degrees of freedom.
    points: (passages, value) of the m sizes of the fit.
    """

    power: float
    intercept: float
    residual: float
    points: tuple[tuple[int, float], ...]

    def at(self, passages: int, level: float = 0.95) -> Interval:
        """The value on the line, and where one more measurement there would be expected."""
        from scipy.stats import t

        x = np.log10([n for n, _ in self.points])
        m, apart = len(x), log10(passages) - x.mean()
        spread = self.residual * sqrt(1 + 1 / m + apart**2 / ((x - x.mean()) ** 2).sum())
        half = float(t.ppf((1 + level) / 2, m - 2)) * spread
        middle = self.intercept + self.power * log10(passages)
        return Interval(10**middle, 10 ** (middle - half), 10 ** (middle + half), m, level)


def fit(growth: Growth, quantity: Quantity, span: float = SPAN) -> Fit | None:
    """The line through the sizes of the largest's `span`; None with fewer than three."""
    points = quantity.points(growth)
    points = [(n, value) for n, value in points if n * span >= points[-1][0]]
    if len(points) < 3:
        return None
    x, y = np.log10(points).T
    power, intercept = np.polyfit(x, y, 1)
    off = y - (intercept + power * x)
    residual = sqrt(float((off**2).sum()) / (len(x) - 2))
    return Fit(float(power), float(intercept), residual, tuple(points))


def extrapolate(growth: Growth, quantity: Quantity, passages: int) -> str:
    """What so many passages would need, to two significant digits, or why that is not known.

    growth: with three sizes that `fit` takes. An index is held whole: a line of memory that ends
    below it rests on what does not grow, as an encoder, and is not carried on.
    """
    at, index = fit(growth, quantity).at(passages), fit(growth, DISK)
    if quantity is MEMORY and index and at.estimate < index.at(passages).estimate:
        return "not carried on: less than the index itself"
    if at.hi > UNTOLD * at.lo:
        return "not carried on: these sizes do not tell"
    digits = max(0, 1 - floor(log10(at.estimate)))
    value, low, high = (f"{end:.{digits}f}" for end in (at.estimate, at.lo, at.hi))
    return f"{value} [{low}, {high}] (extrapolated)"
