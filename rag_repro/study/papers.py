"""One paper, one folder of plain files: what it printed, what we run, what it claims.

`papers/<name>/paper.yaml` lists the exhibits with the grid of conditions that re-tests each,
`tableN.csv` the printed values, `claims.yaml` the claims with the contrasts that decide them;
`audits` reads `audit.yaml`. An unknown key anywhere is refused.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from rag_repro.arguments import path as as_path
from rag_repro.evaluation.metrics import METRICS
from rag_repro.plain import PlainError, text_of
from rag_repro.study import checking
from rag_repro.study.conditions import ROLES
from rag_repro.study.exhibits import Cell, Exhibit, Grid
from rag_repro.study.printed import Compared, Gain
from rag_repro.study.yaml_files import StudyError, build, content, listed, table
from rag_repro.words import choices, nearest


@dataclass(frozen=True)
class Contrast:
    """A difference between cells that decides a claim, or a part of it.

    more, less: keys that pick the two cells to be paired ("metric" among them
    where the two sides read different metrics); without `less` it is about the
    level of `more` alone. exhibit: that of the cells, where it is not the claim's own.
    where: keys that both share. kinds: only questions of these kinds, in place of the paper's own
    (`Paper.kinds`). among: only questions where other metrics of `more`, as they stand to those
    of `less`, are "higher", "lower" or the "same" (by metric), or where both sides "found"
    something, that is, where neither's is zero.
    rule: "mean" over the paired cells, "each" of them, or "some" of them. delta:
    smallest effect of interest, in the metric's unit. printed: instead of it what the paper gains,
    half of which is asked for, in proportion to what there is to win (`outcomes.delta`). margin:
    instead of delta, for a claim of no difference, or of the value `target` give or take it (with
    a delta: of a value that much below the target, or `above` it); with `no_loss` only a
    difference below -margin speaks against the claim. ratio: the level is that
    of the mean of `more` in percent of the mean of `less`, as one time of another.
    minus: two further sides, {more, less}, whose difference is subtracted: an interaction.
    both_read: `less` has a reader of its own, which must be able to read as well (`study.gate`);
    without it that the other side's reader is weak may be the claim. gated: no, where it is
    whether passages help that the claim is about, which is what the gate asks: there a reader has
    to answer something with the gold passages, and no more. premise: what has
    to be so for the others to test the claim at all; where it fails the claim is not judged.
    control: what has to be so besides for the claim to hold, since the effect would have another
    cause without it; the claim does not fail by it. shown: what decides nothing. A registered test
    records both of these.
    """

    metric: str
    more: Mapping[str, Any]
    less: Mapping[str, Any] | None = None
    exhibit: str | None = None
    delta: float | None = None
    printed: Gain | None = None
    margin: float | None = None
    target: float | None = None
    above: bool = False
    no_loss: bool = False
    ratio: bool = False
    minus: Mapping[str, Any] | None = None
    both_read: bool = False
    gated: bool = True
    premise: bool = False
    control: bool = False
    shown: bool = False
    where: Mapping[str, Any] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    among: Mapping[str, Literal["higher", "lower", "same", "found"]] = field(default_factory=dict)
    rule: Literal["mean", "each", "some"] = "mean"
    role: str = "primary"
    label: str = ""

    def __post_init__(self):
        if sum(size is not None for size in (self.delta, self.printed, self.margin)) != 1:
            raise StudyError("a contrast has either a delta or a margin, or what is printed")
        if self.printed is not None and (self.less is None or self.target is not None):
            raise StudyError("a printed gain is of one side over another, without a target")
        if (self.target is None) and (self.less is None):
            raise StudyError("a contrast has a side `less`, or a target for its level")
        if self.above and (self.target is None or self.delta is None):
            raise StudyError("above needs a target, and a delta beyond it")
        if self.no_loss and self.margin is None:
            raise StudyError("no_loss needs a margin")
        if self.ratio and (self.less is None or self.target is None):
            raise StudyError("a ratio needs a side `less`, and a target in percent of it")
        if self.minus is not None:
            if set(self.minus) != {"more", "less"} or self.less is None or self.delta is None:
                raise StudyError("minus needs `more` and `less` in it, and a `less` and a delta")
            if self.ratio or self.target is not None or self.among:
                raise StudyError("minus goes with no ratio, target or among")
        if self.both_read and self.less is None:
            raise StudyError("both_read is about a second reader; a side `less` is needed")
        if self.premise and self.role != "primary":
            raise StudyError("a premise is primary: where it fails, nothing else decides the claim")
        if (self.control or self.shown) and self.role == "primary":
            raise StudyError(
                "what is a control, or shown, is secondary: a claim does not fail by it"
            )
        if self.among and self.less is None:
            raise StudyError("among compares two sides; a side `less` is needed")
        if self.role not in ROLES:
            raise StudyError(f"role {self.role!r}{nearest(self.role, ROLES)}")


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, written so that records can refute it.

    support: whether the paper's own numbers bear it out: yes, partly, no, none. holds: of its
    primary contrasts "all" have to hold, "most" of them, or "some". registered: contrasts of its
    registered test, where those are not its own.
    no_contrast: why no record can decide it; only without contrasts. changed: each thing that
    was changed after records were seen, and why; pages say so beside the verdicts. printed: what of
    its support is computed from the paper's own tables. main: it is one of the few that the paper
    is known for, which the front page shows first.
    """

    id: str
    place: str
    claim: str
    exhibit: str | None
    paper_numbers: str
    support: str
    support_note: str
    test: str
    n_needed: str | None
    scale: str
    contrasts: tuple[Contrast, ...] = ()
    registered: tuple[Contrast, ...] = ()
    holds: Literal["all", "most", "some"] = "all"
    no_contrast: str | None = None
    changed: tuple[str, ...] = ()
    printed: tuple[Compared, ...] = ()
    main: bool = False

    def __post_init__(self):
        if not all(why.strip() for why in self.changed):
            raise StudyError("`changed` says nothing; say what was changed and why, or leave it")
        primary = [c for c in self.contrasts if c.role == "primary"]
        if primary and all(c.premise for c in primary):
            raise StudyError("premises alone decide nothing; a primary contrast is needed beside")
        if self.no_contrast and self.contrasts:
            raise StudyError("it has contrasts, so `no_contrast` cannot say why there is none")

    def exhibit_of(self, contrast: Contrast) -> str | None:
        """The full name of the exhibit whose cells one of its contrasts compares."""
        return contrast.exhibit or self.exhibit


