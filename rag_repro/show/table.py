"""A table as a page, a terminal and a Markdown file show it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_repro.evaluation.verdicts import NOT_RUN
from rag_repro.show.escape import NO_FORMULAS, as_cell, as_html
from rag_repro.show.missing import Missing
from rag_repro.show.picture import Download, id_of
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

    def html(self) -> str:
        return f"{as_html(self.text)} <small>{as_html(self.under)}</small>"


class Table:
    """A table that a notebook shows: HTML in the book, Markdown as plain text.

    Every cell is escaped: texts of data sets and models stay text. One with a
    caption has a number in the book; name: by which `{numref}` finds it. data:
    its rows as a file. meanings: of its columns, a sentence each. more: further rows, which a
    page folds away below these, under its caption. stacked: its cells are sentences, which
    stand below one another on a phone. On a page, rows of what is not run are named in a line
    below.
    """

    def __init__(
        self,
        head: Sequence[str],
        body: Sequence[Sequence[Any]],
        caption: str = "",
        name: str = "",
        data: Download | None = None,
        meanings: Mapping[str, str] | None = None,
        more: Table | None = None,
        stacked: bool = False,
    ):
        self.head, self.body, self.caption = list(head), [list(r) for r in body], caption
        self.name, self.data, self.meanings = name, data, meanings or {}
        self.more, self.stacked = more, stacked

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

        def kind(column: int, text: str) -> str:
            if column < len(numeric) and numeric[column]:
                return ' class="number"'
            wraps = len(text) > PROSE and not _NUMBER.fullmatch(text)
            return ' class="prose"' if wraps else ""

        def longest(cell: Any) -> str:
            return max(cell.text, cell.under, key=len) if isinstance(cell, Under) else str(cell)

        def headed(tag: str, column: int) -> str:
            return f' data-head="{as_html(self.head[column])}"' if self._stacks(tag) else ""

        def row(tag: str, cells: Sequence[Any]) -> str:
            made = "".join(
                f"<{tag}{kind(i, longest(v))}{headed(tag, i)}>{_cell(v)}</{tag.split()[0]}>"
                for i, v in enumerate(cells)
            )
            return f"<tr>{made}</tr>"

        head = row('th scope="col"', self.head)
        body = "".join(row("td", cells) for cells in told)
        table = (
            f'<thead class="{NO_FORMULAS}">{head}</thead>'
            f'<tbody class="{NO_FORMULAS}">{body}</tbody>'
        )
        table = table if told else ""
        caption = f"<caption>{as_html(self.caption)}</caption>" if self.caption else ""
        kinds = "rr-table rr-stacked" if self.stacked else "rr-table"
        return (
            f'<div class="{kinds}"{id_of(self.name)}><table>{caption}'
            f"{table}</table></div>{self._rest()}{_folded(self.more)}"
        ) + "".join([self.data._repr_html_() if self.data else "", self._columns()])

    def _stacks(self, tag: str) -> bool:
        return self.stacked and tag == "td"

    def _columns(self) -> str:
        """What the columns mean, folded away: most readers ask it once."""
        told = "; ".join(f"<i>{as_html(k)}</i>: {as_html(v)}" for k, v in self.meanings.items())
        folded = f'<details class="rr-columns {NO_FORMULAS}"><summary>Columns</summary>'
        return f"{folded}{told}.</details>" if told else ""

    def _rest(self) -> str:
        """Rows of what is not run, by the reason: a wall of them would hide the others."""
        rest: dict[str, dict[str, list[str]]] = {}  # reason -> row -> its places
        for cells in self.body:
            if (place := _untold(cells)) is not None:
                *where, what = [as_html(cell) for cell in cells[:place] if str(cell)]
                held = rest.setdefault(_cell(cells[place]), {}).setdefault(what, [])
                held += [", ".join(where)] if where else []
        return "".join(_line(why, rows) for why, rows in rest.items())


def _line(why: str, rows: Mapping[str, Sequence[str]]) -> str:
    """What is not run for one reason, below a table; folded where it is much."""
    named = [f"{row} ({'; '.join(where)})" if where else row for row, where in rows.items()]
    why = why[:1].upper() + why[1:]
    of = f"{why}: {'; '.join(named)}."
    if sum(max(1, len(where)) for where in rows.values()) > FEW:
        of = f"<details><summary>{why}: {len(named)} rows</summary>{'; '.join(named)}.</details>"
    return f'<div class="rr-rest {NO_FORMULAS}">{of}</div>'


def _folded(more: Table | None) -> str:
    """Further rows, which open where somebody asks for them."""
    if more is None:
        return ""
    inside = Table(more.head, more.body, name=more.name, stacked=more.stacked)._repr_html_()
    said = f"{as_html(more.caption)}: {len(more.body)} {'row' if len(more.body) == 1 else 'rows'}"
    return f'<details class="rr-more {NO_FORMULAS}"><summary>{said}</summary>{inside}</details>'


def _cell(value: Any) -> str:
    """A cell's HTML: an interval stands below its number, so that columns stay narrow."""
    if isinstance(value, Missing | Under):
        return value.html()
    if isinstance(value, str) and (found := _INTERVAL.fullmatch(value)):
        return f"{as_html(found[1])} <small>{as_html(found[2])}</small>"
    return as_html(value)


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
