"""What a chapter works with: its paper's exhibits on the ground its parameters ask for.

With default parameters a chapter shows the committed records, and asks a
sample of their questions again. With others it runs what was asked, into
results/local, and shows that.
"""

from __future__ import annotations

import inspect
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rag_repro.data import ENVIRONMENT, is_made_here
from rag_repro.data.titles import word
from rag_repro.plain import shortened
from rag_repro.show import exhibit_rows, ledger, missing, readers
from rag_repro.show.escape import as_code, as_myst, listing
from rag_repro.show.exhibit_rows import Row
from rag_repro.show.picture import Note
from rag_repro.show.table import Table
from rag_repro.study import again, campaign, judge, papers, records, standing, timed_runs
from rag_repro.study.conditions import ROLES, Condition
from rag_repro.study.papers import Cell, Exhibit, Paper, StudyError
from rag_repro.study.retarget import only, retarget
from rag_repro.study.scores import Results
from rag_repro.study.services import Workshop

SETTINGS = ("threshold", "k", "top_n", "queries", "tau")
"""Settings that a chapter may declare as parameters: a value takes the place of those that its
exhibits have, None leaves them."""
MOVING = frozenset({"dataset", "retriever", "reader", *SETTINGS})
"""Parameters that move the conditions themselves; the others say how and what to show. Not
n_questions: of fewer questions the committed records tell as well."""


