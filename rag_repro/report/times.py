"""Timed exhibits as rows and tables: seconds, calls, tokens, and which service took the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..data.titles import word
from ..evaluation.statistics import Interval
from ..study import records
from ..study.exhibits import Cell, Exhibit
from ..study.paper import Paper
from ..study.scores import Results, resampled
from . import missing
from .picture import Download, Note
from .table import Table
from .values import number, within

ONE = "single_step"  # whose time counts as 1
# Metric of each part of an answer's time -> its name in words.
PARTS = {
    "seconds_reader": "reader",
    "seconds_scorer": "classifier",
    "seconds_encoder": "encoding of queries",
    "seconds_lookup": "search",
    "seconds_rest": "all else",
}
COUNTS = ("reader_calls", "prefilled_tokens", "new_tokens", "retrievals", "pairs")
_KINDS = {
    "reader": "the reader writes",
    "retriever": "search",
    "retriever.encoder": "of it, queries encoded",
    "encoder": "texts encoded",
    "scorer": "the classifier judges",
    "reservoir": "the reservoir",
}


@dataclass(frozen=True)
class Timed:
    """A cell's times; None for each of them where nobody has timed it.

    seconds: for one answer. times: the same, single-step's on the same questions
    as 1. means: of `PARTS` and `COUNTS`, a question. f1: of the answers' own
    record where there is one (of more questions), else of the timed answers.
    """

    cell: Cell
    label: str
    seconds: Interval | None = None
    times: Interval | None = None
    means: Mapping[str, float] | None = None
    f1: Interval | None = None

    @property
    def dataset(self) -> str:
        return self.cell.keys["dataset"]

    @property
    def method(self) -> str:
        return self.cell.keys["method"]


def timed(exhibit: Exhibit, results: Results, tier: str | None = None) -> list[Timed]:
    """Every cell of a timed exhibit: data set by data set, methods in the exhibit's order."""
    cells = exhibit.cells(tier)
    datasets = list(dict.fromkeys(c.keys["dataset"] for c in cells))
    methods = list(exhibit.methods)
    cells.sort(key=lambda c: (datasets.index(c.keys["dataset"]), methods.index(c.keys["method"])))
    return [_timed(exhibit, cell, cells, results) for cell in cells]


def _timed(exhibit: Exhibit, cell: Cell, cells: Sequence[Cell], results: Results) -> Timed:
    row = Timed(cell, exhibit.methods[cell.keys["method"]].label)
    seconds = results.scores(cell, "seconds")
    if seconds is None:
        return row
    one = next((c for c in cells if _is_one(c, cell)), None)
    of_base = results.percent(cell, one, "seconds")
    scores = {name: results.scores(cell, name) for name in (*PARTS, *COUNTS)}
    own = results.scores(replace(cell, timed=False, n=None), "f1") or results.scores(cell, "f1")
    return replace(
        row,
        seconds=resampled(seconds, "seconds").interval(),
        times=of_base and of_base.interval().scaled(0.01),
        means={name: float(held.values.mean()) for name, held in scores.items() if held},
        f1=own and resampled(own, "f1").interval(),
    )


def _is_one(one: Cell, cell: Cell) -> bool:
    """Whether `one` is single-step in the cell's place; its reader may be another."""
    keys = {k: v for k, v in cell.keys.items() if k not in ("method", "reader")}
    return one.matches({**keys, "method": ONE})


# -------------------------------------------------------------------------- tables


def time_table(
    exhibit: Exhibit,
    rows: Sequence[Timed],
    printed: Mapping[tuple[str, str, str], float],
    name: str = "",
) -> Table:
    """Ours beside the paper's, a line a method; printed: as `printed_values` gives them.

    A method that the paper has and we have not at this tier gets a line, too.
    """
    head = ["data set", "method", "time, single-step = 1", "paper", "seconds", "n"]
    head += ["calls", "paper's steps", "tokens read", "written", "searches", "pairs"]
    body = []
    for row in rows:
        theirs = [_told(printed.get((row.method, row.dataset, of))) for of in ("time", "step")]
        place = [word(row.dataset), row.label]
        if row.seconds is None:
            body.append([*place, missing.of_cells([row.cell]), theirs[0], "", "", ""])
            body[-1] += [theirs[1], "", "", "", ""]
            continue
        counts = [_told(row.means.get(name)) for name in COUNTS]
        body.append([*place, within(row.times), theirs[0], within(row.seconds), row.seconds.n])
        body[-1] += [counts[0], theirs[1], *counts[1:]]
    ours = {(row.method, row.dataset) for row in rows}
    for method, dataset, of in printed:
        if of == "time" and (method, dataset) not in ours and method in exhibit.methods:
            theirs = [_told(printed.get((method, dataset, of))) for of in ("time", "step")]
            place = [word(dataset), exhibit.methods[method].label, "not at this tier"]
            body.append([*place, theirs[0], "", "", "", theirs[1], "", "", "", ""])
    caption = "Time for one answer at batch 1, methods in turn on the same questions"
    return Table(head, body, caption, name, _download(rows, printed))


