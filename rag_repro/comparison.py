"""Methods on the same questions, each with its settings: `rag_repro.compare`."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_repro.evaluation import metrics as known_metrics
from rag_repro.evaluation.intervals import Interval
from rag_repro.methods import systems
from rag_repro.plain import fits, hints, shortened
from rag_repro.quick import workshop
from rag_repro.schema.dataset import Dataset
from rag_repro.show import exhibit_rows
from rag_repro.show.columns import Entry, level, mean
from rag_repro.show.figures import frontier
from rag_repro.show.picture import Note, Picture
from rag_repro.show.table import Table
from rag_repro.study import campaign, records
from rag_repro.study.exhibits import Exhibit, ExhibitMethod, Grid
from rag_repro.study.papers import Cell, Paper
from rag_repro.study.scores import Results
from rag_repro.study.services import Workshop
from rag_repro.study.setups import READER, RETRIEVER, CannotServe, Setup, setup
from rag_repro.words import printable

if TYPE_CHECKING:
    import pandas

log = logging.getLogger(__name__)

FOLDER = "rag-repro-results"
COSTS = ("retrievals", "reader_calls", "prompt_tokens", "new_tokens")


@dataclass(frozen=True, repr=False)
class Comparison:
    """Methods on the same questions, from records; the first one is the baseline.

    entries: each method's condition. rows: one per method and metric, with intervals and the paired
    difference. failures: row -> why it did not run, or not to its end.
    """

    dataset: Dataset
    entries: tuple[Entry, ...]
    rows: tuple[exhibit_rows.Row, ...]
    results: Results
    metrics: tuple[str, ...]
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def cells(self) -> Mapping[str, Cell]:
        """Row -> its condition."""
        return {entry.method: entry.cell for entry in self.entries}

    def lines(self, method: str) -> tuple[Mapping[str, Any], ...]:
        """The row's records, one per question; none where it did not run."""
        return (self.results.lines(self.cells[method]) or ()) if method in self.cells else ()

    def difference(self, method: str, metric: str) -> Interval | None:
        """The row minus the first one, paired by question; None where nothing can be paired."""
        return next((r.diff for r in self.rows if _at(r, method, metric)), None)

    @property
    def methods(self) -> tuple[str, ...]:
        """The rows' names, those that did not run at the end."""
        return (*self.cells, *(name for name in self.failures if name not in self.cells))

    @property
    def table(self) -> Table:
        """A line per method: each metric with its interval and the difference to the first, then
        the mean costs of a question. A method that did not run says why.
        """
        head = ["method"]
        for metric in self.metrics:
            head += [f"{metric} [95 %], n", "difference to the first"]
        head += [known_metrics.get(cost).symbol for cost in COSTS]
        body = []
        for method in self.methods:
            cells = [method]
            for metric in self.metrics:
                row = next((r for r in self.rows if _at(r, method, metric)), None)
                cells += [exhibit_rows.ours(row), exhibit_rows.gain(row)] if row else ["", ""]
            if not self.lines(method):
                cells[1] = f"not run: {self.failures.get(method, 'there is no question')}"
            body.append([*cells, *(self._cost(method, cost) for cost in COSTS)])
        told = [f"{self.dataset.name}; shares in percent, costs per question"]
        if any(row.note == exhibit_rows.UNMEASURED for row in self.rows):
            told.append("–: no question names what this is measured by")
        told += [
            f"{name} did not run to its end: {why}"
            for name, why in self.failures.items()
            if self.lines(name)
        ]
        told += self._failed()
        told += self._differing()
        return Table(head, body, "; ".join(told))

    def _cost(self, method: str, cost: str) -> str:
        scores = self.results.scores(self.cells[method], cost) if method in self.cells else None
        return "" if scores is None else f"{scores.values.mean():.1f}"

    def _failed(self) -> Iterator[str]:
        for method in self.cells:
            lines = self.lines(method)
            if failed := sum("error" in line for line in lines):
                yield (
                    f"{failed} of {len(lines)} questions of {method} failed and count as wrong; "
                    "failed=True asks them again, and to_frame() says why"
                )

    def _differing(self) -> Iterator[str]:
        """What is not the same in all rows and no difference of the methods."""
        conditions = {name: cell.condition for name, cell in self.cells.items()}
        for word, of in {
            "retriever": lambda c: c.retriever,
            "reader": lambda c: c.reader,
            "prompt": lambda c: c.configured.prompt,
            "k": lambda c: c.configured.k,
        }.items():
            values = {name: of(c) for name, c in conditions.items() if of(c) is not None}
            rows = {v: [name for name in values if values[name] == v] for v in values.values()}
            if len(rows) > 1:
                each = "; ".join(f"{value} of {', '.join(names)}" for value, names in rows.items())
                yield f"rows differ in {word} ({each})"

    def answers(self) -> Table:
        """A line per question: its accepted answers, and what each method said."""
        said = {m: {line["id"]: line for line in self.lines(m)} for m in self.cells}
        body = [
            [q.text, " | ".join(q.answers), *(_said(said[m].get(q.id)) for m in self.cells)]
            for q in self.dataset.questions
        ]
        return Table(["question", "accepted", *self.cells], body)

    def to_frame(self) -> pandas.DataFrame:
        """A row per method and question: method, id, question, prediction, error, then a column
        per metric and cost (percentages in points, NaN where a question has none).
        """
        import pandas

        texts = {q.id: q.text for q in self.dataset.questions}
        frames = []
        for method, cell in self.cells.items():
            rows = [
                (
                    method,
                    line["id"],
                    texts.get(line["id"]),
                    line.get("prediction"),
                    line.get("error"),
                )
                for line in self.lines(method)
            ]
            columns = ["method", "id", "question", "prediction", "error"]
            frame = pandas.DataFrame(rows, columns=columns)
            for name in (*self.metrics, *COSTS):
                scores = self.results.scores(cell, name)
                frame[name] = frame["id"].map(scores.by_id() if scores else {}).astype(float)
            frames.append(frame)
        return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()

    def plot(self, metric: str | None = None, cost: str = "retrievals") -> Picture | Note:
        """Quality against cost: a point per method, with the quality's 95 % interval.

        metric: one of the compared ones (the last one, if none is named). cost: any metric of
        costs, as "retrievals", "reader_calls", "new_tokens" or "prompt_tokens".
        """
        metric = metric or self.metrics[-1]
        quality, spent = level(metric), mean(cost)
        if not any(quality.read(e) and spent.read(e) is not None for e in self.entries):
            raise ValueError(f"nothing to plot: no method has {metric} and {cost}")
        return frontier(self.entries, spent, quality, caption=f"{metric} against {cost}")

    def __repr__(self) -> str:
        table = self.table
        return f"{table!r}\n\n{table.caption}"

    def __str__(self) -> str:
        return printable(repr(self))

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def compare(
    methods: Sequence[str] | Mapping[str, Mapping[str, Any] | None],
    dataset: str,
    results: Path | str = FOLDER,
    *,
    retriever: Any = RETRIEVER,
    reader: str | None = READER,
    n: int | None = None,
    split: str = "test",
    metrics: Sequence[str] = ("recall", "acc", "f1"),
    services: Workshop | None = None,
    batch_size: int = 16,
    failed: bool = False,
    **settings: Any,
) -> Comparison:
    """Ask all methods the first n questions of a data set, and compare their answers.

    methods: names (`rag-repro methods` lists them), or a mapping from each to its own settings,
        among them "retriever" and "reader". A list in place of a value is a sweep, with a row for
        each value: {"dragin": {"threshold": [0.5, 1.0]}, "bm25-rag": {}}. The first row is the
        baseline. dataset: a name that `data.load` knows, as "folder:PATH"; split: whose questions.
    results: the folder of records; what is recorded there already is not asked again, and a record
        that was made with other data or weights is set aside.
    retriever, reader: of all methods, so that only the methods differ (a retriever may be your
        own, as in `ask`); where one needs a trained reader, the one that was trained over `reader`.
    failed: questions that failed before, as at a server that was down, are asked again, too.
    settings: of all the methods, as k=4.

    A method that cannot run is a row that says why. Raises ValueError for an unknown name or
    setting, before anything runs.
    """
    if not fits(n, int | None) or (n is not None and n < 1):
        raise ValueError(f"n {n!r} is no number of questions; give one, as 100, or None for all")
    results = Path(results)
    for metric in metrics:
        known_metrics.get(metric)
    made, setups, failures = services or workshop(), {}, {}
    common = {"retriever": retriever, "reader": reader, **settings}
    for label, name, given in _rows(methods, common):
        own = {"retriever": made.named(given.pop("retriever")), "reader": given.pop("reader")}
        try:
            setups[label] = setup(name, given, **own)
        except CannotServe as error:
            failures[label] = str(error)
    exhibit = _exhibit(setups, dataset, tuple(metrics), reader, n, split)
    cells = {cell.keys["method"]: cell for cell in exhibit.cells()}
    questions = made.dataset(dataset, split).first(n)
    for label, cell in cells.items():
        try:
            records.set_aside(results, cell.condition, made.fingerprint(cell.condition))
            campaign.run([cell], made, results, n=n, batch_size=batch_size, failed=failed)
        except ValueError as error:  # of all rooms: one method's trouble is not the others'
            failures[label] = shortened(str(error), 400)
            log.error("%s: %s", label, error)
    kept = Results(results)
    paper = Paper("own", "", "", "", Path(), {"compare": exhibit}, ())
    return Comparison(
        questions,
        tuple(Entry(paper, exhibit, cell, kept) for cell in cells.values()),
        tuple(exhibit_rows.rows(paper, exhibit, kept)),
        kept,
        tuple(metrics),
        failures,
    )


