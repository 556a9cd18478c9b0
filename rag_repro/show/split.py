"""An exhibit's rows as pages: a table where there are numbers, else how to make them."""

from __future__ import annotations

from collections.abc import Sequence

from rag_repro.show import missing
from rag_repro.show.desk import Desk
from rag_repro.show.exhibit_rows import Row, lines_of
from rag_repro.show.picture import Note
from rag_repro.show.table import Table


def held(desk: Desk, key: str, rows: Sequence[Row], name: str) -> list[Table | Note]:
    """A table of the lines that have a number, and one note on how to run the others."""
    lines = lines_of(list(rows)).values()
    told = [row for line in lines if any(map(has_number, line)) for row in line]
    rest = [row for line in lines if not any(map(has_number, line)) for row in line]
    pages: list[Table | Note] = [desk.table(key, told, name)] if told else []
    return [*pages, _how(desk, key, rest)] if rest or not told else pages


def whole(desk: Desk, key: str, rows: Sequence[Row], name: str) -> Table | Note:
    """One table of all, what is not run among them; without any number how to run it."""
    if any(map(has_number, rows)):
        return desk.table(key, rows, name)
    return _how(desk, key, rows)


def _how(desk: Desk, key: str, rows: Sequence[Row]) -> Note:
    return missing.note_of_rows(rows, "time" if desk.paper.exhibit(key).timed else "run")


def has_number(row: Row) -> bool:
    return row.ours is not None or row.paper is not None
