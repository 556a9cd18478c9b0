"""Which questions a contrast is about: of some kinds, or where another metric moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..evaluation import metrics
from .papers import Cell, Contrast
from .scores import Keep, Results


def keep(contrast: Contrast, more: Cell, less: Cell | None, results: Results) -> Keep:
    """A filter of the two cells' lines, by `kinds` and `among`."""
    kept = _moved(contrast.among, more, less, results) if contrast.among and less else None

    def holds(line: Mapping[str, Any]) -> bool:
        of_kind = not contrast.kinds or line["kind"] in contrast.kinds
        return of_kind and (kept is None or line["id"] in kept)

    return holds


def words(contrast: Contrast) -> str:
    """What the questions must be, as "of the kinds comparison, with recall higher"."""
    parts = [f"of the kinds {', '.join(contrast.kinds)}"] if contrast.kinds else []
    changes = [f"{metric} {change}" for metric, change in contrast.among.items()]
    return ", ".join(parts + ([f"with {' and '.join(changes)}"] if changes else []))


def _moved(wanted: Mapping[str, str], more: Cell, less: Cell, results: Results) -> set[str]:
    """Ids of the questions whose metrics stand to each other as wanted."""
    lines, others = ({x["id"]: x for x in results.lines(cell) or ()} for cell in (more, less))
    return {
        name
        for name in lines.keys() & others.keys()
        if all(
            _holds(
                change,
                metrics.of_line(metric, lines[name]),
                metrics.of_line(metric, others[name]),
            )
            for metric, change in wanted.items()
        )
    }


def _holds(change: str, ours: float | None, theirs: float | None) -> bool:
    if ours is None or theirs is None:
        return False
    if change == "found":
        return ours > 0 and theirs > 0
    return change == ("higher" if ours > theirs else "lower" if ours < theirs else "same")
