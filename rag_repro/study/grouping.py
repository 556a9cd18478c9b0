"""By what an exhibit splits a condition's answers into rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

GOLD_FOUND = "gold_found"
"""`by: gold_found`: how much of what a question needs its passages held."""

ALL, SOME, NONE = FOUND = ("all", "some", "none")


def gold_found(line: Mapping[str, Any]) -> str | None:
    """Of the gold passages that a question needs, how many it was given: all, some or none.

    None where that is not known: its data set names neither gold passages nor steps. A step
    whose gold passage the corpus does not have (full wiki) is one that was not found.
    """
    gold = line.get("gold", ())
    needed = max(len(gold), line.get("hops") or 0)
    found = sum(rank is not None for _, _, rank in gold)
    if not needed:
        return None
    return ALL if found == needed else SOME if found else NONE


def group_of(line: Mapping[str, Any], by: str) -> str | None:
    """The group of one answer's line; None: of none."""
    if by == GOLD_FOUND:
        return gold_found(line)
    return str(line[by])


def groups(lines: Sequence[Mapping[str, Any]], by: str) -> list[str]:
    """The groups that lines fall into, in the order of their rows."""
    found = {group_of(line, by) for line in lines} - {None}
    return [g for g in FOUND if g in found] if by == GOLD_FOUND else sorted(found)