def not_timed(rows: Sequence[Timed]) -> Note:
    """In place of what rows of which none is timed would show."""
    return missing.note_of_cells([row.cell for row in rows])


def no_clock(cell: Cell | None) -> Note:
    """In place of the clock of a cell that is not timed, or of a method that is not shown."""
    if cell is None:
        return Note("This method is not among the rows shown.")
    return missing.note_of_cells([cell])


def part_table(rows: Sequence[Timed], name: str = "") -> Table | Note:
    """Milliseconds of each part of an answer's time with its share, and of one judged pair."""
    held = [row for row in rows if row.means]
    if not held:
        return not_timed(rows)
    body = []
    for row in held:
        took = [(1000 * row.means[part], row.means[part] / row.seconds.estimate) for part in PARTS]
        pairs = row.means.get("pairs", 0)
        one = 1000 * row.means["seconds_scorer"] / pairs if pairs else None
        cells = [f"{ms:,.1f} ({100 * share:.1f} %)" for ms, share in took]
        body.append([word(row.dataset), row.label, *cells, "" if one is None else f"{one:.1f}"])
    head = ["data set", "method", *PARTS.values(), "one pair"]
    caption = "Milliseconds of an answer in each service, with its share of the whole"
    return Table(head, body, caption, name)


def worked(cell: Cell, results: Results) -> Mapping[str, Any] | None:
    """The first timed answer in which a classifier was asked, else the first; None without any."""
    lines = results.lines(cell) or ()
    judged = (line for line in lines if line["cost"].get("scored"))
    return next(judged, lines[0] if lines else None)


def clock_table(line: Mapping[str, Any] | None, cell: Cell | None) -> Table | Note:
    """One timed answer, call by call, in order; of several turns the first.

    cell: None where the method is not shown at all.
    """
    if line is None:
        return no_clock(cell)
    turn = line["turns"][0]
    body = [
        [_KINDS[kind], items, f"{1000 * seconds:,.1f}", f"{100 * seconds / turn['seconds']:.1f} %"]
        for kind, seconds, items in turn["clock"]
    ]
    body.append(["all in all", "", f"{1000 * turn['seconds']:,.1f}", "100.0 %"])
    caption = f"The clock of one answer, question {line['id']}"
    return Table(["call", "items", "milliseconds", "of the whole"], body, caption)


def printed_values(paper: Paper, key: str) -> dict[tuple[str, str, str], float]:
    """(method, data set, metric) -> what the paper prints in that table."""
    return {(e["method"], e["dataset"], e["metric"]): float(e["value"]) for e in paper.printed(key)}


def saved(
    printed: Mapping[tuple[str, str, str], float], method: str, other: str, name: str = ""
) -> Table:
    """How much less time the paper's table gives `method` than `other`, recomputed from it."""
    body, parts = [], []
    for dataset in dict.fromkeys(place for _, place, metric in printed if metric == "time"):
        mine, theirs = (printed[one, dataset, "time"] for one in (method, other))
        parts.append(100 * (1 - mine / theirs))
        body.append([word(dataset), f"{mine:.2f}", f"{theirs:.2f}", f"{parts[-1]:.2f}"])
    body.append(["mean", "", "", f"{sum(parts) / len(parts):.2f}"])
    head = ["data set", "DR-RAG, printed", "Adaptive-RAG, printed", "less, %"]
    return Table(head, body, "Time saved, from the printed times alone", name)


def sizes(exhibit: Exhibit, results: Results) -> dict[str, int]:
    """Data set -> passages of its corpus, for those that are recorded."""
    found = {}
    for cell in exhibit.cells():
        folder = records.times_beside(results.folder, exhibit.name)
        if cell.keys["dataset"] not in found and (held := records.load(folder, cell.condition)):
            found[cell.keys["dataset"]] = held.header["fingerprint"]["passages"]
    return found


def _ends(interval: Interval | None) -> list[str]:
    of = (interval.estimate, interval.lo, interval.hi) if interval else (None, None, None)
    return [number(value, 4) for value in of]


def _told(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}".removesuffix(".00")


def _download(
    rows: Sequence[Timed], printed: Mapping[tuple[str, str, str], float]
) -> Download | None:
    """The rows as a CSV file, more of each than the table shows."""
    if not rows:
        return None
    spans = [f"{of}{end}" for of in ("seconds", "times", "f1") for end in ("", "_lo", "_hi")]
    head = ["exhibit", "tier", "dataset", "method", "n", *spans, *PARTS, *COUNTS]
    head += ["paper_time", "paper_step", "paper_f1"]
    body = []
    for row in rows:
        ends = [text for i in (row.seconds, row.times, row.f1) for text in _ends(i)]
        means = [number((row.means or {}).get(m), 5) for m in (*PARTS, *COUNTS)]
        theirs = [printed.get((row.method, row.dataset, m), "") for m in ("time", "step", "f1")]
        place = [row.cell.exhibit, row.cell.tier, row.dataset, row.method]
        body.append([*place, row.seconds.n if row.seconds else "", *ends, *means, *theirs])
    return Download.of(f"{rows[0].cell.exhibit}-times", head, body)
