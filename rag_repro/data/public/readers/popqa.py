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
    except csv.Error as error:
        raise DataError(path, "line 1", f"no table ({error})", AGAIN) from error
    if missing:
        remedy = "check that it is PopQA's file"
        raise DataError(path, "line 1", f"no column {missing[0]!r}", remedy)
    for row in _rows(path, table):
        cells = row.fields
        try:
            answers = from_json(row.take("possible_answers", str), whole=True)
            views = {k: int(float(row.take(k, str))) for k in ("s_pop", "o_pop")}
        except DataError:
            raise
        except (ValueError, OverflowError) as error:
            raise row.bad(f"possible_answers, s_pop or o_pop cannot be read ({error})") from error
        listed = Row(path, row.place, {"possible_answers": answers})
        yield Record(
            id=row.take("id", str),
            question=row.take("question", str),
            answers=listed.strings("possible_answers"),
            place=row.place,
            kind=row.take("prop", str),
            hops=1,
            meta={**{k: cells.get(k) for k in _KEPT}, **views},
        )


def _rows(path: Path, table: csv.DictReader) -> Iterator[Row]:
    try:
        for cells in table:
            row = Row(path, f"line {table.line_num}", cells)
            if None in cells:
                raise row.bad("more cells than columns")
            yield row
    except csv.Error as error:
        raise DataError(path, f"line {table.line_num}", f"no table ({error})", AGAIN) from error
