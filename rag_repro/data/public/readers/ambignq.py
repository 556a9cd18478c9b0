"""AmbigNQ (Min et al. 2020): ambiguous questions and their readings, no passages.

Official `train_light.json`, `dev_light.json`: an array of
{id, question, annotations: [{type: "singleAnswer", answer: [...]} or
{type: "multipleQAs", qaPairs: [{question, answer: [...]}]}]}.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_repro.data.public.opened_files import records
from rag_repro.data.public.record import Record, Row, unique
from rag_repro.schema import Interpretation


def read(path: Path) -> Iterator[Record]:
    """Questions with the union of all annotated answers; every reading once."""
    for place, fields in records(path):
        row = Row(path, place, fields)
        notes = row.take("annotations", list)
        yield Record(
            id=row.take("id", str),
            question=row.take("question", str),
            answers=unique(a for note in _pairs(row) for a in note.strings("answer")),
            place=place,
            kind="multipleQAs" if _multiple(notes) else "singleAnswer",
            interpretations=interpretations(row),
            meta={"annotations": notes},
        )


def interpretations(row: Row) -> tuple[Interpretation, ...]:
    """The readings of all annotators, the answers of equal readings united."""
    readings: dict[str, tuple[str, ...]] = {}
    for pair in _pairs(row):
        if (asked := pair.take("question", str, None)) is not None:
            readings[asked] = unique((*readings.get(asked, ()), *pair.strings("answer")))
    return tuple(Interpretation(q, a) for q, a in readings.items())


def _pairs(row: Row) -> Iterator[Row]:
    """Every object that holds answers: single answers, and question-answer pairs."""
    for i, note in enumerate(row.take("annotations", list, [])):
        inner = row.inner(note, f"annotation {i}")
        kind = inner.take("type", str)
        if kind == "singleAnswer":
            yield inner
        elif kind == "multipleQAs":
            for j, pair in enumerate(inner.take("qaPairs", list)):
                yield inner.inner(pair, f"pair {j}")
        else:
            raise inner.bad(f"type {kind!r} is neither singleAnswer nor multipleQAs")


def _multiple(notes: list) -> bool:
    return any(n.get("type") == "multipleQAs" for n in notes)
