"""StrategyQA (Geva et al. 2021): questions, and the evidence paragraphs in a second file.

`strategyqa_train.json`: an array of {qid, term, description, question, answer
(true or false), facts, decomposition, evidence: annotators' lists of steps'
lists of [paragraph ids], "operation" or "no_evidence"}.
`strategyqa_train_paragraphs.json`: {id: {title, content, ...}}.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_repro.data.public.opened_files import document, records
from rag_repro.data.public.record import Doc, MissingFile, Record, Row, unique

_MARKS = frozenset({"operation", "no_evidence"})
_KEPT = ("term", "description", "facts", "decomposition", "evidence")


def read(path: Path) -> Iterator[Record]:
    """Answers are "yes" and "no"; gold the paragraphs that any annotator gave as evidence."""
    by_id = {doc.id: doc for doc in corpus(path)}
    for row in records(path):
        wanted = unique(_flat(row, row.take("evidence", list, [])))
        docs = tuple(by_id[i] for i in wanted if i in by_id)
        yield Record(
            id=row.take("qid", str),
            question=row.take("question", str),
            answers=("yes" if row.take("answer", bool) else "no",),
            place=row.place,
            kind="boolean",
            hops=len(row.take("decomposition", list, [])) or None,
            docs=tuple(Doc(d.title, d.text, gold=True, id=d.id) for d in docs),
            meta={k: row.fields[k] for k in _KEPT if k in row.fields}
            | {"missing_gold_ids": [i for i in wanted if i not in by_id]},
        )


def corpus(path: Path) -> tuple[Doc, ...]:
    """All paragraphs, under the ids of the data set ("Albany, Georgia-1"); empty ones left out."""
    (file,) = companion_files(path)
    docs = []
    for ident, fields in document(file, dict).items():
        row = Row(file, f"paragraph {ident!r}", {}).inner(fields, "value")
        if text := row.text("content"):
            docs.append(Doc(row.text("title"), text, id=ident))
    return tuple(docs)


def companion_files(path: Path) -> tuple[Path, ...]:
    """The paragraph file: `<questions>_paragraphs.json` in the same folder."""
    found = path.with_name(f"{path.stem}_paragraphs.json")
    if not found.is_file():
        raise MissingFile(found, "", "no paragraphs beside the questions", "put the file there")
    return (found,)


def _flat(row: Row, evidence: object) -> Iterator[str]:
    """The paragraph ids in lists of lists, in order; without recursion, whatever their depth."""
    waiting = [evidence]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += reversed(part)
        elif not isinstance(part, str):
            raise row.bad(f"field 'evidence' holds {str(part)[:60]!r}")
        elif part not in _MARKS:
            yield part
