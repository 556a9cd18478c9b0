"""An exhibit as rows: the paper's value beside ours, each with its interval.

`rows` is the one source of the CSV, of the pages' tables and of the figures.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rag_repro.evaluation import metrics
from rag_repro.evaluation.statistics import Interval, Resampled
from rag_repro.evaluation.verdicts import NOT_RUN, READER_TOO_WEAK
from rag_repro.show.picture import csv_text
from rag_repro.show.values import number
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
    its interval and n. diff: ours minus the method's baseline on the same questions; drawn: of
    which that is the interval, for those who compare several. short: how many answers of how many
    its record has, where it lacks some.
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
    drawn: Resampled | None = field(default=None, compare=False, repr=False)
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
    printed = {_printed_key(entry): entry for entry in paper.printed(key)}
    made: list[Row] = []
    beside: set[tuple] = set()
    for cell in exhibit.cells(tier):
        for keep_name, keep in _groups(exhibit, cell, results):
            for metric in exhibit.metrics:
                row = _row(paper, exhibit, cell, metric, keep_name, keep, results)
                # Of pooled corpus and own candidates only one is the paper's cell.
                other = cell.condition.configured.own_candidates is not exhibit.candidates
                entry = None if other else _find(printed, row.keys, metric, exhibit)
                if entry is not None:
                    beside.add(_printed_key(entry))
                    note = _joined(row.note, entry.get("note"))
                    theirs = {k: entry[k] for k in row.keys if entry.get(k)}
                    row = replace(row, paper=entry["value"], note=note, theirs=theirs)
                made.append(row)
    if tier in (None, "public"):
        made += [_waiting(exhibit, entry) for k, entry in printed.items() if k not in beside]
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
    base = beside(exhibit, cell, {"method": method.baseline}) if method.baseline else None
    if drawn := results.gain(cell, base, metric, keep):
        row = replace(row, baseline=method.baseline, diff=drawn.interval(), drawn=drawn)
    return row


def _groups(exhibit: Exhibit, cell: Cell, results: Results) -> Iterator[tuple[str | None, Any]]:
    """(None, all) or each group of what splits the exhibit."""
    lines = results.lines(cell)
    if exhibit.by is None or lines is None:
        yield None, everything
        return
    for group in groups(lines, exhibit.by):
        yield group, lambda line, group=group: group_of(line, exhibit.by) == group


def beside(exhibit: Exhibit, cell: Cell, changes: Mapping[str, Any]) -> Cell | None:
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


def _printed_key(entry: Mapping[str, str]) -> tuple:
    return tuple(sorted((k, v) for k, v in entry.items() if k not in ("value", "note")))


def printed_of(paper: Paper, exhibit: Exhibit, cell: Cell, metric: str) -> str | None:
    """What the paper prints for this cell; None where it prints nothing of it."""
    if cell.condition.configured.own_candidates is not exhibit.candidates:
        return None
    printed = {_printed_key(e): e for e in paper.printed(exhibit.name.split(".", 1)[1])}
    entry = _find(printed, cell.keys, metric, exhibit)
    return entry and entry["value"]


def _find(
    printed: Mapping[tuple, Mapping[str, str]],
    keys: Mapping[str, Any],
    metric: str,
    exhibit: Exhibit,
) -> Mapping[str, str] | None:
    """The printed value whose every key agrees with a cell's, or is said to."""
    have = {k: _plain(v) for k, v in keys.items()} | {"metric": metric}
    for pair in exhibit.beside:
        if all(keys.get(key) == value for key, value in pair["ours"].items()):
            have |= {key: _plain(value) for key, value in pair["printed"].items()}
    for key, entry in printed.items():
        if all(have.get(name) == value for name, value in key):
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


def columns(made: list[Row]) -> list[str]:
    """The columns of these rows: fixed ones, and between them what the exhibit varies."""
    varied = dict.fromkeys(k for row in made for k in row.keys if k not in ("dataset", "method"))
    head = list(HEAD)
    return [*head[:4], *varied, *head[4:], *TAIL]


def to_csv(made: list[Row]) -> str:
    """One line a row, every column of `columns`."""
    head = columns(made)
    return csv_text(head, ([flat.get(name, "") for name in head] for flat in map(Row.flat, made)))


def lines_of(made: list[Row]) -> dict[tuple, list[Row]]:
    """Rows by all that is not the metric: one printed line each."""
    lines: dict[tuple, list[Row]] = defaultdict(list)
    for row in made:
        lines[(row.tier, row.role, *((k, str(v)) for k, v in row.keys.items()))].append(row)
    return dict(lines)


def whole(
    made: Iterable[Row], wanted: Collection[str], place: Callable[[Row], Any]
) -> dict[Any, dict[str, Row]]:
    """Rows with a value of ours by place and metric, where a place has every wanted metric."""
    held: dict[Any, dict[str, Row]] = defaultdict(dict)
    for row in made:
        if row.ours is not None and row.metric in wanted:
            held[place(row)][row.metric] = row
    return {where: found for where, found in held.items() if found.keys() == set(wanted)}


def unit(metric: str) -> str:
    """What a metric's numbers are in: "%" or the name of what is counted."""
    known = metrics.get(metric)
    return "%" if known.unit == "percent" else known.unit


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
