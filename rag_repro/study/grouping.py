"""What splits answers into groups: a field of their lines, or the gold passages of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Line = Mapping[str, Any]

SHARES = ("all", "some", "none")


def gold_found(line: Line) -> str | None:
    """Of the gold passages that a question needs, how many it was given: all, some or none.

    None where that is not known: its data set names neither gold passages nor steps.
    """
    return _share(line, sum(rank is not None for _, _, rank in line.get("gold", ())))


def gold_there(line: Line) -> str | None:
    """As `gold_found`, of those that the corpus has at all (of full wiki it lacks some).

    The same question is in the same group whatever it was given, if only nothing.
    """
    return _share(line, len(line.get("gold", ())))


def _share(line: Line, count: int) -> str | None:
    needed = max(len(line.get("gold", ())), line.get("hops") or 0)
    if not needed:
        return None
    return SHARES[0 if count == needed else 1 if count else 2]


def group_of(line: Line, by: str) -> str | None:
    """The group of one answer's line; None: of none."""
    return gold_there(line) if by == "gold_there" else str(line[by])


def groups(lines: Sequence[Line], by: str) -> list[str]:
    """The groups that lines fall into, in the order of their rows."""
    found = {group_of(line, by) for line in lines} - {None}
    return sorted(found, key=SHARES.index if by == "gold_there" else None)
