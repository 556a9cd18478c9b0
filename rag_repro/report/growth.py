"""How indexes grow, and how large they would be over the Wikipedia that DRAGIN searches.

What was measured is a table. What was not is a straight line through it on logarithmic axes,
carried on: a power of the number of passages, with the residual of the line and the interval
in which one more measurement would be expected, were the line to hold that far. It need not:
beyond the memory of a machine nothing goes on as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10, sqrt

import numpy as np

from ..evaluation.statistics import Interval
from ..study.growth import Growth, Size
from .figures import MARKERS, STYLES, WIDTH, legend, plots
from .picture import Note, Picture
from .table import Table
from .values import number, within

WIKIPEDIA = 21_015_324
"""Passages of 100 words in the dump of December 2018 that DRAGIN searches."""
SPAN = 100
"""Sizes down to the largest divided by this enter a fit; in small ones much does not grow."""
UNTOLD = 100
"""An interval whose ends are further apart than this factor says nothing of a size."""
COMMAND = "`rag-repro growth bm25 --sizes 1000 10000 100000 1000000`"


@dataclass(frozen=True)
class Quantity:
    """Something of a size that grows: its name in a table, and how it is read off.

    unit: the value is divided by it. digits: of the measured value.
    """

    label: str
    unit: float
    digits: int
    field: str
    less: str = ""

    def of(self, size: Size) -> float | None:
        """The value of a size, in its unit; None where it was not measured, or is nothing."""
        value = getattr(size, self.field)
        base = getattr(size, self.less) if self.less else 0
        if value is None or base is None or value <= base:
            return None
        return (value - base) / self.unit


DISK = Quantity("index on the disk, GB", 1e9, 3, "index")
MEMORY = Quantity("memory, GB", 1e9, 2, "memory", less="empty")
BUILDING = Quantity("hours to build", 3600, 4, "build_cpu")
SEARCHING = Quantity("ms a search", 1, 2, "lookup_cpu")
QUANTITIES = (DISK, MEMORY, BUILDING, SEARCHING)
"""What is carried on. Memory is the process's most, with the corpus, less what it had before."""


@dataclass(frozen=True)
class Fit:
    """log10(value) = intercept + power * log10(passages), by least squares.

    residual: standard deviation about the line, in decades, m - 2 degrees of freedom.
    passages: those of the fit.
    """

    power: float
    intercept: float
    residual: float
    passages: tuple[int, ...]

    @property
    def factor(self) -> float:
        """How far a measured value is from the line, typically: 1.1 is a tenth."""
        return 10**self.residual

    def at(self, passages: int, level: float = 0.95) -> Interval:
        """The value on the line, and where one more measurement there would be expected."""
        from scipy.stats import t

        x = np.log10(self.passages)
        m, apart = len(x), log10(passages) - x.mean()
        spread = self.residual * sqrt(1 + 1 / m + apart**2 / ((x - x.mean()) ** 2).sum())
        half = float(t.ppf((1 + level) / 2, m - 2)) * spread
        middle = self.intercept + self.power * log10(passages)
        return Interval(10**middle, 10 ** (middle - half), 10 ** (middle + half), m, level)


def fit(growth: Growth, quantity: Quantity, span: float = SPAN) -> Fit | None:
    """The line through the sizes of the largest's `span`; None with fewer than three."""
    held = [(s.passages, quantity.of(s)) for s in growth.measured]
    points = [(n, value) for n, value in held if value is not None]
    points = [(n, value) for n, value in points if n * span >= points[-1][0]]
    if len(points) < 3:
        return None
    x, y = np.log10(points).T
    power, intercept = np.polyfit(x, y, 1)
    off = y - (intercept + power * x)
    residual = sqrt(float((off**2).sum()) / (len(x) - 2))
    return Fit(float(power), float(intercept), residual, tuple(n for n, _ in points))