class Chapter:
    """One chapter's view of its paper, and its parameters as attributes.

    run: the parameters (`publish.chapter`); one that is called `methods` picks rows. exhibits: the
    keys of those that it shows. elsewhere: those of them that are run where a parameter moves the
    conditions; none: all. folded: tiers that show nothing, but how to run them, until they have a
    record.
    """

    stopped = ""  # what an error kept from being run here

    def __init__(
        self,
        paper: str,
        run: Any,
        root: Path,
        *,
        exhibits: Sequence[str],
        elsewhere: Sequence[str] = (),
        folded: Sequence[str] = (),
    ):
        self.run, self.folded = run, tuple(folded)
        self.moved = tuple(name for name in run.changed if name in MOVING)
        self.shown = tuple(elsewhere if self.moved and elsewhere else exhibits)
        self.paper = papers.load(paper)
        if methods := getattr(run, "methods", ()):
            self.paper = only(self.paper, self.shown, methods)
        self.workshop = Workshop(device=run.device, batch_size=run.batch_size)
        self.folder = root / "results" / "records"
        if self.moved or run.n_questions:
            self.paper = self._moved()
        if self.moved:
            self.folder = root / "results" / "local" / "records"
            self._run_missing()
        self.results = Results(self.folder)
        self._rows: dict[tuple[str, str | None], list[Row]] = {}
        self._judged: dict[str, dict[str, judge.Judged]] = {}

    def __getattr__(self, name: str) -> Any:
        if name == "run":  # not there yet
            raise AttributeError(name)
        return getattr(self.run, name)

    def _repr_html_(self) -> str:
        return self.run._repr_html_()

    def __repr__(self) -> str:
        return repr(self.run)

    def _moved(self) -> Paper:
        run = self.run
        settings = {name: getattr(run, name, None) for name in SETTINGS}
        return retarget(
            self.paper,
            datasets=[run.dataset] if "dataset" in self.moved else (),
            retriever=run.retriever if "retriever" in self.moved else None,
            reader=run.reader if "reader" in self.moved else None,
            n=run.n_questions,
            settings={name: (value,) for name, value in settings.items() if value is not None},
        )

    def _run_missing(self) -> None:
        """What was asked for and is not recorded yet.

        Data that was asked for by name and is missing stops it with its reason;
        data sets of the exhibit itself that are missing are left out, and so is what
        must be trained first: its rows say how. Conditions that an error stopped, as
        those that need gold passages where none are named, are told in `source_note`,
        unless there is nothing else to show.
        """
        cells = self._shown
        if "dataset" not in self.moved:
            cells = [cell for cell in cells if at_hand(cell)]
        cells = campaign.once([cell for cell in cells if not missing.untrained(cell)])
        timed = [cell for cell in cells if cell.timed]
        if timed:
            timed_runs.run(timed, self.workshop, self.folder, n=self.run.n_questions, renew=True)
        cells = [cell for cell in cells if not cell.timed]
        for cell in cells:
            fingerprint = self.workshop.fingerprint(cell.condition)
            records.set_aside(self.folder, cell.condition, fingerprint)
        try:
            campaign.run(
                cells,
                self.workshop,
                self.folder,
                n=self.run.n_questions,
                batch_size=self.run.batch_size,
            )
        except StudyError as error:
            if not any(map(Results(self.folder).lines, cells)):
                raise
            self.stopped = f" {as_myst(shortened(error, 400))}."

    def _cells(self, exhibit: Exhibit) -> list[Cell]:
        return exhibit.cells(None if self.run.tier == "all" else self.run.tier)

    def tiers(self) -> list[str]:
        """Those that the chapter shows: each with a condition of its exhibits."""
        seen = {cell.tier for cell in self._shown} - set(self.unrun)
        return sorted(seen, key=lambda tier: ("public", "testbed", "paper").index(tier))

    @cached_property
    def unrun(self) -> dict[str, list[Cell]]:
        """The cells of the folded tiers of which none has a record, by tier."""
        folded = [cell for cell in self._shown if cell.tier in self.folded]
        told = {cell.tier for cell in folded if self.results.lines(cell)}
        return {
            tier: [cell for cell in folded if cell.tier == tier]
            for tier in self.folded
            if tier not in told
        }

    @property
    def unrun_note(self) -> Note | None:
        """How to run what is folded away; None: nothing is."""
        cells = [cell for held in self.unrun.values() for cell in held]
        return missing.of_cells(cells).note if cells else None

    @property
    def _shown(self) -> list[Cell]:
        return [c for key in self.shown for c in self._cells(self.paper.exhibits[key])]

    # ------------------------------------------------------------------- tables

    def rows(self, key: str, tier: str | None = None, **wanted: Any) -> list[Row]:
        """Rows of an exhibit; `wanted` picks by key (k=3, own_candidates=False) or role, metric.

        What was trained several times is one row, the mean over its trainings.
        A printed value that waits for its method has no setting of ours, and is
        kept whatever settings are wanted.
        """
        if (key, tier) not in self._rows:  # parts of an exhibit share its intervals
            exhibit = self.paper.exhibit(key)
            # What is folded away stands beside no printed value, which is shown all the same.
            grids = tuple(grid for grid in exhibit.grids if grid.tier not in self.unrun)
            exhibit = replace(exhibit, grids=grids)
            self._rows[key, tier] = exhibit_rows.recipe_rows(
                self.paper, exhibit, self.results, tier
            )
        shown = self.tiers()
        return [
            row
            for row in self._rows[key, tier]
            if row.tier in shown
            and all(_fits(row, k, v if isinstance(v, list) else [v]) for k, v in wanted.items())
        ]

    def table(self, key: str, rows: Sequence[Row], name: str = "") -> Table:
        """The reader's table of these rows; name: by which `{numref}` finds it."""
        exhibit = self.paper.exhibit(key)
        weak = readers.weak(self.paper, exhibit, rows, self.results)
        return exhibit_rows.exhibit_table(exhibit, rows, name, weak)

    def tables(self, key: str, rows: Sequence[Row], name: str) -> list[Table | Note]:
        """A table of the lines that have a number, and one note on how to run the others."""
        lines = exhibit_rows.lines_of(rows).values()
        told = [row for line in lines if any(map(_has_number, line)) for row in line]
        rest = [row for line in lines if not any(map(_has_number, line)) for row in line]
        pages: list[Table | Note] = [self.table(key, told, name)] if told else []
        return [*pages, self._how_to_run(key, rest)] if rest or not told else pages

    def whole_table(self, key: str, rows: Sequence[Row], name: str) -> Table | Note:
        """One table of all, what is not run among them; without any number how to run it."""
        numbers = any(map(_has_number, rows))
        return self.table(key, rows, name) if numbers else self._how_to_run(key, rows)

    def _how_to_run(self, key: str, rows: Sequence[Row]) -> Note:
        return missing.note_of_rows(rows, "time" if self.paper.exhibit(key).timed else "run")

    def claims(self, ids: Sequence[str]) -> Table:
        """What the records say of these claims, one line a claim and tier."""
        return ledger.verdicts(self.paper, self._judgements(ids))

    def asides(self, ids: Sequence[str]) -> Table | Note:
        """The claims' secondary contrasts that have records, which decide nothing; but without a
        control no claim holds.

        Intervals of all but controls are widened for their number in an exhibit (Holm). Behind
        them the contrasts that decide, over questions that can be guessed, and what guessing gets
        right of these.
        """
        caption = "Secondary contrasts, which decide no claim; but without a control none holds"
        none = "No secondary contrast of these claims has records."
        aside, held, lines = ledger.guessable(self.paper, ids), self._judgements(ids), []
        for tier in self.tiers():
            judged = judge.judge(aside, tier, self.results, cut=bool(self.run.n_questions))
            if any(part.interval for one in judged for part in one.parts):
                held, lines = held + judged, lines + ledger.guesses(self.results, tier)
        found = ledger.contrasts(held, ("secondary",), caption, "tab-asides", lines)
        return found or Note(none)

    def contrasts(
        self, ids: Sequence[str], caption: str, name: str = "", roles: Sequence[str] = ROLES
    ) -> Table | Note:
        """All contrasts of these claims and roles that have records, side by side."""
        none = "No contrast of these claims has records."
        return ledger.contrasts(self._judgements(ids), roles, caption, name) or Note(none)

    def changed(self, ids: Sequence[str]) -> Table | Note:
        """Which of these claims are tested otherwise than at first, after records were seen."""
        none = "No test of these claims was changed after records had been seen."
        return ledger.changed(self.paper, ids, "tab-changed") or Note(none)

    def _judgements(self, ids: Sequence[str]) -> list[judge.Judged]:
        by_tier = [self._verdicts(tier, ids) for tier in self.tiers()]
        return [judged for of_claim in zip(*by_tier, strict=True) for judged in of_claim]

    def _verdicts(self, tier: str, ids: Sequence[str]) -> list[judge.Judged]:
        if tier not in self._judged:
            cut = bool(self.run.n_questions)
            judged = standing.judged(self.paper, tier, self.results, cut=cut)
            self._judged[tier] = {one.claim.id: one for one in judged}
        return [self._judged[tier][self.paper.claim(name).id] for name in ids]

    def statements(self, ids: Sequence[str]) -> Table:
        """What the paper claims, and whether its own printed numbers bear it out."""
        return ledger.statements(self.paper, ids)

    def cell(self, key: str, **wanted: Any) -> Cell:
        """The first cell with these keys; on the testbed where there is one.

        Pages that are published show texts of the testbed only.
        """
        cells = [c for c in self.paper.exhibit(key).cells() if c.matches(wanted)]
        if not cells:
            raise StudyError(f"{self.paper.name}.{key} has no cell with {wanted}")
        return min(cells, key=lambda c: c.tier != "testbed")

    def condition(self, key: str, **wanted: Any) -> Condition:
        """The condition of `cell`."""
        return self.cell(key, **wanted).condition

    def live(self, key: str) -> Table | Note:
        """Recorded questions asked again now: how many answers are the same.

        Up to `run.live_calls` questions of the exhibit's primary conditions (where it has
        none, of all) whose data is at hand.
        """
        shown = self._cells(self.paper.exhibit(key))
        cells = [c for c in shown if c.role == "primary"] or shown
        cells = [c for c in cells if at_hand(c)]
        return ask_again(cells, self.results, self.workshop, self.run.live_calls, self.run.seed)

    @cached_property
    def source_note(self) -> Note:
        """One sentence on where the numbers of this page come from."""
        if self.moved:
            changed = ", ".join(
                as_code(f"{name} = {getattr(self.run, name)!r}") for name in self.moved
            )
            first = f"Run for this page, with {changed}, but for what is committed already."
            return Note(first + self.stopped)
        answers = sum(len(self.results.lines(c) or ()) for c in campaign.once(self._shown))
        first = (
            f", the first {self.run.n_questions} of each data set" if self.run.n_questions else ""
        )
        return Note(f"Shown are committed records: {answers:,} answers{first}.")


