"""The project's own layout: JSON Lines with `docs`, or questions over a corpus file.

A line has id, question, answers, type, hops, meta and either
docs = [{title, text, gold}] or gold_titles; a corpus line id, title, text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rag_repro.data.public.opened_files import lines
from rag_repro.data.public.readers.ambignq import interpretations
from rag_repro.data.public.record import Doc, Record, Row
from rag_repro.data.public.roles import evidence_steps, musique_steps


def read(path: Path) -> Iterator[Record]:
    """Records of a `<name>.jsonl.gz`."""
    for row in lines(path):
        meta = row.take("meta", dict, {})
        inner = row.inner(meta, "meta")
        docs = tuple(map(_doc, row.objects("docs", "passage", [])))
        named = row.strings("gold_titles", []) or inner.strings("gold_titles", [])
        steps = musique_steps(inner, len(docs))
        yield Record(
            id=row.take("id", str),
            question=row.take("question", str),
            answers=row.strings("answers"),
            place=row.place,
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
    for row in lines(path):
        row.note(ident := row.take("id", str), seen)
        docs.append(replace(_doc(row), id=ident, gold=False))
    return tuple(docs)


def _doc(row: Row) -> Doc:
    return Doc(row.take("title", str), row.take("text", str), gold=row.take("gold", bool, False))
