"""PopQA (Mallen et al. 2023): `popQA.tsv`, questions without passages.

Columns id, subj, prop, obj, ..., s_wiki_title, o_wiki_title, s_pop, o_pop (page
views a month), question, possible_answers (a JSON list in a quoted cell).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from rag_repro.data.public.opened_files import AGAIN, read_text
from rag_repro.data.public.record import DataError, Record, Row
from rag_repro.plain import from_json

_NEEDED = ("id", "question", "possible_answers", "prop", "s_pop", "o_pop")
_KEPT = ("subj", "prop", "obj", "s_wiki_title", "o_wiki_title")


def read(path: Path) -> Iterator[Record]:
    """Questions with popularity of subject and object in meta, as whole numbers."""
    table = csv.DictReader(io.StringIO(read_text(path), newline=""), delimiter="\t")
    try:
        missing = [c for c in _NEEDED if c not in (table.fieldnames or ())]
        if missing:
            remedy = "check that it is PopQA's file"
            raise DataError(path, "line 1", f"no column {missing[0]!r}", remedy)
        for cells in table:
            yield _record(Row(path, f"line {table.line_num}", cells))
    except csv.Error as error:
        place = f"line {max(1, table.line_num)}"
        raise DataError(path, place, f"no table ({error})", AGAIN) from error


def _record(row: Row) -> Record:
    if None in row.fields:
        raise row.bad("more cells than columns")
    cells = {k: row.take(k, str) for k in ("possible_answers", "s_pop", "o_pop")}
    try:
        answers = from_json(cells["possible_answers"], whole=True)
        views = {k: int(float(cells[k])) for k in ("s_pop", "o_pop")}
    except (ValueError, OverflowError) as error:
        raise row.bad(f"possible_answers, s_pop or o_pop cannot be read ({error})") from error
    return Record(
        id=row.take("id", str),
        question=row.take("question", str),
        answers=Row(row.path, row.place, {"possible_answers": answers}).strings("possible_answers"),
        place=row.place,
        kind=row.take("prop", str),
        hops=1,
        meta={**{k: row.fields.get(k) for k in _KEPT}, **views},
    )
