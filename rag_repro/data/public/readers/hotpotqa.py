"""HotpotQA (Yang et al. 2018), distractor and fullwiki: one JSON array.

{_id, question, answer, type, level, supporting_facts: [[title, sentence]],
context: [[title, [sentence, ...]], ...]}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_repro.data.public.opened_files import records
from rag_repro.data.public.record import Doc, Record, Row, unique


def read(path: Path) -> Iterator[Record]:
    """Gold are the passages with a title in supporting_facts (fullwiki: where they are there)."""
    return map(record, records(path))


def record(row: Row) -> Record:
    """One question; 2WikiMultihopQA has the same fields and more."""
    facts = row.take("supporting_facts", list)
    if not all(isinstance(f, list) and len(f) == 2 and isinstance(f[0], str) for f in facts):
        raise row.bad("field 'supporting_facts' is not a list of [title, sentence number]")
    gold = unique(title for title, _ in facts)
    return Record(
        id=row.take("_id", str),
        question=row.take("question", str),
        answers=unique([row.take("answer", str)]),
        place=row.place,
        kind=row.take("type", str, None),
        hops=len(gold),
        docs=tuple(_doc(row, part, gold) for part in row.take("context", list)),
        gold_titles=gold,
        meta={"supporting_facts": facts, "level": row.take("level", str, None)},
    )


def _doc(row: Row, part: object, gold: tuple[str, ...]) -> Doc:
    match part:
        case [str(title), [*sentences]] if all(isinstance(s, str) for s in sentences):
            # HotpotQA's sentences begin with their blank, 2Wiki's do not.
            text = " ".join(s.strip() for s in sentences if s.strip())
            return Doc(title.strip(), text, gold=title.strip() in gold)
    raise row.bad(f"a passage is not [title, [sentence, ...]]: {str(part)[:60]!r}")