@dataclass(frozen=True)
class Gate:
    """Where a paper's readers are tried (`study.gate`).

    exhibit: its key. given, bare: the cells with gold passages and with none,
    by the keys that tell them from others of the same data set and reader. n: of how many
    questions of the kinds that decide, or of all there are. without: data sets without gold
    passages, of which no gate is possible.
    """

    exhibit: str
    given: Mapping[str, Any]
    bare: Mapping[str, Any]
    metric: str = "acc"
    n: int = 150
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proof:
    """What something trained must be seen to do before answers with it count (`study.gate`).

    An exhibit of held-out questions with a row of what is trained and one without it is all that
    a proof needs: any part, as any row, has records, and intervals of their differences.

    setting: that names the part in a condition, as "judge"; "reader" is a condition's own. exhibit:
    the key of the one that tries it. more, less: keys of the two cells, with the part and with
    its untrained self; both empty: one cell. metrics: of which `more` must lie above `less`, each
    that its questions have; against: what is read of `less`, None: the same. level: what an
    untrained part scores, as 50 of an AUC, where no cell is needed for it. serves: data set
    of the exhibit -> data sets whose questions are like its own; {}: all are. parts: names that
    hang on it, where its cells are those of others, which show what a data set can tell; (): what
    its own cells are answered with. examples: what of a line the part judges one by one, as
    "judged", the pairs of a classifier; "": a question is one example.
    """

    setting: str
    exhibit: str
    metrics: Sequence[str]
    more: Mapping[str, Any] = field(default_factory=dict)
    less: Mapping[str, Any] = field(default_factory=dict)
    against: str | None = None
    level: float | None = None
    serves: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: Sequence[str] = ()
    examples: str = ""

    def part(self, cell: Cell) -> str | None:
        """The part that a cell is answered with."""
        condition = cell.condition
        held = condition if self.setting == "reader" else condition.configured
        name = getattr(held, self.setting, None)
        return name and name.partition("@")[0]  # a classifier's room is no other classifier


