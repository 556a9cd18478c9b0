"""Which questions a contrast is about: of some kinds, or where another metric moved."""

from __future__ import annotations

from collections.abc import Mapping

from .papers import Cell, Contrast
from .scores import Keep, Only, Results, everything


def keep(contrast: Contrast, more: Cell, less: Cell | None, results: Results) -> Keep:
    """A filter of the two cells' questions, by `kinds` and `among`."""
    moved = _moved(contrast.among, more, less, results) if contrast.among and less else None
    if not contrast.kinds and moved is None:
        return everything
    return Only(frozenset(contrast.kinds) or None, moved)


def words(contrast: Contrast) -> str:
    """What the questions must be, as "of the kinds comparison, with recall higher"."""
    parts = [f"of the kinds {', '.join(contrast.kinds)}"] if contrast.kinds else []
    changes = [f"{metric} {change}" for metric, change in contrast.among.items()]
    return ", ".join(parts + ([f"with {' and '.join(changes)}"] if changes else []))


def _moved(wanted: Mapping[str, str], more: Cell, less: Cell, results: Results) -> frozenset[str]:
    """Ids of the questions whose metrics stand to each other as wanted."""
    held = []
    for metric, change in wanted.items():
        ours, theirs = (results.values(cell, metric) for cell in (more, less))
        common = ours.keys() & theirs.keys()
        held.append({name for name in common if _holds(change, ours[name], theirs[name])})
    return frozenset.intersection(*map(frozenset, held))


def _holds(change: str, ours: float, theirs: float) -> bool:
    if change == "found":
        return ours > 0 and theirs > 0
    return change == ("higher" if ours > theirs else "lower" if ours < theirs else "same")
