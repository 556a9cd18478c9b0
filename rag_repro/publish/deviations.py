"""Where our runs are not the papers': what their files tell, beside what chapters say.

The first part of the page is made from each paper's YAML and printed values; the second
repeats the tables of deviations that stand in the chapters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_repro.data.titles import word
from rag_repro.publish.templating import render
from rag_repro.study import papers
from rag_repro.study.conditions import TIERS
from rag_repro.study.papers import Exhibit, Paper


def text(chapters: Mapping[str, str], titles: Mapping[str, str]) -> str:
    """The page. chapters: name -> the Markdown of its deviations; titles: name -> its title."""
    known = [
        (paper, [row for e in paper.exhibits.values() for row in _of_exhibit(paper, e)])
        for paper in map(papers.load, papers.names())
    ]
    return render("deviations", papers=known, chapters=chapters, titles=titles)


def _of_exhibit(paper: Paper, exhibit: Exhibit) -> list[list[str]]:
    """Rows, data sets and readers that only one side has; questions asked here."""
    if exhibit.own or not exhibit.values:
        return []
    key = exhibit.name.split(".", 1)[1]
    printed, cells = paper.printed(key), exhibit.cells()
    made = []
    theirs = _order(row.get("method", "") for row in printed)
    ours = _order(c.keys["method"] for c in cells)
    labels = {name: row.label for name, row in exhibit.methods.items()}
    # A row of ours may stand beside a printed one of another name.
    pairs = [(b["ours"].get("method"), b["printed"].get("method")) for b in exhibit.beside]
    without = [m for m in theirs if m not in ours and m not in {p for o, p in pairs if o in ours}]
    added = [m for m in ours if m not in theirs and m not in {o for o, p in pairs if p in theirs}]
    reasons = _order(row.waits for row in exhibit.methods.values() if row.waits)
    if without:
        why = f"not run: {'; '.join(reasons)}" if reasons else "not run"
        made.append(["rows", _said(without, labels), why])
    if added:
        made.append(["rows", "", _said(added, labels)])
    sides = {"dataset": [c.keys["dataset"] for c in cells]}
    sides["reader"] = [c.condition.reader or "" for c in cells]
    for key, what in (("dataset", "data sets"), ("reader", "readers")):
        told = _order(word(row.get(key, "")) for row in printed)
        run = _order(map(word, sides[key]))
        if told != run:
            made.append([what, ", ".join(told), ", ".join(run) or "none"])
    if asked := _asked(exhibit):
        made.append(["questions", "", asked])
    # Its name stands at the first of its rows.
    return [
        ["" if i else exhibit.name, what, told or "not in its table", run]
        for i, (what, told, run) in enumerate(made)
    ]


def _asked(exhibit: Exhibit) -> str:
    """Of each tier, how many questions a cell may have: "testbed all; public 60 to 252"."""
    said = []
    for tier in TIERS:
        sizes = [cell.n for cell in exhibit.cells(tier)]
        known = sorted({n for n in sizes if n is not None})
        words = [" to ".join(dict.fromkeys(map(str, (known[0], known[-1]))))] if known else []
        words += ["all at hand"] * (None in sizes)
        if words:
            said.append(f"{tier} {' or '.join(words)}")
    return "; ".join(said)


def _order(names) -> list[str]:
    return [name for name in dict.fromkeys(names) if name]


def _said(names: Sequence[str], labels: Mapping[str, str]) -> str:
    # A label may hold commas.
    return "; ".join(labels.get(name, name) for name in names)