@dataclass(frozen=True)
class Ground:
    """What a registered test has in place of what its grids name: on the fresh worlds, or on a
    public data set.

    n, kinds: how many questions answers are asked of, on each world (all, where it has fewer), and
    of which kinds. timed: how many are timed, each so often (repeats). settings: row -> values
    that were chosen on other questions, as {"dragin": {"threshold": 0.1}}. proofs: beside the
    paper's.
    """

    n: int | None = None
    kinds: tuple[str, ...] = ()
    timed: int | None = None
    repeats: int = 1
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    proofs: tuple[Proof, ...] = ()

    def put(self, grid: Grid, timed: bool = False, gate: int | None = None) -> list[Grid]:
        """The grid, a row each, with these settings in place of its own; with n and kinds where a
        reader answers. gate: how many questions readers are tried on, where it tries them."""
        if timed or grid.reader:
            n = self.timed if timed else gate or self.n
            grid = replace(grid, n=n or grid.n, kinds=self.kinds or grid.kinds)
        made = []
        for row in grid.methods:
            given = self.settings.get(row, {})
            fixed = {**grid.fixed, **{k: v for k, v in given.items() if k not in grid.settings}}
            made.append(replace(grid, methods=(row,), fixed=fixed))
        return made


@dataclass(frozen=True)
class Paper:
    """A paper with its exhibits and claims.

    gate: where its readers are tried; needed by claims about answers. proofs: of what else
    is trained. legend: what short forms in its claims' numbers stand for. kinds: the kinds of
    question that the paper's data have, by our data set (a shell pattern); of one that is not
    named, all. ground: of registered tests on fresh worlds. public: data set -> of those on it;
    where there is any, public tests ask no other data set.
    """

    name: str
    title: str
    short: str
    cite: str
    folder: Path
    exhibits: Mapping[str, Exhibit]
    claims: tuple[Claim, ...]
    gate: Gate | None = None
    proofs: tuple[Proof, ...] = ()
    legend: str = ""
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ground: Ground = Ground()
    public: Mapping[str, Ground] = field(default_factory=dict)

    def exhibit(self, key: str) -> Exhibit:
        """The exhibit by its key. Raises StudyError with the nearest one."""
        if key not in self.exhibits:
            raise StudyError(f"{self.name} has no exhibit {key!r}{nearest(key, self.exhibits)}")
        return self.exhibits[key]

    def claim(self, name: str) -> Claim:
        """The claim by its id. Raises StudyError with the nearest one."""
        by = {claim.id: claim for claim in self.claims}
        if name not in by:
            raise StudyError(f"{self.name} has no claim {name!r}{nearest(name, by)}")
        return by[name]

    def printed(self, exhibit: str) -> list[dict[str, str]]:
        """The exhibit's printed values, one row a value, as the paper prints them.

        But for shares of 1, which are told in percent as our scores are, to the same digit.
        """
        name = self.exhibits[exhibit].values
        if name is None:
            return []
        made = _printed(self.folder / name)
        return [_in_percent(row) for row in made] if self.exhibits[exhibit].shares else made


def _in_percent(row: dict[str, str]) -> dict[str, str]:
    known = METRICS.get(row["metric"])
    if known is None or known.unit != "percent":
        return row
    try:
        return {**row, "value": str(Decimal(row["value"]).scaleb(2))}
    except InvalidOperation:
        raise StudyError(f"the printed value {row['value']!r} is no number") from None


