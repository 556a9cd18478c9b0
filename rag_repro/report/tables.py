"""Rows of an exhibit as text and as a page's table."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..data.titles import word
from ..evaluation import metrics
from ..evaluation.verdicts import NOT_RUN
from ..study.papers import Exhibit
from . import exhibits
from .escape import NO_FORMULAS, as_cell, as_html
from .exhibits import Row
from .missing import Missing
from .picture import Download, id_of
from .values import within

MANY = 4  # metrics that a caption does not list
PROSE = 26  # characters from which a cell is text that wraps
NAMES = {"dataset": "data set", "own_candidates": "own candidates"}


def text(rows: Sequence[Row], form: str) -> str:
    """The rows as "csv", "json" (a list of objects) or "md" (a reader's table)."""
    rows = list(rows)
    if form == "csv":
        return exhibits.to_csv(rows)
    if form == "json":
        return json.dumps([row.flat() for row in rows], ensure_ascii=False, indent=1) + "\n"
    return markdown(rows)


def markdown(rows: Sequence[Row]) -> str:
    """A GitHub table: each metric's difference to the baseline first, then ours, paper."""
    return github(*grid(rows)) + "\n"


def github(head: Sequence[str], body: Sequence[Sequence[Any]]) -> str:
    """A table as GitHub reads it, and a terminal shows it."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(map(as_cell, cells)) + " |" for cells in lines)


def grid(
    rows: Sequence[Row], labels: Mapping[str, str] | None = None
) -> tuple[list[str], list[list[str]]]:
    """Head and body of the reader's table, one line for each method at each setting.

    labels: the methods' names in words. What has one value in all rows gets no
    column; `common` says it.
    """
    rows = list(rows)
    shown = [name for name in _places(rows) if name not in common(rows)]
    names = list(dict.fromkeys(row.metric for row in rows))
    head = [*(NAMES.get(name, name) for name in shown), "method"]
    for name in names:
        symbol = metrics.get(name).symbol if name in metrics.METRICS else name
        head += [f"{symbol}: {of}" for of in ("gain over baseline", "ours [95 %], n", "paper")]
    body = []
    for line in exhibits.lines_of(rows).values():
        by = {row.metric: row for row in line}
        keys = line[0].flat()
        cells = [word(keys.get(name, "")) for name in shown]
        cells.append((labels or {}).get(keys["method"], keys["method"]))
        for name in names:
            row = by.get(name)
            cells += ["", "", ""] if row is None else [gain(row), ours(row), row.paper or ""]
        body.append(cells)
    return head, body


def _places(rows: Sequence[Row]) -> list[str]:
    """tier, dataset and what the exhibit varies: all that places a row but its method."""
    varied = dict.fromkeys(k for row in rows for k in row.keys if k not in ("dataset", "method"))
    return ["tier", "dataset", *varied]


def common(rows: Sequence[Row]) -> dict[str, str]:
    """What has the same value in every row that has it at all; a split, in every row.

    A row without a k does not search; one without a split is of the test questions.
    """
    flat = [row.flat() for row in rows]
    values = {
        name: {f.get(name, "") for f in flat if f.get(name) or name == "split"}
        for name in _places(rows)
    }
    return {name: word(*held) for name, held in values.items() if len(held) == 1}


def gain(row: Row) -> str:
    """Ours minus the baseline's, with its interval; empty where there is no baseline.

    Both sides are means of the questions that both answered: their number where it is another.
    """
    fewer = bool(row.diff and row.ours and row.diff.n != row.ours.n)
    return within(row.diff, _digits(row), sign="+", n=fewer)


def ours(row: Row) -> str:
    """Our value with interval and n, or why there is none."""
    return row.note if row.ours is None else within(row.ours, _digits(row), n=True)


def _digits(row: Row) -> int:
    """Decimals: another one where two show nothing, as of a share of a layer's attention."""
    return 3 if row.ours and 0 < abs(row.ours.estimate) < 0.1 else 2


class Table:
    """A table that a notebook shows: HTML in the book, Markdown as plain text.

    Every cell is escaped: texts of data sets and models stay text. One with a
    caption has a number in the book; name: by which `{numref}` finds it. data:
    its rows as a file. meanings: of its columns, a sentence each. On a page, rows of what is
    not run are named in a line below.
    """

    def __init__(
        self,
        head: Sequence[str],
        body: Sequence[Sequence[Any]],
        caption: str = "",
        name: str = "",
        data: Download | None = None,
        meanings: Mapping[str, str] | None = None,
    ):
        self.head, self.body, self.caption = list(head), [list(r) for r in body], caption
        self.name, self.data, self.meanings = name, data, meanings or {}

    def __repr__(self) -> str:
        return github(self.head, self.body)

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

        def cell(value: Any) -> str:
            return value.html() if isinstance(value, Missing) else as_html(value)

        def row(tag: str, cells: Sequence[Any]) -> str:
            made = "".join(
                f"<{tag}{kind(i, str(v))}>{cell(v)}</{tag.split()[0]}>" for i, v in enumerate(cells)
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
        return (
            f'<div class="rr-table"{id_of(self.name)}><table>{caption}'
            f"{table}</table></div>{self._rest()}"
        ) + "".join([self.data._repr_html_() if self.data else "", self._columns()])

    def _columns(self) -> str:
        """What the columns mean, folded away: most readers ask it once."""
        told = "; ".join(f"<i>{as_html(k)}</i>: {as_html(v)}" for k, v in self.meanings.items())
        folded = f'<details class="rr-columns {NO_FORMULAS}"><summary>Columns</summary>'
        return f"{folded}{told}.</details>" if told else ""

    def _rest(self) -> str:
        """Rows of what is not run, by the reason: a wall of them would hide the others."""
        rest: dict[str, list[str]] = {}
        for cells in self.body:
            if (place := _untold(cells)) is not None:
                why = cells[place]
                told = why.html() if isinstance(why, Missing) else as_html(why)
                rest.setdefault(told, []).append(", ".join(map(as_html, cells[:place])))
        lines = (f"{why[:1].upper()}{why[1:]}: {'; '.join(rows)}." for why, rows in rest.items())
        return "".join(f'<p class="rr-rest {NO_FORMULAS}">{line}</p>' for line in lines)


def _untold(cells: Sequence[Any]) -> int | None:
    """Where a row that has no number says so; None: it tells something.

    Such a row is a label or several, then what is missing, and then nothing else.
    """
    for i, cell in enumerate(cells[1:], start=1):
        rest = cells[i + 1 :]
        if isinstance(cell, Missing):
            return i if rest and not any(map(str, rest)) else None
        if str(cell).startswith(NOT_RUN):
            return i if all(str(one) in ("", str(cell)) for one in rest) else None
    return None


_NUMBER = re.compile(r"[-+]?[\d,]*\.?\d+( \[.*\])?(, n [\d,]+)?")


def is_numeric(column: Sequence[Any]) -> bool:
    """Whether a column's cells are numbers, some of them with an interval and n."""
    cells = [str(value) for value in column if str(value)]
    return bool(cells) and all(_NUMBER.fullmatch(cell) for cell in cells)


def exhibit_table(exhibit: Exhibit, rows: Sequence[Row], name: str = "") -> Table:
    """The reader's table of an exhibit for a page; a column that says nothing is left out."""
    head, body = grid(rows, {name: row.label for name, row in exhibit.methods.items()})
    kept = [i for i in range(len(head)) if any(cells[i] for cells in body)] if body else []
    head, body = [head[i] for i in kept], [[cells[i] for i in kept] for cells in body]
    parts = [_title(exhibit, rows), *shared(rows)]
    bases = dict.fromkeys(row.baseline for row in rows if row.diff)
    if len(bases) > 1:
        place = head.index("method") + 1
        head.insert(place, "baseline")
        for cells, line in zip(body, exhibits.lines_of(rows).values(), strict=True):
            base = next((row.baseline for row in line if row.diff), None)
            cells.insert(place, exhibit.methods[base].label if base else "")
    elif bases:
        parts.append(f"gains over {exhibit.methods[next(iter(bases))].label}")
    meanings = {one.symbol: one.meaning for one in _metrics(rows)}
    return Table(head, body, "; ".join(parts), name, data_of(rows), meanings)


def _title(exhibit: Exhibit, rows: Sequence[Row]) -> str:
    """With the metrics, where it is a part of them: an exhibit may have several tables."""
    held = _metrics(rows)
    told = f"{exhibit.title} ({exhibit.place})"
    if len(held) >= min(len(exhibit.metrics), MANY):
        return told
    return f"{told}: {', '.join(one.symbol for one in held)}"


def _metrics(rows: Sequence[Row]) -> list[metrics.Metric]:
    """Those of the rows, in their order; a paper may print what is no metric of ours."""
    names = dict.fromkeys(row.metric for row in rows)
    return [metrics.get(name) for name in names if name in metrics.METRICS]


def shared(rows: Sequence[Row]) -> list[str]:
    """What all rows have in common, in words for a caption: "MuSiQue", "pooled corpus", "k = 3"."""
    said = []
    for key, value in common(rows).items():
        if key == "own_candidates":
            said.append("own candidates" if value == "true" else "pooled corpus")
        elif key in ("tier", "dataset"):
            said.append(value)
        else:
            said.append(f"{key} = {value}")
    return said


def data_of(rows: Sequence[Row]) -> Download | None:
    """The rows as a CSV file, named after their exhibit and what they have in common."""
    rows = list(rows)
    if not rows:
        return None
    names = list(dict.fromkeys(row.exhibit for row in rows))
    flat = {row.flat()["dataset"] for row in rows}
    tiers = {row.tier for row in rows}
    place = flat if len(flat) == 1 else tiers if len(tiers) == 1 else ()
    return Download("-".join([*names, *place]) + ".csv", exhibits.to_csv(rows))


def spread(
    rows: Sequence[Row],
    metric: str,
    labels: Mapping[str, str],
    caption: str = "",
    name: str = "",
) -> Table:
    """Lowest and highest value over the methods, whose labels stand beside; one line a data set."""
    body = []
    for dataset in dict.fromkeys(row.keys["dataset"] for row in rows):
        held = [r for r in rows if r.keys["dataset"] == dataset and r.metric == metric and r.ours]
        if held:
            low, high = (pick(held, key=lambda r: r.ours.estimate) for pick in (min, max))
            gap = high.ours.estimate - low.ours.estimate
            cells = [f"{r.ours.estimate:.2f} ({labels[r.keys['method']]})" for r in (low, high)]
            body.append([word(dataset), *cells, f"{gap:.2f}"])
    return Table(["data set", "lowest", "highest", "apart"], body, caption, name)
