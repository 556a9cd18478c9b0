"""How far words that are looked at more, and less, move what stands behind them.

A line's `influence` holds of each pair of words [a_max of the one with more, a_max of the other,
how far the same tokens behind both moved without the one, without the other, in nats a token, 1
where the one with more stands first] (`methods.dragin.influence_check`).
"""

from __future__ import annotations

from functools import partial

from .metric import Line, Metric, percent

HIGH, LOW, MOVED_HIGH, MOVED_LOW, FIRST = range(5)
"""Places in a pair's entry."""


def mean_of(place: int, line: Line) -> float | None:
    """Mean of the pairs; None without one."""
    pairs = line.get("influence")
    return sum(pair[place] for pair in pairs) / len(pairs) if pairs else None


def further(line: Line) -> float | None:
    """Share of the pairs of which the word with the higher a_max moves more, ties by half."""
    pairs = line.get("influence")
    if not pairs:
        return None
    more = sum((p[MOVED_HIGH] > p[MOVED_LOW]) + (p[MOVED_HIGH] == p[MOVED_LOW]) / 2 for p in pairs)
    return more / len(pairs)


TABLE = (
    *(
        Metric(
            name,
            symbol,
            "nats",
            "line",
            None,
            partial(mean_of, place),
            f"how far the tokens behind a pair of words move where the one with the {which} a_max "
            "is masked: mean difference of their log probabilities",
        )
        for name, symbol, place, which in (
            ("moved_high", "Moved, higher a_max", MOVED_HIGH, "higher"),
            ("moved_low", "Moved, lower a_max", MOVED_LOW, "lower"),
        )
    ),
    percent(
        "moved_further",
        "Higher a_max moves more",
        "line",
        further,
        "share of the pairs of which the word with the higher a_max moves what follows more",
    ),
    percent("high_a_max", "a_max, higher", "line", partial(mean_of, HIGH), "of a pair", None),
    percent("low_a_max", "a_max, lower", "line", partial(mean_of, LOW), "of a pair", None),
    percent(
        "high_first",
        "Higher stands first",
        "line",
        partial(mean_of, FIRST),
        "share of the pairs of which the word with the higher a_max stands first",
        None,
    ),
)
