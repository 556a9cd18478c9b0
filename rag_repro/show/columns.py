"""Cells by columns: a column reads one thing off a cell, or off it and its baseline.

    table(entries(chapter, "table2"), {
        "method": label(), "paper": paper("em"), "ours": level("em"),
        "difference": gain("em"), "searches": mean("retrievals")})

A row is a cell of an exhibit (all trainings of a recipe are one). A column that finds nothing
leaves its place empty; a row whose measured columns all find nothing is *not run*, and the table
names the command that runs it. `where` of a column is a filter of recorded answers: it takes an
answer and says whether it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from rag_repro.analysis.pair_judgements import judgements
from rag_repro.data.titles import word
from rag_repro.evaluation.calibration import Judgements
from rag_repro.evaluation.intervals import Interval
from rag_repro.evaluation.pair_metrics import BOTH
from rag_repro.evaluation.ratios import percent_interval
from rag_repro.evaluation.resampling import new_generator
from rag_repro.evaluation.verdicts import NOT_RUN
from rag_repro.show import missing
from rag_repro.show.chapter import Chapter
from rag_repro.show.exhibit_rows import printed_of, sibling_cell
from rag_repro.show.picture import Download, Note
from rag_repro.show.table import Table
from rag_repro.show.values import number, within
from rag_repro.study.papers import Cell, Exhibit, Paper
from rag_repro.study.scores import Keep, Only, Results, everything, paired, resampled
from rag_repro.study.trainings import Pooled, merged


@dataclass(frozen=True)
class Entry:
    """A cell as a row of a table: with its paper, its exhibit and the records it is read from.

    group: the name of the questions that it is read from, where they are not all (`grouped`).
    """

    paper: Paper
    exhibit: Exhibit
    cell: Cell
    results: Results = field(repr=False)
    group: str = ""

    @property
    def keys(self) -> Mapping[str, Any]:
        return self.cell.keys

    @property
    def method(self) -> str:
        """The method's name in words."""
        return self.exhibit.methods[self.keys["method"]].label

    def baseline(self, over: Mapping[str, Any] | None = None) -> Cell | None:
        """The cell that this one is compared with: its method's baseline, or the same with
        other keys, as {"method": "sm"}; None where there is none, or where it is this one."""
        if over is None:
            name = self.exhibit.methods[self.keys["method"]].baseline
            over = {"method": name} if name else None
        found = sibling_cell(self.exhibit, self.cell, over) if over else None
        return None if found is self.cell else found


def entries(chapter: Chapter, key: str, **wanted: Any) -> list[Entry]:
    """An exhibit's cells on a chapter's ground, data sets together and else in the order of its
    file; all trainings of a row are one.

    wanted: keys that pick them, one value or a list, as method=["qdc", "cfs"], k=4,
    role="primary", tier="public".
    """
    paper, tiers = chapter.paper, chapter.tiers()
    whole, means = merged(paper.exhibit(key), chapter.results, paper.exhibits.values())
    cells = whole.cells(wanted.pop("tier", None), wanted.pop("role", None))
    fits = [c for c in cells if c.tier in tiers and c.matches(wanted)]
    sets = list(dict.fromkeys((cell.tier, cell.keys["dataset"]) for cell in fits))
    fits.sort(key=lambda cell: sets.index((cell.tier, cell.keys["dataset"])))
    return [Entry(paper, whole, cell, means) for cell in fits]


def expand(shown: Sequence[Entry], **keys: Sequence[Any]) -> list[Entry]:
    """Each entry once for every combination of places within its records, as layer=range(1, 31)."""
    return [
        replace(e, cell=replace(e.cell, keys={**e.keys, **dict(zip(keys, at, strict=True))}))
        for e in shown
        for at in product(*keys.values())
    ]


def answered_by_all(shown: Sequence[Entry]) -> Only:
    """A filter: of each data set the questions that all entries with a record have answered.

    Means that a figure sets side by side are of these, as level("em", answered_by_all(shown)). Of
    data sets that share a question it counts where all entries of each that has it answered it.
    """
    by_dataset: dict[str, list[set[str]]] = {}
    for entry in shown:
        if lines := entry.results.lines(entry.cell):
            ids = {line["id"] for line in lines}
            by_dataset.setdefault(entry.keys["dataset"], []).append(ids)
    every = [(set.union(*each), set.intersection(*each)) for each in by_dataset.values()]
    lacking = set().union(*(some - all_ for some, all_ in every))
    return Only(ids=frozenset().union(*(all_ for _, all_ in every)) - lacking)


