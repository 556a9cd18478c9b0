"""A table as a page, a terminal and a Markdown file show it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_repro.evaluation.verdicts import NOT_RUN
from rag_repro.show.escape import as_cell, as_html, escaped, html
from rag_repro.show.missing import Missing
from rag_repro.show.picture import Download
from rag_repro.words import printable

PROSE = 26  # characters from which a cell is text that wraps
FEW = 6  # rows of what is not run that a line names unfolded


def github(head: Sequence[str], body: Sequence[Sequence[Any]]) -> str:
    """A table as GitHub reads it, and a terminal shows it."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(map(as_cell, cells)) + " |" for cells in lines)


@dataclass(frozen=True)
class Under:
    """A cell with something smaller below it, which on a page needs no column of its own."""

    text: str
    under: str

    def __str__(self) -> str:
        return f"{self.text} ({self.under})"

    def __html__(self) -> str:
        return f"{as_html(self.text)} <small>{as_html(self.under)}</small>"


@dataclass(repr=False, eq=False)
class Table:
    """A table that a notebook shows: HTML in the book, Markdown as plain text.

    Every cell is escaped: texts of data sets and models stay text. One with a
    caption has a number in the book; name: by which `{numref}` finds it. data:
    its rows as a file. meanings: of its columns, a sentence each. more: further rows, which a
    page folds away below these, under its caption. stacked: its cells are sentences, which
    stand below one another on a phone. On a page, rows of what is not run are named in a line
    below.
    """

    head: Sequence[str]
    body: Sequence[Sequence[Any]]
    caption: str = ""
    name: str = ""
    data: Download | None = None
    meanings: Mapping[str, str] = field(default_factory=dict)
    more: Table | None = None
    stacked: bool = False

    def __post_init__(self):
        self.head, self.body = list(self.head), [list(cells) for cells in self.body]

    def __repr__(self) -> str:
        told = github(self.head, self.body)
        return f"{told}\n\n{self.more.caption}\n\n{self.more!r}" if self.more else told

    def __str__(self) -> str:
        return printable(repr(self))

    def _repr_html_(self) -> str:
        if not self.body:
            return "<p>No condition of this kind is shown here.</p>"
        told = [cells for cells in self.body if _untold(cells) is None]
        numeric = [is_numeric(column) for column in zip(*told, strict=True)]

        def kinds(column: int, cell: Any) -> str:
            if column < len(numeric) and numeric[column]:
                return "number"
            text = max(cell.text, cell.under, key=len) if isinstance(cell, Under) else str(cell)
            return "prose" if len(text) > PROSE and not _NUMBER.fullmatch(text) else ""

        more = self.more and Table(self.more.head, self.more.body, stacked=self.more.stacked)
        shown = {"kinds": kinds, "split": _split, "rest": self._rest(), "few": FEW, "more": more}
        return html("table", table=self, told=told, **shown)

    def _rest(self) -> dict[str, dict[str, list[str]]]:
        """What is not run: reason (HTML) -> row -> its places."""
        rest: dict[str, dict[str, list[str]]] = {}
        for cells in self.body:
            if (place := _untold(cells)) is not None:
                *where, what = [str(cell) for cell in cells[:place] if str(cell)]
                why = escaped(cells[place])
                held = rest.setdefault(why[:1].upper() + why[1:], {}).setdefault(what, [])
                held += [", ".join(where)] if where else []
        return rest


def _split(value: Any) -> Any:
    """An interval stands below its number, so that columns stay narrow."""
    found = _INTERVAL.fullmatch(value) if isinstance(value, str) else None
    return Under(found[1], found[2]) if found else value


def _untold(cells: Sequence[Any]) -> int | None:
    """Where a row that has no number says so; None: it tells something.

    Such a row is a label or several, then what is missing, and then nothing else.
    """
    for i, cell in enumerate(cells[1:], start=1):
        if _INTERVAL.fullmatch(str(cells[i - 1])):
            return None
        rest = cells[i + 1 :]
        if isinstance(cell, Missing):
            return i if rest and not any(map(str, rest)) else None
        if str(cell).startswith(NOT_RUN):
            return i if all(not str(o) or str(o).startswith(NOT_RUN) for o in rest) else None
    return None


_NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+( \[.*\])?(, n [\d,]+)?")
_INTERVAL = re.compile(r"([-+]?[\d,]*\.?\d+) (\[.*\](?:, n [\d,]+)?)")


def is_numeric(column: Sequence[Any]) -> bool:
    """Whether a column's cells are numbers, some of them with an interval and n, or not run."""
    cells = [s for s in map(str, column) if s and s != "–" and not s.startswith(NOT_RUN)]
    return bool(cells) and all(_NUMBER.fullmatch(cell) for cell in cells)
