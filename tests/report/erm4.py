"""ERM4's own cells with records made to order, for the tests of its chapters' pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rag_repro.study import papers, records
from rag_repro.study.papers import Cell, Exhibit
from rag_repro.study.scores import Results

Line = Mapping[str, Any]


def exhibit(key: str) -> Exhibit:
    return papers.load("erm4").exhibit(key)


def cells(key: str, *methods: str, **wanted: Any) -> list[Cell]:
    """Those of the exhibit with these rows (of all without) and keys."""
    return [
        cell
        for cell in exhibit(key).cells()
        if (not methods or cell.keys["method"] in methods) and cell.matches(wanted)
    ]


def fill(results: Results, asked: Sequence[Cell], n: int, line: Callable[[Cell, int], Line]):
    """n questions of each of the cells; line: what they hold beside what every one must."""
    for cell in asked:
        folder = results.folder
        if cell.timed:
            folder = records.times_beside(folder, cell.exhibit)
        with records.open_record(folder, cell.condition, {}) as record:
            for i in range(n):
                must = {"id": f"q{i}", "kind": "k", "cluster": f"q{i}", "hits": [], "scores": {}}
                record.append({**must, **line(cell, i)})
