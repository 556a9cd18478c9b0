"""Rows of an exhibit as text and as a page's table."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation import metrics
from ..study.papers import Exhibit
from . import exhibits
from .exhibits import Row

DATASETS = {
    "musique": "MuSiQue",
    "hotpotqa": "HotpotQA",
    "2wikimultihopqa": "2WikiMultihopQA",
}
PROSE = 40  # characters from which a cell is text that wraps
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
    head, body = grid(rows)
    lines = [head, ["---"] * len(head), *body]
    return "".join("| " + " | ".join(map(plain, cells)) + " |\n" for cells in lines)


def plain(text: Any) -> str:
    """Text for a cell of a Markdown table that is read as it is: on a terminal."""
    return " ".join(str(text).split()).replace("|", "\\|")


# What Markdown, MyST and their extensions give a meaning to inside a line.
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#|~$^&!@:])")


def escaped(text: Any) -> str:
    """Text that a MyST page shows as it is, in a cell or a sentence: no mark keeps its meaning."""
    return _MARKS.sub(r"\\\1", " ".join(str(text).split()))


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
        of = f"{symbol}: " if len(names) > 1 else ""
        head += [f"{of}gain over baseline", f"{of}ours [95 %], n", f"{of}paper"]
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
    """What has the same value in every row that has it at all."""
    flat = [row.flat() for row in rows]
    values = {name: {f[name] for f in flat if f.get(name)} for name in _places(rows)}
    return {name: word(*held) for name, held in values.items() if len(held) == 1}


def word(value: str) -> str:
    return DATASETS.get(value, value)


def gain(row: Row) -> str:
    """Ours minus the baseline's, with its interval; empty where there is no baseline."""
    if row.diff is None:
        return ""
    d = row.diff
    return f"{d.estimate:+.2f} [{d.lo:+.2f}, {d.hi:+.2f}]"


def ours(row: Row) -> str:
    """Our value with interval and n, or why there is none."""
    if row.ours is None:
        return row.note
    o = row.ours
    return f"{o.estimate:.2f} [{o.lo:.2f}, {o.hi:.2f}], n {o.n}"


class Table:
    """A table that a notebook shows: HTML in the book, Markdown as plain text.

    Every cell is escaped: texts of data sets and models stay text.
    """

    def __init__(self, head: Sequence[str], body: Sequence[Sequence[Any]], caption: str = ""):
        self.head, self.body, self.caption = list(head), [list(r) for r in body], caption

    def __repr__(self) -> str:
        def line(cells: Sequence[Any]) -> str:
            return "| " + " | ".join(map(plain, cells)) + " |"

        rule = "| " + " | ".join(["---"] * len(self.head)) + " |"
        return "\n".join([line(self.head), rule, *map(line, self.body)])

    def _repr_html_(self) -> str:
        if not self.body:
            return "<p>No condition of this kind is shown here.</p>"

        def cell(value: Any) -> str:
            text = str(value)
            kind = ' class="prose"' if len(text) > PROSE else ""
            return f"<td{kind}>{html.escape(text)}</td>"

        head = "".join(f"<th>{html.escape(str(v))}</th>" for v in self.head)
        body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in self.body)
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        return (
            f'<div class="rr-table"><table>{caption}<thead><tr>{head}</tr>'
            f"</thead><tbody>{body}</tbody></table></div>"
        )


def exhibit_table(exhibit: Exhibit, rows: Sequence[Row]) -> Table:
    """The reader's table of an exhibit for a page."""
    head, body = grid(rows, {name: row.label for name, row in exhibit.methods.items()})
    shared = ", ".join(f"{NAMES.get(k, k)} {v}" for k, v in common(rows).items())
    return Table(head, body, f"{exhibit.title} ({exhibit.place}); {shared}")


def spread(rows: Sequence[Row], metric: str) -> Table:
    """Lowest and highest value over the methods, one line a data set."""
    body = []
    for dataset in dict.fromkeys(row.keys["dataset"] for row in rows):
        held = [r for r in rows if r.keys["dataset"] == dataset and r.metric == metric and r.ours]
        if held:
            low, high = (pick(held, key=lambda r: r.ours.estimate) for pick in (min, max))
            gap = high.ours.estimate - low.ours.estimate
            cells = [f"{r.ours.estimate:.2f} ({r.keys['method']})" for r in (low, high)]
            body.append([word(dataset), *cells, f"{gap:.2f}"])
    return Table(["data set", "lowest", "highest", "apart"], body)
