"""How far words that are looked at more, and less, move what stands behind them.

A line's `influence` holds of each pair of words [a_max of the one with more, a_max of the other,
how far the same tokens behind both moved without the one, without the other, in nats a token, 1
where the one with more stands first] (`methods.dragin.draft_checks`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .metric import Line, Metric, described

HIGH, LOW, MOVED_HIGH, MOVED_LOW, FIRST = range(5)
"""Places in a pair's entry."""


def mean_of(place: int, line: Line) -> float | None:
    """Mean of the pairs; None without one."""
    pairs = line.get("influence")
    return sum(pair[place] for pair in pairs) / len(pairs) if pairs else None


def further(line: Line) -> float | None:
    """How often the word with the higher a_max moves more, of either order alike, ties by half."""
    return _balanced(
        line, lambda p: (p[MOVED_HIGH] > p[MOVED_LOW]) + (p[MOVED_HIGH] == p[MOVED_LOW]) / 2
    )


def more(line: Line) -> float | None:
    """How much further the word with the higher a_max moves, of either order alike."""
    return _balanced(line, lambda p: p[MOVED_HIGH] - p[MOVED_LOW])


def _balanced(line: Line, of_pair: Callable[[Sequence[float]], float]) -> float | None:
    """Mean of the pairs' two orders, each the mean of its own; None where one has no pair.

    A word moves most what is near it, and the nearer one of a pair has the higher a_max more
    often: were all pairs counted alike, being near would pass for being looked at.
    """
    orders: dict[int, list[float]] = {0: [], 1: []}
    for pair in line.get("influence") or ():
        orders[pair[FIRST]].append(of_pair(pair))
    if not all(orders.values()):
        return None
    return sum(sum(told) / len(told) for told in orders.values()) / len(orders)


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
    described("moved_more", more),
    described("moved_further", further),
    described("high_a_max", partial(mean_of, HIGH)),
    described("low_a_max", partial(mean_of, LOW)),
    described("high_first", partial(mean_of, FIRST)),
)