def grouped(shown: Sequence[Entry], groups: Mapping[str, Collection[str]]) -> list[Entry]:
    """The entries once for each group of questions (name -> ids), which all their data sets share.

    A group is one of the questions of all data sets together: an entry of the first stands for it.
    """
    datasets = list(dict.fromkeys(entry.keys["dataset"] for entry in shown))
    firsts = [entry for entry in shown if entry.keys["dataset"] == datasets[0]]
    return [
        replace(e, results=Pooled(e.results, e.exhibit, datasets, ids), group=name)
        for name, ids in groups.items()
        for e in firsts
    ]


@dataclass(frozen=True)
class Column:
    """What a table or figure reads off an entry.

    read: -> an Interval, a number, a text, or None where there is none. measured: whether it is
    read from records: a row in which no measured column finds anything is not run. unit: what
    stands at a figure's axis. The others say how an interval or number is printed.
    """

    read: Callable[[Entry], Interval | float | str | None]
    measured: bool = True
    unit: str = ""
    digits: int = 1
    sign: str = ""
    n: bool = False

    def text(self, entry: Entry) -> str:
        """The cell as a table prints it; empty where there is nothing."""
        value = self.read(entry)
        if isinstance(value, Interval):
            return within(value, self.digits, self.sign, n=self.n)
        return value if isinstance(value, str) else number(value, self.digits)

    def printed(self, **how: Any) -> Column:
        """The same, printed otherwise, as digits=2 or n=False."""
        return replace(self, **how)


# ------------------------------------------------------------- which row it is


def key(name: str) -> Column:
    """A key of the cell, as "dataset" or "k", in words."""

    def read(entry: Entry) -> str:
        value = entry.keys.get(name)
        return "" if value is None else word(value) if isinstance(value, str) else str(value)

    return Column(read, measured=False, unit=name)


def group() -> Column:
    """The group of questions (`grouped`)."""
    return Column(lambda entry: entry.group, measured=False)


def label() -> Column:
    """The method, in words."""
    return Column(lambda entry: entry.method, measured=False)


def setting(name: str) -> Column:
    """A setting of the method, or a property of its settings, as "timing" or "top_n"."""

    def read(entry: Entry) -> str:
        value = getattr(entry.cell.condition.configured, name)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return " × ".join(value) if isinstance(value, tuple) else word(str(value))

    return Column(read, unit=name)


def compared(over: Mapping[str, Any] | None = None) -> Column:
    """The method and what it is compared with, as "CFS against QDC"."""

    def read(entry: Entry) -> str:
        base = entry.baseline(over)
        if base is None:
            return entry.method
        return f"{entry.method} against {entry.exhibit.methods[base.keys['method']].label}"

    return Column(read, measured=False)


# --------------------------------------------------------------- what it reads


def level(metric: str, where: Keep = everything) -> Column:
    """The metric's mean with its 95 % interval and n."""

    def read(entry: Entry) -> Interval | None:
        scores = entry.results.scores(entry.cell, metric, where)
        return scores and resampled(scores, metric).interval()

    return Column(read, n=True, unit=metric)


def gain(metric: str, where: Keep = everything, over: Mapping[str, Any] | None = None) -> Column:
    """The paired difference to the baseline on the questions that both have, 95 %."""

    def read(entry: Entry) -> Interval | None:
        drawn = entry.results.gain(entry.cell, entry.baseline(over), metric, where)
        return drawn and drawn.interval()

    return Column(read, n=True, sign="+", unit=metric)


def percent(metric: str, over: Mapping[str, Any] | None = None) -> Column:
    """The mean in percent of the baseline's, paired, 95 %."""

    def read(entry: Entry) -> Interval | None:
        drawn = entry.results.percent(entry.cell, entry.baseline(over), metric)
        return drawn and drawn.interval()

    return Column(read, unit=f"{metric}, % of the baseline's")


def change(metric: str) -> Column:
    """What is lost (+) or added (-) against the baseline, in percent of the baseline's."""

    def read(entry: Entry) -> Interval | None:
        found = percent(metric).read(entry)
        return found and found.flipped().shifted(100)

    return Column(read, n=True, unit=f"{metric}, % lost")


def beyond(
    metric: str, first: Mapping[str, Any], second: Mapping[str, Any], neither: Mapping[str, Any]
) -> Column:
    """What an entry with two parts gains beyond the sum of each alone, paired, 95 %.

    (entry - first) - (second - neither); each names its row by other keys, as {"method": "plus"}.
    """

    def read(entry: Entry) -> Interval | None:
        cells = entry.cell, *map(entry.baseline, (first, second, neither))
        sides = tuple(cell and entry.results.scores(cell, metric) for cell in cells)
        drawn = None if None in sides else paired([sides], metric)
        return drawn and drawn.interval()

    return Column(read, n=True, sign="+", unit=metric)


