"""An exhibit as rows, the paper's value beside ours, with intervals; as text and as a table.

`rows` is the one source of the CSV, of the pages' tables and of the figures.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_repro.data.titles import word
from rag_repro.evaluation import metrics
from rag_repro.evaluation.intervals import Interval
from rag_repro.evaluation.verdicts import NOT_RUN, READER_TOO_WEAK
from rag_repro.show.picture import Download, csv_text
from rag_repro.show.table import Table, Under, github
from rag_repro.show.values import number, within
from rag_repro.study import costs, gate, trainings
from rag_repro.study.grouping import group_of, groups
from rag_repro.study.papers import Cell, Exhibit, Paper
from rag_repro.study.scores import Results, everything, resampled

HEAD = ("exhibit", "tier", "dataset", "method", "metric", "paper", "ours", "lo", "hi", "n")
TAIL = ("baseline", "diff", "diff_lo", "diff_hi", "role", "note")

UNMEASURED = "no question has this metric"


@dataclass(frozen=True)
class Row:
    """One value of an exhibit, percentages in points.

    keys: dataset, method and the settings that the exhibit varies. paper: as
    printed, None where the paper has no such cell; theirs: its own names for the keys. ours: with
    its interval and n. diff: ours minus the method's baseline on the same questions. short: how
    many answers of how many its record has, where it lacks some.
    """

    exhibit: str
    tier: str
    role: str
    keys: Mapping[str, Any]
    metric: str
    paper: str | None = None
    ours: Interval | None = None
    baseline: str | None = None
    diff: Interval | None = None
    note: str = ""
    short: str = ""
    theirs: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def flat(self) -> dict[str, str]:
        """The row as text, for CSV and tables; numbers as the papers print them."""
        settings = {k: _plain(v) for k, v in self.keys.items() if k not in ("dataset", "method")}
        ours, diff = self.ours, self.diff
        return {
            "exhibit": self.exhibit,
            "tier": self.tier,
            "dataset": str(self.keys["dataset"]),
            "method": str(self.keys["method"]),
            **settings,
            "metric": self.metric,
            "paper": self.paper or "",
            "ours": number(ours and ours.estimate),
            "lo": number(ours and ours.lo),
            "hi": number(ours and ours.hi),
            "n": str(ours.n) if ours else "",
            "baseline": self.baseline or "",
            "diff": number(diff and diff.estimate),
            "diff_lo": number(diff and diff.lo),
            "diff_hi": number(diff and diff.hi),
            "role": self.role,
            "note": _joined(self.note, self.short),
        }


def rows(paper: Paper, exhibit: Exhibit, results: Results, tier: str | None = None) -> list[Row]:
    """Every row of the exhibit, at one tier or at all.

    A printed value that no record stands beside gets a row too, with the
    reason in its note: nothing of the paper's table is passed over.
    """
    key = exhibit.name.split(".", 1)[1]
    printed, beside = paper.printed(key), []
    made: list[Row] = []
    for cell in exhibit.cells(tier):
        for keep_name, keep in _groups(exhibit, cell, results):
            for metric in exhibit.metrics:
                row = _row(paper, exhibit, cell, metric, keep_name, keep, results)
                # Of pooled corpus and own candidates only one is the paper's cell.
                other = cell.condition.configured.own_candidates is not exhibit.candidates
                entry = None if other else _find(printed, row.keys, metric, exhibit)
                if entry is not None:
                    beside.append(entry)
                    note = _joined(row.note, entry.get("note"))
                    theirs = {k: entry[k] for k in row.keys if entry.get(k)}
                    row = replace(row, paper=entry["value"], note=note, theirs=theirs)
                made.append(row)
    if tier in (None, "public"):
        made += [_waiting(exhibit, entry) for entry in printed if entry not in beside]
    return made


def recipe_rows(
    paper: Paper, exhibit: Exhibit, results: Results, tier: str | None = None
) -> list[Row]:
    """As `rows`, all trainings of a row as one, with their number as key `trainings`."""
    whole, means = trainings.merged(exhibit, results, paper.exhibits.values())
    made = rows(paper, whole, means, tier)
    if whole is exhibit:
        return made
    counts = {trainings.place(c.tier, c.keys): means.count(c) for c in whole.cells()}
    for i, row in enumerate(made):
        keys = {k: v for k, v in row.keys.items() if k != exhibit.by}
        if count := counts.get(trainings.place(row.tier, keys)):
            made[i] = replace(row, keys={**row.keys, "trainings": count})
    return made


def _row(
    paper: Paper, exhibit: Exhibit, cell: Cell, metric: str, group: str | None, keep, results
) -> Row:
    method = exhibit.methods[cell.keys["method"]]
    keys = dict(cell.keys) if group is None else {**cell.keys, exhibit.by: group}
    lines = results.lines(cell)
    short = costs.short(cell, len(lines)) if lines is not None else ""
    row = Row(exhibit.name, cell.tier, cell.role, keys, metric, short=short)
    scores = results.scores(cell, metric, keep)
    if scores is None:
        if lines is not None:
            return replace(row, note=UNMEASURED)
        held_back = gate.of_answers(paper, [metric], cell, results)
        weak = held_back is not None and held_back.word == READER_TOO_WEAK
        return replace(row, note=f"{NOT_RUN}: {READER_TOO_WEAK}" if weak else NOT_RUN)
    row = replace(row, ours=resampled(scores, metric).interval())
    base = sibling_cell(exhibit, cell, {"method": method.baseline}) if method.baseline else None
    if drawn := results.gain(cell, base, metric, keep):
        row = replace(row, baseline=method.baseline, diff=drawn.interval())
    return row


def _groups(exhibit: Exhibit, cell: Cell, results: Results) -> Iterator[tuple[str | None, Any]]:
    """(None, all) or each group of what splits the exhibit."""
    lines = results.lines(cell)
    if exhibit.by is None or lines is None:
        yield None, everything
        return
    for group in groups(lines, exhibit.by):
        yield group, lambda line, group=group: group_of(line, exhibit.by) == group


def sibling_cell(exhibit: Exhibit, cell: Cell, changes: Mapping[str, Any]) -> Cell | None:
    """The cell of the same tier with the same keys but for `changes`.

    A guess has no reader, what is not trained no seed, and what has no memory no threshold of
    one: a key that a grid varies may be missing on the other side.
    """
    wanted = {**cell.keys, **changes}
    varied = {name for grid in exhibit.grids for name in grid.settings}
    may_lack = {"reader", "seed", *varied}.difference(changes)
    fits = [
        c
        for c in exhibit.cells(cell.tier)
        if c.keys.items() <= wanted.items() and wanted.keys() - c.keys.keys() <= may_lack
    ]
    return max(fits, key=lambda c: len(c.keys), default=None)


# ------------------------------------------------------------- printed values


def printed_of(paper: Paper, exhibit: Exhibit, cell: Cell, metric: str) -> str | None:
    """What the paper prints for this cell; None where it prints nothing of it."""
    if cell.condition.configured.own_candidates is not exhibit.candidates:
        return None
    entry = _find(paper.printed(exhibit.name.split(".", 1)[1]), cell.keys, metric, exhibit)
    return entry and entry["value"]


def _find(
    printed: Sequence[Mapping[str, str]], keys: Mapping[str, Any], metric: str, exhibit: Exhibit
) -> Mapping[str, str] | None:
    """The printed value whose every key agrees with a cell's, or is said to."""
    have = {k: _plain(v) for k, v in keys.items()} | {"metric": metric}
    for pair in exhibit.beside:
        if all(keys.get(key) == value for key, value in pair["ours"].items()):
            have |= {key: _plain(value) for key, value in pair["printed"].items()}
    for entry in printed:
        if all(have.get(name) == entry[name] for name in entry.keys() - {"value", "note"}):
            return entry
    return None