def _has_number(row: Row) -> bool:
    return row.ours is not None or row.paper is not None


def _fits(row: Row, key: str, wanted: Sequence[Any]) -> bool:
    if key in ("role", "metric"):
        return getattr(row, key) in wanted
    waits = row.ours is None and row.paper is not None and key not in row.keys
    return waits or row.keys.get(key) in wanted


def at_hand(cell: Cell) -> bool:
    """Whether its data is here.

    Worlds are made anywhere, folders are where they are; real data must be named.
    """
    return is_made_here(cell.condition.dataset) or bool(os.environ.get(ENVIRONMENT))


# ------------------------------------------------------------------ asked again now


def ask_again(
    cells: Sequence[Cell], results: Results, workshop: Workshop, calls: int, seed: int
) -> Table | Note:
    """How many answers of up to `calls` questions, drawn in turn from all conditions, are the same.

    A sentence, with a table of the conditions whose answers are not all the same, if any.
    Asked are those with a record that lack nothing (`Workshop.lacks`): training, or encoding a
    corpus anew, would take minutes, and `rag-repro run` does that.
    """
    cells = [cell for cell in cells if results.lines(cell)]
    lacks = [workshop.lacks(cell.condition) if calls else None for cell in cells]
    cells = [cell for cell, lacking in zip(cells, lacks, strict=True) if lacking is None]
    lines = [{line["id"]: line for line in results.lines(cell)} for cell in cells]
    rng = np.random.default_rng(seed)
    drawn = ([(i, str(q)) for q in rng.permutation([*held])] for i, held in enumerate(lines))
    chosen: dict[int, list[str]] = defaultdict(list)
    for place, question in again.spread(drawn, calls):
        chosen[place].append(question)
    # Cells of one exhibit may have keys that others lack, as the seed of a training.
    keys = list(dict.fromkeys(key for place in chosen for key in cells[place].keys))
    held = [again.Recorded(cells[i].condition, lines[i], asked) for i, asked in chosen.items()]
    found = list(zip(chosen, again.live_check(held, workshop), strict=True))
    if not found:
        return Note(f"No recorded question was asked again here{_left_out(lacks)}.")
    asked = sum(len(same) for _, same in found)
    alike = sum(sum(same.values()) for _, same in found)
    caption = f"{alike} of {asked} recorded answers came out the same on this machine, just now"
    caption += _left_out(lacks)
    if alike == asked:
        return Note(f"{caption}.")
    body = [
        [*(_key_in_words(cells[place], key) for key in keys), len(same), sum(same.values())]
        for place, same in found
        if not all(same.values())
    ]
    return Table([*keys, "asked again", "the same"], body, caption)


def _left_out(lacks: Iterable[str | None]) -> str:
    """How many conditions lack something, and what; nothing where none does."""
    wanting = Counter(filter(None, lacks))
    if not wanting:
        return ""
    left = f"{wanting.total()} condition{'s' if wanting.total() > 1 else ''}"
    only = len(wanting) == 1
    why = ", ".join(what if only else f"{what} ({n})" for what, n in wanting.items())
    return f"; {left} left out, for want of {why}"


def _key_in_words(cell: Cell, key: str) -> str:
    value = cell.keys.get(key, "")
    if key == "method":
        _, exhibit = papers.exhibit(cell.exhibit)
        return exhibit.methods[value].label
    return word(str(value))


class Listing:
    """A function's source as the book shows it: taken from the package, never copied.

    The names below it lead, in the book, to the reference.
    """

    def __init__(self, *functions: Callable | type):
        self.code = "\n\n".join(inspect.getsource(function) for function in functions)
        self.names = [f"{function.__module__}.{function.__qualname__}" for function in functions]

    def _repr_markdown_(self) -> str:
        return f"{listing(self.code, 'python')}\n\n{', '.join(map(as_code, self.names))}"

    def __repr__(self) -> str:
        return self.code
