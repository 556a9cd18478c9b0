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
    for row in records(path):
        notes = row.take("annotations", list)
        pairs = [*_pairs(row)]  # so that each note is an object
        multiple = any(note["type"] == "multipleQAs" for note in notes)
        yield Record(
            id=row.take("id", str),
            question=row.take("question", str),
            answers=unique(a for pair in pairs for a in pair.strings("answer")),
            place=row.place,
            kind="multipleQAs" if multiple else "singleAnswer",
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
    for inner in row.objects("annotations", "annotation", []):
        kind = inner.take("type", str)
        if kind == "singleAnswer":
            yield inner
        elif kind == "multipleQAs":
            yield from inner.objects("qaPairs", "pair")
        else:
            raise inner.bad(f"type {kind!r} is neither singleAnswer nor multipleQAs")
