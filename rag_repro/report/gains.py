"""Whose difference to its baseline is clear, in words, so that a page need not be read by eye."""

from __future__ import annotations

from collections.abc import Sequence

from ..evaluation import metrics
from ..study.papers import Exhibit
from .exhibits import Row
from .picture import Note
from .tables import word
from .values import within


def told(exhibit: Exhibit, rows: Sequence[Row], metric: str) -> Note:
    """A sentence a data set and baseline: whose paired intervals lie above zero, below, on it.

    Several rows are compared and intervals are not widened for that, as in the table itself.
    """
    beside: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.metric == metric and row.diff is not None:
            beside.setdefault((row.keys["dataset"], row.baseline), []).append(row)
    said = [_sentence(exhibit, group, metric) for group in beside.values()]
    return Note(" ".join(said) or "No row with a baseline has been run yet.")


def _sentence(exhibit: Exhibit, rows: Sequence[Row], metric: str) -> str:
    label = exhibit.methods[rows[0].baseline].label
    sides = {
        "higher with": [row for row in rows if row.diff.lo > 0],
        "lower with": [row for row in rows if row.diff.hi < 0],
    }
    clear = [f"{side} {_listed(exhibit, group)}" for side, group in sides.items() if group]
    open_ones = len(rows) - sum(map(len, sides.values()))
    parts = clear or ["neither clearly higher nor lower with any method"]
    if clear and open_ones:
        parts.append(f"open for the other {open_ones}" if open_ones > 1 else "open for one more")
    return (
        f"{word(rows[0].keys['dataset'])}, {metrics.get(metric).symbol} beside {label}: "
        f"{'; '.join(parts)}."
    )


def _listed(exhibit: Exhibit, rows: Sequence[Row]) -> str:
    return ", ".join(
        f"{exhibit.methods[row.keys['method']].label} ({within(row.diff, 1, '+', n=True)})"
        for row in rows
    )
