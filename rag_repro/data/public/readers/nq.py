"""Natural Questions as in Lost in the Middle (Liu et al. 2024): JSON Lines, gzipped.

{question, answers, ctxs: [{title, text, isgold, hasanswer, ...}],
nq_annotated_gold}, with 1 (oracle), 10, 20 or 30 passages. There are no ids:
`nq-oracle-0002` is the third line, and the same question in each of the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_repro.data.public.opened_files import lines
from rag_repro.data.public.record import Doc, Record


def read(path: Path) -> Iterator[Record]:
    """Passages stay in the order of the file, which places the gold one."""
    for number, row in enumerate(lines(path)):
        docs = tuple(
            Doc(part.text("title"), part.text("text"), part.take("isgold", bool))
            for part in row.objects("ctxs", "passage")
        )
        yield Record(
            id=f"nq-oracle-{number:04d}",
            question=row.take("question", str),
            answers=row.strings("answers"),
            place=row.place,
            hops=1,
            docs=docs,
            meta={
                "gold_position": next((i for i, d in enumerate(docs) if d.gold), None),
                "nq_annotated_gold": row.take("nq_annotated_gold", dict, {}),
            },
        )
