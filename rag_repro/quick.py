"""The package as a library, in one call each: `rag_repro.ask` and `rag_repro.compare`.

Both stand on what the book itself uses (methods, engine, workshop, records),
and are short enough to be read as examples of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from . import data, engine
from .data.dataset import Corpus, Dataset
from .evaluation import metrics as known_metrics
from .evaluation.statistics import Interval
from .methods import base
from .methods.dragin.alarms import watched
from .report import exhibits, steps, tables
from .report.steps import Step
from .report.table import Table
from .schema import Answer, Question
from .study import campaign, records
from .study.papers import Cell, Exhibit, ExhibitMethod, Grid, Paper
from .study.scores import Results
from .study.services import Workshop
from .words import printable

log = logging.getLogger(__name__)

READER = "smollm2-135m"
PROMPT = "chat"  # plain words: any reader that was taught to chat can follow them


class AskError(ValueError):
    """A question that its method could not answer; the message says why."""


@cache
def workshop() -> Workshop:
    """The one that is used where none is given: indexes and weights are loaded once a process."""
    return Workshop()


# ------------------------------------------------------------------ one question


@dataclass(frozen=True, repr=False)
class Asked:
    """An answer with the steps that led to it. Prints, and shows on a page, as its trace."""

    question: Question
    answer: Answer
    steps: tuple[Step, ...]

    @property
    def prediction(self) -> str | None:
        """The answer in short; None where the reader did not keep to the asked form."""
        return self.answer.prediction

    def __repr__(self) -> str:
        return steps.text(self.steps, self.question, self.answer)

    def __str__(self) -> str:
        return printable(repr(self))

    def _repr_html_(self) -> str:
        return steps.table(self.steps, self.question, self.answer)._repr_html_()


def ask(
    question: str | Question,
    corpus: str | Path | Corpus | Dataset,
    *,
    method: str = "single_step",
    retriever: str | None = "bm25",
    reader: str | None = READER,
    services: Workshop | None = None,
    **settings: Any,
) -> Asked:
    """Answer one question over some passages, and keep every step.

    corpus: a folder of texts (a Path, or "folder:PATH"; see `data.own`), a name
    that `data.load` knows, or passages in memory. method, retriever, reader:
    names, as in the book's conditions; without a reader only passages are
    found. settings: the method's, as k=4. services: a workshop of one's own,
    for another device or dtype.

    Raises ValueError for an unknown name or setting, AskError where the method fails.
    """
    spec = base.get(method)
    configured = spec.configure({"prompt": PROMPT if reader else None, **settings})
    asked = question if isinstance(question, Question) else Question("q", question.strip(), ())
    if not asked.text:
        raise AskError("the question is empty")
    made, passages = services or workshop(), _corpus(corpus)
    if "reservoir" in configured.needs.values():
        raise AskError(f"{method} remembers earlier questions, and this is one: use `compare`")
    serving = {name: made.of(kind, name, passages) for name, kind in configured.needs.items()}
    if retriever is not None:
        serving["retriever"] = made.retriever(retriever, passages)
    if reader is not None:
        serving["reader"] = made.reader(reader)
    heard: list[Step] = []
    task = engine.Task(asked, steps.listen(spec.run, heard), configured)
    [(_, answer)] = engine.run([task], serving, batch_size=1)
    if answer.error is not None:
        raise AskError(f"{method} could not answer {asked.text!r}: {answer.error}")
    if (alarms := watched(configured)) is not None:
        alarms.add(answer)
        if remark := alarms.remark():
            log.warning("%s: %s", method, remark)
    return Asked(asked, answer, tuple(heard))


def _corpus(given: str | Path | Corpus | Dataset) -> Corpus:
    if isinstance(given, Corpus):
        return given
    if isinstance(given, Dataset):
        return given.corpus
    folder = given if isinstance(given, Path) else None
    if isinstance(given, str) and given.startswith(data.FOLDER):
        folder = Path(given.removeprefix(data.FOLDER))
    if folder is None:
        return data.load(str(given)).corpus
    from .data import own

    return own.corpus(folder)


# ------------------------------------------------------------------ many questions


@dataclass(frozen=True, repr=False)
class Comparison:
    """Methods on the same questions, from records; the first one is the baseline.

    rows: one a method and metric, with intervals and the paired difference.
    """

    dataset: Dataset
    cells: Mapping[str, Cell]
    rows: tuple[exhibits.Row, ...]
    results: Results

    def lines(self, method: str) -> tuple[Mapping[str, Any], ...]:
        """The method's records, one a question."""
        return self.results.lines(self.cells[method]) or ()

    def difference(self, method: str, metric: str) -> Interval | None:
        """The method minus the baseline, paired by question; None where nothing can be paired."""
        return next(r.diff for r in self.rows if _at(r, method, metric))

    @property
    def table(self) -> Table:
        """A line a method: each metric with its interval, and the difference to the first."""
        metrics = list(dict.fromkeys(row.metric for row in self.rows))
        head = ["method"]
        for metric in metrics:
            head += [f"{metric} [95 %], n", "difference to the first"]
        body = []
        for method in self.cells:
            cells = [method]
            for metric in metrics:
                row = next(r for r in self.rows if _at(r, method, metric))
                cells += [tables.ours(row), tables.gain(row)]
            body.append(cells)
        told = f"{self.dataset.name}; shares in percent"
        if any(row.note == exhibits.UNMEASURED for row in self.rows):
            told += "; –: no question names what this is measured by"
        return Table(head, body, told)

    def answers(self) -> Table:
        """A line a question: its accepted answers, and what each method said."""
        said = {m: {line["id"]: line for line in self.lines(m)} for m in self.cells}
        body = [
            [q.text, " | ".join(q.answers), *(_said(said[m].get(q.id)) for m in self.cells)]
            for q in self.dataset.questions
        ]
        return Table(["question", "accepted", *self.cells], body)

    def __repr__(self) -> str:
        return repr(self.table)

    def __str__(self) -> str:
        return printable(repr(self))

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def compare(
    methods: Sequence[str],
    dataset: str,
    results: Path | str,
    *,
    retriever: str | None = "bm25",
    reader: str | None = READER,
    n: int | None = None,
    metrics: Sequence[str] = ("recall", "acc", "f1"),
    services: Workshop | None = None,
    batch_size: int = 16,
    **settings: Any,
) -> Comparison:
    """Ask all methods the first n test questions, with the same settings, and compare.

    dataset: a name that `data.load` knows, as "folder:PATH". results: the folder
    of records; what is recorded there already is not asked again, and a record
    that was made with other data or weights is set aside. settings: of all the
    methods, as k=4: equal passages for each.

    Raises ValueError for an unknown name or setting.
    """
    if isinstance(methods, str):
        raise ValueError(f"methods {methods!r}: give a list, as [{methods!r}]")
    if not methods or len(set(methods)) < len(methods):
        raise ValueError(f"methods {list(methods)}: name at least one, and none twice")
    results = Path(results)
    for metric in metrics:
        known_metrics.get(metric)
    made = services or workshop()
    given = {"prompt": PROMPT if reader else None, **settings}
    shown = {
        name: ExhibitMethod(name, run=name, retriever=retriever, settings=given, baseline=first)
        for name, first in zip(methods, [None, *[methods[0]] * (len(methods) - 1)], strict=True)
    }
    grid = Grid("public", (dataset,), tuple(shown), reader=reader, n=n)
    exhibit = Exhibit("own.compare", "Compared", "", tuple(metrics), shown, (grid,))
    paper = Paper("own", "", "", "", Path(), {"compare": exhibit}, ())
    cells = exhibit.cells()
    for cell in cells:
        records.set_aside(results, cell.condition, made.fingerprint(cell.condition))
    campaign.run(cells, made, results, n=n, batch_size=batch_size)
    kept = Results(results)
    return Comparison(
        made.dataset(dataset, "test").first(n),
        {cell.keys["method"]: cell for cell in cells},
        tuple(exhibits.rows(paper, exhibit, kept)),
        kept,
    )


def _at(row: exhibits.Row, method: str, metric: str) -> bool:
    return row.keys["method"] == method and row.metric == metric


def _said(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return "not asked"
    return line.get("error") or line.get("prediction") or "(none)"