def table(
    growths: Sequence[Growth],
    labels: Mapping[str, str] | None = None,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a retriever and size: what was measured, or the limit that it went beyond."""
    words = labels or {}
    body = [_line(g, s, words.get(g.retriever, g.retriever)) for g in growths for s in g.sizes]
    if not body:
        return Note(f"No growth has been measured: {COMMAND}")
    head = ["retriever", "passages", "their text, MB", "index, MB", "memory, GB", "build, s"]
    head += ["of it encoding, s", "ms a search", "by the clock [95 of 100]", "overlap at 10"]
    kept = [i for i in range(len(head)) if any(row[i] for row in body)]
    return Table([head[i] for i in kept], [[r[i] for i in kept] for r in body], caption, name)


def _line(growth: Growth, size: Size, label: str) -> list[str]:
    start = [label, f"{size.passages:,}"]
    if size.stopped is not None:
        limit = {"memory": f"{growth.limits.get('gigabytes', '?')} GB of memory"}
        limit["processor time"] = f"{growth.limits.get('minutes', '?')} minutes of the processor"
        said = f"stopped: more than {limit.get(size.stopped, size.stopped)}"
        return [*start, "", said, *[""] * 6]
    memory = MEMORY.of(size)
    overlap = ", ".join(f"{with_} {share:.3f}" for with_, share in size.overlap.items())
    clock = "" if size.search is None else f"{size.search:.1f} [{number(size.search_95, 1)}]"
    return [
        *start,
        number(None if size.text is None else size.text / 1e6, 1),
        number(None if size.index is None else size.index / 1e6, 1),
        number(memory, 2),
        number(size.build_cpu, 1),
        number(size.encoding_cpu, 1),
        number(size.lookup_cpu, 2),
        clock,
        overlap,
    ]


def wikipedia(
    growths: Sequence[Growth],
    passages: int = WIKIPEDIA,
    span: float = SPAN,
    labels: Mapping[str, str] | None = None,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a retriever and quantity: measured at the largest size, and extrapolated.

    Every number that was not measured says so. Residual: how far the measured values lie from
    the line, as a factor.
    """
    body = []
    for growth in growths:
        for quantity in QUANTITIES:
            line = fit(growth, quantity, span)
            if line is None:
                continue
            largest = max(line.passages)
            [size] = [s for s in growth.measured if s.passages == largest]
            body.append(
                [
                    (labels or {}).get(growth.retriever, growth.retriever),
                    quantity.label,
                    f"{number(quantity.of(size), quantity.digits)} at {largest:,}",
                    f"{line.power:.2f}",
                    f"x {line.factor:.2f}, {len(line.passages)} sizes",
                    carried(growth, quantity, passages, span),
                ]
            )
    if not body:
        return Note(
            f"Nothing can be extrapolated: three sizes within a factor of {span:g} are needed, "
            f"as by {COMMAND}"
        )
    head = ["retriever", "quantity", "measured", "power of the passages", "residual"]
    return Table([*head, f"at {passages:,} passages [95 %]"], body, caption, name)


def carried(
    growth: Growth, quantity: Quantity, passages: int, span: float = SPAN, price: float = 1.0
) -> str | None:
    """What so many passages would need, times the price; None with fewer than three sizes.

    An index is held whole. A line of memory that ends below it rests on what does not grow, as an
    encoder, and is not carried on.
    """
    line, index = fit(growth, quantity, span), fit(growth, DISK, span)
    if line is None:
        return None
    at = line.at(passages)
    if quantity is MEMORY and index and at.estimate < index.at(passages).estimate:
        return "not carried on: less than the index itself"
    return extrapolated(at.scaled(price))


def extrapolated(interval: Interval) -> str:
    """Two significant digits, which is more than such a number can bear; or that there is none."""
    if not interval.estimate:
        return "0"
    if interval.hi > UNTOLD * interval.lo:
        return "not carried on: these sizes do not tell"
    digits = max(0, 1 - int(np.floor(log10(interval.estimate))))
    return f"{within(interval, digits)} (extrapolated)"


def picture(
    growths: Sequence[Growth],
    labels: Mapping[str, str] | None = None,
    caption: str = "",
    name: str = "",
) -> Picture | Note:
    """A panel a quantity, by passages, both logarithmic: measured, and the line through it."""
    held = [growth for growth in growths if growth.measured]
    if not held:
        return Note(f"No growth has been measured: {COMMAND}")
    plt, colours = plots()
    figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 0.75 * WIDTH), layout="constrained")
    words = [(labels or {}).get(growth.retriever, growth.retriever) for growth in held]
    looks = list(zip(colours, MARKERS, strict=False))[: len(held)]
    spoken = []
    for axis, quantity in zip(axes.flat, QUANTITIES, strict=True):
        for growth, said, (colour, marker) in zip(held, words, looks, strict=True):
            points = [(s.passages, quantity.of(s)) for s in growth.measured]
            points = [(n, value) for n, value in points if value is not None]
            if not points:
                continue
            axis.plot(*zip(*points, strict=True), color=colour, marker=marker, ms=5, ls="")
            n, value = points[-1]
            spoken.append(f"{said}, {quantity.label}: {number(value, quantity.digits)} at {n:,}")
            if line := fit(growth, quantity):
                ends = min(line.passages), max(line.passages)
                axis.plot(ends, [line.at(end).estimate for end in ends], color=colour, ls=STYLES[0])
        axis.set(xscale="log", yscale="log", xlabel="passages", ylabel=quantity.label)
        for along in (axis.xaxis, axis.yaxis):
            # Not powers of ten: formulas are not set in figures.
            along.set_major_formatter(_plainly)
        axis.minorticks_off()
    legend(figure, looks, words)
    return Picture(figure, f"Growth. {'; '.join(spoken)}.", caption, name)