def _printed(path: Path) -> list[dict[str, str]]:
    """A file of printed values: every row has a cell for each column."""
    try:
        rows = list(csv.reader(io.StringIO(text_of(path), newline=""), strict=True))
    except (PlainError, csv.Error, OSError) as error:
        raise StudyError(f"{path}: {error}; mend it, or restore it from version control") from error
    head = rows[0] if rows else []
    for name in ("metric", "value"):
        if head.count(name) != 1:
            raise StudyError(f"{path}, line 1: one column {name!r} is needed{nearest(name, head)}")
    for number, row in enumerate(rows[1:], start=2):
        if row and len(row) != len(head):
            raise StudyError(f"{path}, row {number}: {len(row)} cells for {len(head)} columns")
    return [dict(zip(head, row, strict=True)) for row in rows[1:] if row]


PAPERS = Path(__file__).parent / "papers"
ENVIRONMENT = "RAG_REPRO_PAPERS"
ORDER = ("drrag", "erm4", "dragin", "r2ag", "together", "tools")  # of the book


def names() -> list[str]:
    """The papers at hand, in the book's order; then those that RAG_REPRO_PAPERS names."""
    own = sorted(_folders())
    return sorted(own, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def _folders() -> dict[str, Path]:
    own = os.environ.get(ENVIRONMENT)
    found: dict[str, Path] = {}
    for where in [PAPERS, *([as_path(own)] if own else [])]:
        if not where.is_dir():
            raise StudyError(f"{ENVIRONMENT} names {where}, which is no folder")
        for file in where.glob("*/paper.yaml"):
            name = file.parent.name
            if name in found:
                raise StudyError(f"{file.parent}: there is a paper {name!r} already; rename yours")
            found[name] = file.parent
    return found


@lru_cache
def load(name: str) -> Paper:
    """A paper by name; everything in its files checked."""
    known = _folders()
    if name not in known:
        raise StudyError(f"there is no paper {name!r}{nearest(name, known)}")
    return read(known[name])


def exhibits(timed: bool) -> list[str]:
    """The full names of all exhibits that `rag-repro time` makes, or that `run` does."""
    held = [exhibit for name in names() for exhibit in load(name).exhibits.values()]
    return [exhibit.name for exhibit in held if exhibit.timed == timed and exhibit.grids]


def exhibit(full_name: str) -> tuple[Paper, Exhibit]:
    """An exhibit by its full name, as `drrag.table5`."""
    paper, _, key = full_name.partition(".")
    # The other papers take seconds to check: they are read only for who misspelt.
    if paper in _folders() and key in load(paper).exhibits:
        return load(paper), load(paper).exhibits[key]
    known = [f"{paper}.{key}" for paper in names() for key in load(paper).exhibits]
    raise StudyError(
        f"there is no exhibit {full_name!r}{choices(full_name, known, 'rag-repro status')}"
    )


def read(folder: Path) -> Paper:
    """A paper from its folder. Raises StudyError with file, place and what is wrong."""
    where = f"{folder.name}/claims.yaml"
    entries = enumerate(listed(content(folder / "claims.yaml"), where), start=1)
    claims = [_claim(entry, f"{where}, claim {number}") for number, entry in entries]
    where = f"{folder.name}/paper.yaml"
    raw = table(content(folder / "paper.yaml"), where)
    exhibits = table(raw.get("exhibits"), f"{where}, exhibits")
    exhibits = {
        key: {**table(one, f"{where}, exhibit {key}"), "name": f"{folder.name}.{key}"}
        for key, one in exhibits.items()
    }
    own = {"name": folder.name, "folder": folder, "exhibits": exhibits, "claims": claims}
    paper = build(Paper, {**raw, **own}, where)
    for problem in checking.problems(paper):
        raise StudyError(problem)
    return paper


def _claim(entry: Any, where: str) -> Claim:
    given = table(entry, where)
    if isinstance(given.get("id"), str):
        where = f"{where.rsplit(' ', 1)[0]} {given['id']}"
    if isinstance(given.get("changed"), str):
        given["changed"] = [given["changed"]]
    contrasts = listed(given.get("contrasts"), f"{where}, contrasts")
    given["contrasts"] = [build(Contrast, one, where) for one in contrasts]
    return build(Claim, given, where)