def mean(metric: str, scale: float = 1) -> Column:
    """The metric's mean alone, times `scale`, where an interval would say nothing more."""

    def read(entry: Entry) -> float | None:
        scores = entry.results.scores(entry.cell, metric)
        return None if scores is None else scale * float(scores.values.mean())

    return Column(read, unit=metric)


def part(reckon: Callable[[Sequence[Mapping]], Mapping], *names: str, unit: str = "") -> Column:
    """What `reckon` finds in a cell's records at the place that an expanded entry's keys name.

    reckon: recorded answers -> values by place, a tuple of the keys `names`.
    """
    known: dict[str, Mapping] = {}

    def read(entry: Entry) -> float | None:
        cell = replace(entry.cell, keys={k: v for k, v in entry.keys.items() if k not in names})
        if (at := cell.condition.hash) not in known:
            known[at] = reckon(entry.results.lines(cell) or ())
        return known[at].get(tuple(entry.keys[name] for name in names))

    return Column(read, unit=unit)


def trainings(metric: str) -> Column:
    """The mean of each training, where there are several, and how far they lie apart."""

    def read(entry: Entry) -> str:
        scores = entry.results.scores(entry.cell, metric)
        each = [float(values.mean()) for values in scores.by_training.values()] if scores else []
        if len(each) < 2:
            return ""
        listed = ", ".join(number(value, 1) for value in each)
        return f"{listed}: {number(max(each) - min(each), 1)} apart"

    return Column(read, measured=False)


def share(fits: Keep, where: Keep = everything) -> Column:
    """In how many percent of the recorded answers something is so, with its 95 % interval."""

    def read(entry: Entry) -> Interval | None:
        lines = entry.results.lines(entry.cell) or ()
        kept = [line for line in lines if "error" not in line and where(line)]
        if not kept:
            return None
        clusters = [line["cluster"] for line in kept]
        return percent_interval(
            [fits(line) for line in kept], rng=new_generator(), clusters=clusters
        )

    return Column(read, unit="%")


def pair_score(
    statistic: Callable[[Judgements, np.random.Generator], Interval],
    against: Sequence[int] = BOTH,
    scale: float = 100,
) -> Column:
    """A statistic of all pairs that a classifier judged, times `scale`, with its 95 % interval.

    statistic: of `evaluation.calibration`, as `auc`. against: which negatives count.
    """

    def read(entry: Entry) -> Interval | None:
        pairs = judgements(entry.results.lines(entry.cell) or (), against)
        return pairs and statistic(pairs, new_generator()).cut(0, 1).scaled(scale)

    return Column(read, unit="%")


def paper(metric: str) -> Column:
    """What the paper prints for this cell, as printed."""

    def read(entry: Entry) -> str:
        return printed_of(entry.paper, entry.exhibit, entry.cell, metric) or ""

    return Column(read, measured=False)


def paper_gain(metric: str, over: Mapping[str, Any] | None = None) -> Column:
    """What the paper prints for this cell less what it prints for the baseline."""

    def read(entry: Entry) -> float | None:
        cells = entry.cell, entry.baseline(over)
        values = [c and printed_of(entry.paper, entry.exhibit, c, metric) for c in cells]
        if not all(values):
            return None
        more, less = map(float, values)
        return more - less

    return Column(read, measured=False, sign="+", unit=metric)


# ------------------------------------------------------------------- the table


def table(
    shown: Sequence[Entry],
    columns: Mapping[str, Column],
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line an entry; those that are not run below it, or in its place how to run them."""
    body, bare = [], []
    for entry in shown:
        cells = {head: column.text(entry) for head, column in columns.items()}
        if any(cells[head] for head, column in columns.items() if column.measured):
            body.append([*cells.values()])
        elif not entry.results.lines(entry.cell):
            where = [cells[head] for head, column in columns.items() if not column.measured]
            bare.append([*where, NOT_RUN, *[""] * (len(columns) - len(where) - 1)])
    if not body:
        return how_to_run(shown, caption)
    head = [*columns]
    return Table(head, [*body, *bare], caption, name, Download.from_rows(name, head, body))


def how_to_run(shown: Sequence[Entry], caption: str) -> Note:
    """In place of a table or figure of which nothing is recorded."""
    return missing.note([e.cell for e in shown], shown[0].results if shown else None, caption)