def _plainly(value: float, place: int | None = None) -> str:
    if value >= 1:
        return f"{value:,.0f}"
    return np.format_float_positional(value, precision=3, fractional=False, trim="-")


@dataclass(frozen=True)
class Prices:
    """What a provider asks, in any one currency: an hour of a core, a GB-hour of memory, and
    a GB-month on the disk.
    """

    core_hour: float
    memory_hour: float
    disk_month: float

    def __post_init__(self):
        for name in ("core_hour", "memory_hour", "disk_month"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; a price is 0 or more")


MONTH = 730
"""Hours."""


def bill(
    growths: Sequence[Growth],
    prices: Prices,
    passages: int = WIKIPEDIA,
    labels: Mapping[str, str] | None = None,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """What building an index of so many passages once and keeping it for a month would cost."""
    asked = {
        "to build": (BUILDING, prices.core_hour),
        "on the disk, a month": (DISK, prices.disk_month),
        "in memory, a month": (MEMORY, MONTH * prices.memory_hour),
    }
    body = []
    for growth in growths:
        costs = [carried(growth, what, passages, price=price) for what, price in asked.values()]
        if all(cost is not None for cost in costs):
            body.append([(labels or {}).get(growth.retriever, growth.retriever), *costs])
    if not body:
        return Note("No cost can be told: three sizes of a retriever are needed.")
    return Table(["retriever", *asked], body, caption, name)


def again(grown: Sequence[Growth], retriever: str, size: Size) -> Table | Note:
    """One size measured just now beside the recorded one, with what must be the same to the byte.

    ValueError: that size of a recorded retriever was not recorded.
    """
    growth = next((one for one in grown if one.retriever == retriever), None)
    if growth is None:
        return Note(f"Nothing to compare with: no growth of {retriever} is recorded ({COMMAND}).")
    recorded = next((s for s in growth.measured if s.passages == size.passages), None)
    if recorded is None:
        raise ValueError(f"{growth.retriever}: {size.passages:,} passages were not recorded")
    body = []
    for label, field in (("bytes of text", "text"), ("bytes of the index", "index")):
        then, now = getattr(recorded, field), getattr(size, field)
        body.append([label, f"{then:,}", f"{now:,}", "yes" if then == now else "no"])
    for label, field in (("s to build", "build_cpu"), ("ms a search", "lookup_cpu")):
        then, now = getattr(recorded, field), getattr(size, field)
        body.append([label, number(then, 3), number(now, 3), "machine's own"])
    return Table(["quantity", "recorded", "just now", "the same"], body)
