"""Rows of an exhibit as text and as a page's table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_repro.data.titles import word
from rag_repro.evaluation import metrics
from rag_repro.show import exhibit_rows as exhibits
from rag_repro.show.exhibit_rows import Row
from rag_repro.show.picture import Download
from rag_repro.show.table import Table, Under, github
from rag_repro.show.values import within
from rag_repro.study.papers import Exhibit

MANY = 4  # metrics that a caption lists
PRINTED = "Printed in the paper, and not run here"
NAMES = {
    "dataset": "data set",
    "own_candidates": "own candidates",
    "gold_there": "gold there",
    "tau": "τ",
    "theta": "θ",
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
    return github(*grid(rows)) + "\n"


def grid(
    rows: Sequence[Row], labels: Mapping[str, str] | None = None
) -> tuple[list[str], list[list[str]]]:
    """Head and body of the reader's table, one line for each method at each setting.

    labels: the methods' names in words. What has one value in all rows gets no
    column; `common` says it, and `settled` what each data set has one value of.
    """
    rows = list(rows)
    said = {*common(rows), *settled(rows)}
    shown = [name for name in _places(rows) if name not in said]
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


def settled(rows: Sequence[Row]) -> dict[str, dict[str, str]]:
    """Tier, reader and split, where each data set has one alone: by data set, in words.

    Of one data set it is `common` that says it.
    """
    told: dict[str, dict[str, str]] = {}
    flat = [row.flat() for row in rows]
    sets = dict.fromkeys(f["dataset"] for f in flat)
    for name in ("tier", "reader", "split"):
        values = {one: {f.get(name, "") for f in flat if f["dataset"] == one} for one in sets}
        if len(sets) > 1 and all(len(held) == 1 for held in values.values()):
            told[name] = {word(one): word(*held) for one, held in values.items()}
    return {name: held for name, held in told.items() if len(set(held.values())) > 1}


def gain(row: Row) -> str:
    """Ours minus the baseline's, with its interval; empty where there is no baseline.

    Both sides are means of the questions that both answered: their number where it is another.
    """
    fewer = bool(row.diff and row.ours and row.diff.n != row.ours.n)
    return within(row.diff, _digits(row), sign="+", n=fewer)


def ours(row: Row) -> str:
    """Our value with interval and n, or in a word why there is none: the file has the rest."""
    if row.ours is None:
        return "–" if row.note == exhibits.UNMEASURED else row.note.partition("; ")[0]
    return within(row.ours, _digits(row), n=True)


def _digits(row: Row) -> int:
    """Decimals: another one where two show nothing, as of a share of a layer's attention."""
    return 3 if row.ours and 0 < abs(row.ours.estimate) < 0.1 else 2


def exhibit_table(
    exhibit: Exhibit, rows: Sequence[Row], name: str = "", weak: Sequence[str] = ()
) -> Table:
    """The reader's table of an exhibit for a page; a column that says nothing is left out.

    weak: where the reader is too weak for verdicts on answers (`readers.weak`).

    Data sets stand together. Printed rows that nothing of ours stands beside are folded away,
    but where there are no others.
    """
    every, data = rows, data_of(rows)
    sets = list(dict.fromkeys((row.tier, row.keys["dataset"]) for row in rows))
    rows = sorted(rows, key=lambda row: sets.index((row.tier, row.keys["dataset"])))
    lines = list(exhibits.lines_of(rows).values())
    alone = [
        line for line in lines if all(r.ours is None for r in line) and any(r.paper for r in line)
    ]
    more = None
    if 0 < len(alone) < len(lines):
        rows = [row for line in lines if line not in alone for row in line]
        # Under the paper's own names: nobody here ran its readers.
        more = Table(*_kept(exhibit, [row for line in alone for row in _as_printed(line)]), PRINTED)
    head, body = _kept(exhibit, rows)
    parts = [_title(exhibit, every), *shared(rows)]
    bases = dict.fromkeys(row.baseline for row in rows if row.diff)
    if len(bases) > 1:
        place = head.index("method")
        for cells, line in zip(body, exhibits.lines_of(rows).values(), strict=True):
            if base := next((row.baseline for row in line if row.diff), None):
                cells[place] = Under(cells[place], f"over “{exhibit.methods[base].label}”")
    elif bases:
        parts.append(f"gains over “{exhibit.methods[next(iter(bases))].label}”")
    lines = exhibits.lines_of(every).values()
    if short := [line[0].short for line in lines if line[0].short]:
        told = ", ".join(dict.fromkeys(short))
        parts.append(f"{len(short)} of {len(lines)} rows are not complete ({told})")
    if weak:
        parts.append(f"reader too weak for verdicts on answers: {', '.join(weak)}")
    meanings = {one.symbol: one.meaning for one in _metrics(rows)}
    for key, values in settled(rows).items():
        places = {v: [d for d, other in values.items() if other == v] for v in values.values()}
        meanings[key] = "; ".join(f"{v or 'test'} on {', '.join(d)}" for v, d in places.items())
    return Table(head, body, "; ".join(parts), name, data, meanings, more)


def _as_printed(line: Sequence[Row]) -> list[Row]:
    names = {name: value for row in line for name, value in row.theirs.items()}
    return [replace(row, keys={**row.keys, **names}) for row in line]


def _kept(exhibit: Exhibit, rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Head and body without the columns that say nothing."""
    head, body = grid(rows, {name: row.label for name, row in exhibit.methods.items()})
    kept = [i for i in range(len(head)) if any(cells[i] for cells in body)] if body else []
    return [head[i] for i in kept], [[cells[i] for i in kept] for cells in body]


def _title(exhibit: Exhibit, rows: Sequence[Row]) -> str:
    """With the metrics, where it is a part of them: an exhibit may have several tables."""
    held = _metrics(rows)
    told = f"{exhibit.title} ({exhibit.place})"
    if len(held) == len(exhibit.metrics):
        return told
    more = f" and {len(held) - MANY} more" if len(held) > MANY else ""
    return f"{told}: {', '.join(one.symbol for one in held[:MANY])}{more}"


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
