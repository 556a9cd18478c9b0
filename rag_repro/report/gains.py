"""Whose difference to its baseline is clear, in words, so that a page need not be read by eye."""

from __future__ import annotations

from collections.abc import Sequence

from ..data.titles import word
from ..evaluation import metrics
from ..evaluation.power import mde_of
from ..evaluation.statistics import Interval, holm_intervals
from ..study.papers import Exhibit
from .exhibits import Row
from .picture import Note
from .values import number, within

Told = list[tuple[Row, Interval]]


def told(exhibit: Exhibit, rows: Sequence[Row], metric: str) -> Note:
    """A sentence a data set and baseline: whose paired intervals lie above zero, below, on it.

    Rows beside one baseline are corrected together for their number (Holm), so that their intervals
    are wider here than in the table, where each stands alone.
    """
    beside: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.metric == metric and row.drawn is not None:
            beside.setdefault((row.keys["dataset"], row.baseline), []).append(row)
    said = [_sentence(exhibit, _widened(group), metric) for group in beside.values()]
    if len(said) > 1:
        return Note("\n".join(f"- {one}" for one in said))
    return Note(" ".join(said) or "No row with a baseline has been run yet.")


def _widened(rows: Sequence[Row]) -> Told:
    intervals = holm_intervals({str(i): row.drawn for i, row in enumerate(rows)})
    return list(zip(rows, intervals.values(), strict=True))


def _sentence(exhibit: Exhibit, rows: Told, metric: str) -> str:
    first, _ = rows[0]
    sides = {
        "higher": [pair for pair in rows if pair[1].lo > 0],
        "lower": [pair for pair in rows if pair[1].hi < 0],
    }
    parts = [f"{side}: {_listed(exhibit, group)}" for side, group in sides.items() if group]
    clear = [pair for group in sides.values() for pair in group]
    if still := [pair for pair in rows if pair not in clear]:
        # What so many questions would have shown, four times in five.
        least = [mde_of(interval) for _, interval in still]
        seen = dict.fromkeys(number(value, 1) for value in (min(least), max(least)))
        named = ", ".join(exhibit.methods[row.keys["method"]].label for row, _ in still)
        parts.append(f"open: {named} (detectable {' to '.join(seen)})")
    return (
        f"{word(first.keys['dataset'])}, {metrics.get(metric).symbol} beside "
        f"{exhibit.methods[first.baseline].label}, {'; '.join(parts)}."
    )


def _listed(exhibit: Exhibit, rows: Told) -> str:
    told = ((row, within(interval, 1, "+", n=True)) for row, interval in rows)
    return ", ".join(f"{exhibit.methods[row.keys['method']].label} ({said})" for row, said in told)
