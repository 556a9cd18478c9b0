"""What the parts of a record's line must be, as tests of plain JSON that are made of each other."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from ..plain import UNSEEN

Shape = Callable[[Any], bool]
LARGEST = 1e300
"""Beyond any number of ours; Python holds such as no float can."""
MOST = 10**15  # of a whole number, likewise


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_name(value: Any) -> bool:
    """A text that stands in one line of a terminal or table: an id, a kind, a cluster."""
    return isinstance(value, str) and (value.isprintable() or not UNSEEN.search(value))


def is_flag(value: Any) -> bool:
    return type(value) is bool


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < LARGEST


def is_amount(value: Any) -> bool:
    """A number from 0."""
    return is_number(value) and value >= 0


def is_share(value: Any) -> bool:
    """A number from 0 to 1."""
    return is_amount(value) and value <= 1


def whole(least: int = 0, most: int = MOST) -> Shape:
    """A whole number between these."""
    return lambda value: type(value) is int and least <= value <= most


is_count = whole()
is_mark = whole(0, 1)


def among(known: Container[Any]) -> Shape:
    return lambda value: value in known


def maybe(shape: Shape) -> Shape:
    """That, or nothing."""
    return lambda value: value is None or shape(value)


def row(*shapes: Shape) -> Shape:
    """A list of just these, in this order."""

    def holds(value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) == len(shapes)
            and all(shape(one) for shape, one in zip(shapes, value, strict=True))
        )

    return holds


def every(shape: Shape, n: int | None = None) -> Shape:
    """A list of these alone; n: of so many."""
    return lambda value: (
        isinstance(value, list) and n in (None, len(value)) and all(map(shape, value))
    )
