"""Scores where a compressor left an answer that the passages held, and where not (r2ag.c14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data.titles import word
from ..evaluation import metrics
from ..study.papers import Cell, Exhibit
from ..study.scores import Results, resampled
from . import missing
from .picture import Note
from .table import Table
from .values import share_of, within


def kept(line: Mapping[str, Any]) -> bool:
    """Whether the passages held an answer, and what is left of them does."""
    return metrics.of_line("answer_kept", line) == 1


def lost(line: Mapping[str, Any]) -> bool:
    """Whether the passages held an answer, and what is left of them does not."""
    return metrics.of_line("answer_kept", line) == 0


def silent(line: Mapping[str, Any]) -> bool:
    """Whether the reader wrote nothing."""
    return not (line.get("prediction") or "").strip()


def table(
    exhibit: Exhibit,
    cells: Sequence[Cell],
    results: Results,
    metric: str,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a recorded cell of a compressor: the score by what it left, and empty answers.

    Questions whose passages held no answer are in the last column alone.
    """
    body = []
    for cell in cells:
        by = [results.scores(cell, metric, keep) for keep in (kept, lost)]
        if not any(by):
            continue
        lines = [line for line in results.lines(cell) if "error" not in line]
        told = (within(s and resampled(s, metric).interval(), 1, n=True) for s in by)
        label = exhibit.methods[cell.keys["method"]].label
        empty = share_of([silent(line) for line in lines], lines)
        where = [word(cell.keys["dataset"]), word(cell.keys.get("reader", ""))]
        body.append([*where, label, *told, empty])
    if not body:
        return missing.note(cells, results, caption)
    symbol = metrics.get(metric).symbol
    head = ["data set", "reader", "method", f"{symbol} where the answer is left [95 %], n"]
    return Table([*head, f"{symbol} where it is lost", "no answer at all, %"], body, caption, name)
