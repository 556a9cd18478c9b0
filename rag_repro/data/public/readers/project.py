"""The project's own layout: JSON Lines with `docs`, or questions over a corpus file.

A line has id, question, answers, type, hops, meta and either
docs = [{title, text, gold}] or gold_titles; a corpus line id, title, text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_repro.data.public.data_errors import DataError
from rag_repro.data.public.opened_files import lines
from rag_repro.data.public.readers.ambignq import interpretations
from rag_repro.data.public.record import Doc, Record, Row
from rag_repro.data.public.step_chains import evidence_steps, musique_steps


def read(path: Path) -> Iterator[Record]:
    """Records of a `<name>.jsonl.gz`."""
    for place, fields in lines(path):
        row = Row(path, place, fields)
        meta = row.take("meta", dict, {})
        inner = Row(path, f"{place}, meta", meta)
        docs = tuple(
            _doc(row.inner(d, f"passage {i}")) for i, d in enumerate(row.take("docs", list, []))
        )
        named = row.strings("gold_titles", []) or inner.strings("gold_titles", [])
        steps = musique_steps(inner, len(docs))
        yield Record(
            id=row.take("id", str),
            question=row.take("question", str),
            answers=row.strings("answers"),
            place=place,
            kind=row.take("type", str, None),
            hops=row.take("hops", int, None),
            docs=docs,
            gold_titles=named,
            steps=steps or evidence_steps(inner, [*named, *(d.title for d in docs if d.gold)]),
            interpretations=interpretations(inner),
            meta=meta,
        )


def read_corpus(path: Path) -> tuple[Doc, ...]:
    """Passages of a `<name>.corpus.jsonl.gz`, with the file's own ids."""
    docs, seen = [], {}
    for place, fields in lines(path):
        row = Row(path, place, fields)
        doc = _doc(row)
        ident = row.take("id", str)
        if ident in seen:
            raise DataError(
                path, place, f"id {ident!r} was {seen[ident]} already", "give each passage one id"
            )
        seen[ident] = place
        docs.append(Doc(doc.title, doc.text, id=ident))
    return tuple(docs)


def _doc(row: Row) -> Doc:
    return Doc(row.take("title", str), row.take("text", str), gold=row.take("gold", bool, False))