def _rows(
    methods: Sequence[str] | Mapping[str, Mapping[str, Any] | None], common: Mapping[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Label, method and settings of each row; ValueError for what names none, or one twice."""
    if isinstance(methods, str):
        raise ValueError(f"methods {methods!r}: give a list, as [{methods!r}]")
    if not methods or len(set(methods)) < len(methods):
        raise ValueError(f"methods {list(methods)}: name at least one, and none twice")
    for name in methods:
        own = (methods[name] or {}) if isinstance(methods, Mapping) else {}
        if not isinstance(own, Mapping):
            raise ValueError(
                f"settings of {name!r} are {shortened(repr(own), 60)}; give names and values, as "
                f'{{"{name}": {{"k": 4}}}}'
            )
        swept = {key: value for key, value in own.items() if _is_sweep(name, key, value)}
        for values in itertools.product(*swept.values()):
            varied = dict(zip(swept, values, strict=True))
            label = ", ".join(f"{key} {value}" for key, value in varied.items())
            given = {key: tuple(v) if isinstance(v, list) else v for key, v in own.items()}
            yield f"{name} ({label})" if label else name, name, {**common, **given, **varied}


def _is_sweep(name: str, key: str, value: Any) -> bool:
    """Whether the value is several of the setting's, and not one that is a list itself."""
    if not isinstance(value, list | tuple):
        return False
    hint = {"retriever": str | None, "reader": str | None}
    hint |= hints(systems.get(name).spec.settings)
    if key not in hint or fits(value, hint[key]) or fits(tuple(value), hint[key]):
        return False
    if not value or len(set(map(repr, value))) < len(value):
        raise ValueError(f"{name}: {key} {list(value)} names no value, or one twice")
    return True


def _exhibit(
    setups: Mapping[str, Setup],
    dataset: str,
    metrics: tuple[str, ...],
    reader: str | None,
    n: int | None,
    split: str,
) -> Exhibit:
    """The rows as an exhibit, whose cells have the keys that pair them: `reader` is the common
    one, over which a row's own may have been trained."""
    first = next(iter(setups), None)
    common = reader or READER
    rows = {
        label: ExhibitMethod(
            label,
            run=made.system.method,
            retriever=made.retriever,
            settings=made.settings,
            baseline=None if label == first else first,
        )
        for label, made in setups.items()
    }
    grids = tuple(
        Grid(
            "public",
            (dataset,),
            (label,),
            reader=made.reader and common,
            trained={label: made.reader} if made.reader else {},
            n=n,
            split=split,
        )
        for label, made in setups.items()
    )
    return Exhibit("own.compare", "Compared", "", metrics, rows, grids)


def _at(row: exhibit_rows.Row, method: str, metric: str) -> bool:
    return row.keys["method"] == method and row.metric == metric


def _said(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return "not asked"
    return line.get("error") or line.get("prediction") or "(none)"
