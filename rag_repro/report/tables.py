"""Rows of an exhibit as text and as a page's table."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
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
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def grid(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Head and body of the reader's table, one line for each method at each setting."""
    rows = list(rows)
    varied = list(dict.fromkeys(k for r in rows for k in r.keys if k not in ("dataset", "method")))
    names = list(dict.fromkeys(row.metric for row in rows))
    head = ["tier", "data set", *varied, "method"]
    for name in names:
        symbol = metrics.get(name).symbol if name in metrics.METRICS else name
        head += [f"{symbol}: gain over baseline", f"{symbol}: ours [95 %], n", f"{symbol}: paper"]
    body = []
    for line in exhibits.lines_of(rows).values():
        first, by = line[0], {row.metric: row for row in line}
        keys = first.flat()
        cells = [first.tier, DATASETS.get(keys["dataset"], keys["dataset"])]
        cells += [keys.get(name, "") for name in varied] + [keys["method"]]
        for name in names:
            row = by.get(name)
            cells += ["", "", ""] if row is None else [gain(row), ours(row), row.paper or ""]
        body.append(cells)
    return head, body


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
    """A table that a notebook shows: HTML in the book, Markdown elsewhere.

    Every cell is escaped: texts of data sets and models stay text.
    """

    def __init__(self, head: Sequence[str], body: Sequence[Sequence[Any]], caption: str = ""):
        self.head, self.body, self.caption = list(head), [list(r) for r in body], caption

    def _repr_markdown_(self) -> str:
        def line(cells: Sequence[Any]) -> str:
            return "| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |"

        return "\n".join([line(self.head), line(["---"] * len(self.head)), *map(line, self.body)])

    def _repr_html_(self) -> str:
        def cells(tag: str, values: Sequence[Any]) -> str:
            return "".join(f"<{tag}>{html.escape(str(v))}</{tag}>" for v in values)

        body = "".join(f"<tr>{cells('td', row)}</tr>" for row in self.body)
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        return (
            f'<div class="rr-table"><table>{caption}<thead><tr>{cells("th", self.head)}</tr>'
            f"</thead><tbody>{body}</tbody></table></div>"
        )


def exhibit_table(exhibit: Exhibit, rows: Sequence[Row]) -> Table:
    """The reader's table of an exhibit for a page."""
    head, body = grid(rows)
    return Table(head, body, f"{exhibit.title} ({exhibit.place})")