def _waiting(exhibit: Exhibit, entry: Mapping[str, str]) -> Row:
    method = exhibit.methods.get(entry["method"]) if "method" in entry else None
    keys = {k: v for k, v in entry.items() if k not in ("value", "note", "metric") and v}
    keys = {"dataset": keys.pop("dataset", ""), "method": keys.pop("method", ""), **keys}
    why = (method.waits if method else None) or NOT_RUN
    note = _joined(why, entry.get("note"))
    return Row(exhibit.name, "public", "primary", keys, entry["metric"], entry["value"], note=note)


def _joined(*notes: str | None) -> str:
    return "; ".join(note for note in notes if note)


# ------------------------------------------------------------------ text forms


def to_csv(made: Sequence[Row]) -> str:
    """One line a row: fixed columns, and between them what the exhibit varies."""
    head = [*HEAD[:4], *_places(made)[2:], *HEAD[4:], *TAIL]
    return csv_text(head, ([flat.get(name, "") for name in head] for flat in map(Row.flat, made)))


def lines_of(made: Sequence[Row]) -> dict[tuple, list[Row]]:
    """Rows by all that is not the metric: one printed line each."""
    lines: dict[tuple, list[Row]] = defaultdict(list)
    for row in made:
        lines[(row.tier, row.role, *((k, str(v)) for k, v in row.keys.items()))].append(row)
    return dict(lines)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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
    if form == "csv":
        return to_csv(rows)
    if form == "json":
        return json.dumps([row.flat() for row in rows], ensure_ascii=False, indent=1) + "\n"
    return github(*grid(rows)) + "\n"


def grid(
    rows: Sequence[Row], labels: Mapping[str, str] | None = None
) -> tuple[list[str], list[list[str]]]:
    """Head and body of the reader's table, one line for each method at each setting: of each
    metric its difference to the baseline first, then ours, then the paper's.

    labels: the methods' names in words. What has one value in all rows gets no
    column; `common` says it, and `settled` what each data set has one value of.
    """
    said = {*common(rows), *settled(rows)}
    shown = [name for name in _places(rows) if name not in said]
    names = list(dict.fromkeys(row.metric for row in rows))
    head = [*(NAMES.get(name, name) for name in shown), "method"]
    for name in names:
        symbol = metrics.get(name).symbol if name in metrics.METRICS else name
        head += [f"{symbol}: {of}" for of in ("gain over baseline", "ours [95 %], n", "paper")]
    body = []
    for line in lines_of(rows).values():
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
        return "–" if row.note == UNMEASURED else row.note.partition("; ")[0]
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
    lines = list(lines_of(rows).values())
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
        for cells, line in zip(body, lines_of(rows).values(), strict=True):
            if base := next((row.baseline for row in line if row.diff), None):
                cells[place] = Under(cells[place], f"over “{exhibit.methods[base].label}”")
    elif bases:
        parts.append(f"gains over “{exhibit.methods[next(iter(bases))].label}”")
    lines = lines_of(every).values()
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
    if not rows:
        return None
    names = list(dict.fromkeys(row.exhibit for row in rows))
    sets, tiers = {str(row.keys["dataset"]) for row in rows}, {row.tier for row in rows}
    place = sets if len(sets) == 1 else tiers if len(tiers) == 1 else ()
    return Download("-".join([*names, *place]) + ".csv", to_csv(rows))
