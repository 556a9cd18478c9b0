"""Numbers as pages print them; empty where there is none."""

from __future__ import annotations

from rag_repro.evaluation.intervals import Interval


def number(value: float | None, digits: int = 2) -> str:
    """As 12.35."""
    return "" if value is None else f"{value:.{digits}f}"


def points(share: float | None) -> str:
    """A share from 0 to 1 in percent, as 12.3."""
    return "" if share is None else number(100 * share, 1)


def p_value(p: float) -> str:
    return "< 0.001" if p < 0.001 else number(p, 3)


def within(interval: Interval | None, digits: int = 2, sign: str = "", n: bool = False) -> str:
    """As 12.35 [11.02, 13.68], n 250.

    sign: "+" for differences. n: whether the number of questions stands behind.
    """
    if interval is None:
        return ""
    values = (interval.estimate, interval.lo, interval.hi)
    middle, lo, hi = (f"{value:{sign}z.{digits}f}" for value in values)
    return f"{middle} [{lo}, {hi}]" + (f", n {interval.n}" if n else "")


def in_points(share: Interval | None, sign: str = "") -> str:
    """An interval of shares, in percentage points, as 12.3 [11.0, 13.7]."""
    return within(share and share.scaled(100), 1, sign)
