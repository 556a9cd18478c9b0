"""MuSiQue (Trivedi et al. 2022): JSON Lines.

{id, question, answer, answer_aliases, answerable, paragraphs: [{idx, title,
paragraph_text, is_supporting}], question_decomposition: [{id, question,
answer, paragraph_support_idx}]}; the id begins with the type, "3hop1__...".
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from rag_repro.data.public.opened_files import lines
from rag_repro.data.public.record import Doc, Record, Row, unique
from rag_repro.data.public.roles import musique_steps

log = logging.getLogger(__name__)


def read(path: Path) -> Iterator[Record]:
    """The answerable questions; those of MuSiQue-Full that cannot be answered are left out."""
    unanswerable = 0
    for row in lines(path):
        if not row.take("answerable", bool, True):
            unanswerable += 1
            continue
        ident = row.take("id", str)
        kind = ident.partition("__")[0]
        if kind[:1] not in tuple("123456789"):
            raise row.bad(f"id {ident!r} does not begin with a number of hops, as '2hop__'")
        docs = tuple(_docs(row))
        yield Record(
            id=ident,
            question=row.take("question", str),
            answers=unique([row.take("answer", str), *row.strings("answer_aliases", [])]),
            place=row.place,
            kind=kind,
            hops=int(kind[0]),
            docs=docs,
            steps=musique_steps(row, len(docs)),
            meta={"question_decomposition": row.take("question_decomposition", list, [])},
        )
    if unanswerable:
        log.info("%s: %d unanswerable questions left out", path, unanswerable)


def _docs(row: Row) -> Iterator[Doc]:
    for i, p in enumerate(row.objects("paragraphs", "paragraph")):
        # paragraph_support_idx is an idx: only where idx is the position are they one.
        if (idx := p.take("idx", int, i)) != i:
            raise p.bad(f"idx is {idx}, not its position", "put the paragraphs in order of idx")
        yield Doc(p.text("title"), p.text("paragraph_text"), p.take("is_supporting", bool))
