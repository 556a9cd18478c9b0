"""Whether two metrics put the rows of a data set in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

from ..data.titles import word
from .exhibits import Row, whole
from .missing import note_of_rows
from .picture import Note
from .table import Table
from .values import number

MOST = 7
"""Rows of which all orders are gone through."""


def spearman(x: Sequence[float], y: Sequence[float]) -> tuple[float, float] | None:
    """Spearman's rho, and in what share of all orders of y it is as far from zero or farther.

    None where it is not defined: fewer than three rows, or one value throughout. Raises ValueError
    for more rows than `MOST`.
    """
    from scipy.stats import spearmanr

    if len(x) > MOST:
        raise ValueError(f"{len(x)} rows have too many orders to go through; take {MOST} at most")
    if len(x) < 3 or len({*x}) == 1 or len({*y}) == 1:
        return None
    rho = float(spearmanr(x, y).statistic)
    orders = [abs(float(spearmanr(x, order).statistic)) for order in permutations(y)]
    return rho, sum(other >= abs(rho) - 1e-9 for other in orders) / len(orders)


def table(
    rows: Sequence[Row],
    x: str,
    y: str,
    groups: Callable[[Row], str],
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a data set, reader and group of three rows or more.

    groups: a row's group, "" for rows that are left out.
    """
    kept = [row for row in rows if groups(row)]
    held = whole(
        kept,
        (x, y),
        lambda row: (
            *(row.keys["dataset"], row.keys.get("reader", "")),
            *(groups(row), row.keys["method"]),
        ),
    )
    body = []
    for where in dict.fromkeys(place[:3] for place in held):
        pairs = [
            (found[x].ours.estimate, found[y].ours.estimate)
            for place, found in held.items()
            if place[:3] == where
        ]
        if told := spearman(*zip(*pairs, strict=True)):
            dataset, reader, group = where
            numbers = [number(value, 2) for value in told]
            body.append([word(dataset), word(reader), group, len(pairs), *numbers])
    if not body:
        return note_of_rows(rows)
    head = ["data set", "reader", "rows", "how many", "Spearman's ρ", "p, by all orders"]
    return Table(head, body, caption, name)
