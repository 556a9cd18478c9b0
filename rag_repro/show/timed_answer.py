"""One timed answer, call by call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_repro.show import missing
from rag_repro.show.picture import Note
from rag_repro.show.table import Table
from rag_repro.study.exhibits import Cell
from rag_repro.study.scores import Results

_KINDS = {
    "reader": "the reader writes",
    "retriever": "search",
    "retriever.encoder": "of it, queries encoded",
    "encoder": "texts encoded",
    "scorer": "the classifier judges",
    "reservoir": "the reservoir",
}


def worked(cell: Cell, results: Results) -> Mapping[str, Any] | None:
    """The first timed answer in which a classifier was asked, else the first; None without any."""
    lines = results.lines(cell) or ()
    judged = (line for line in lines if line["cost"].get("scored"))
    return next(judged, lines[0] if lines else None)


def clock_table(line: Mapping[str, Any] | None, cell: Cell | None) -> Table | Note:
    """One timed answer, call by call, in order; of several turns the first.

    cell: None where the method is not shown at all.
    """
    if line is None:
        if cell is None:
            return Note("This method is not among the rows shown.")
        return missing.note_of_cells([cell])
    turn = line["turns"][0]
    body = [
        [_KINDS[kind], items, f"{1000 * seconds:,.1f}", f"{100 * seconds / turn['seconds']:.1f} %"]
        for kind, seconds, items in turn["clock"]
    ]
    body.append(["all in all", "", f"{1000 * turn['seconds']:,.1f}", "100.0 %"])
    caption = f"The clock of one answer, question {line['id']}"
    return Table(["call", "items", "milliseconds", "of the whole"], body, caption)
