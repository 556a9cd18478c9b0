"""One paper, one folder of plain files: what it printed, what we run, what it claims.

`papers/<name>/paper.yaml` lists the exhibits with the grid of conditions that
re-tests each; `tableN.csv` hold the printed values; `claims.yaml` holds the
claims with the contrasts that decide them. Runner, checker, tables, status
page all read these. An unknown key anywhere is refused.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ..plain import PlainError, from_yaml, text_of
from ..words import nearest
from . import checking
from .conditions import ROLES, TIERS, Condition
from .strict import StudyError, listed, strict, table

PAPERS = Path(__file__).parent / "papers"
ENVIRONMENT = "RAG_REPRO_PAPERS"


@dataclass(frozen=True)
class ExhibitMethod:
    """A row of an exhibit: what it is called, and how we run it.

    run: a registered method; None with `waits` saying why there is none yet.
    baseline: the row that this one is compared with.
    """

    label: str
    run: str | None = None
    retriever: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    baseline: str | None = None
    waits: str | None = None


@dataclass(frozen=True)
class Grid:
    """A block of conditions: every method on every data set with every setting."""

    tier: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    settings: Mapping[str, tuple] = field(default_factory=dict)
    role: str = "primary"
    reader: str | None = None
    n: int | None = None
    seed: int = 0

    def __post_init__(self):
        if self.tier not in TIERS:
            raise StudyError(f"tier {self.tier!r}{nearest(self.tier, TIERS)}")
        if self.role not in ROLES:
            raise StudyError(f"role {self.role!r}{nearest(self.role, ROLES)}")
        if self.n is not None and self.n < 1:
            raise StudyError(f"n is {self.n}; it must be at least 1")


@dataclass(frozen=True)
class Cell:
    """One condition at its place in an exhibit.

    keys: what finds it there: dataset, method (the row's name), the settings
    that the grid varies, and the reader where there is one.
    """

    exhibit: str
    tier: str
    role: str
    keys: Mapping[str, Any]
    condition: Condition
    n: int | None

    def matches(self, wanted: Mapping[str, Any]) -> bool:
        """Whether each wanted key has the wanted value (or one of a list of them)."""
        return all(
            self.keys.get(key) in value if isinstance(value, list) else self.keys.get(key) == value
            for key, value in wanted.items()
        )


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a paper, or of this book (`own`), as we re-test it.

    metrics: the names that its cells report. values: its file of printed values.
    by: a field of the answers' records that splits each cell into rows ("kind").
    """

    name: str
    title: str
    place: str
    metrics: tuple[str, ...]
    methods: Mapping[str, ExhibitMethod]
    grids: tuple[Grid, ...] = ()
    values: str | None = None
    by: str | None = None
    own: bool = False

    def cells(self, tier: str | None = None, role: str | None = None) -> list[Cell]:
        """All cells that can be run, in the order of the file."""
        return [c for c in self._cells if tier in (None, c.tier) and role in (None, c.role)]

    @cached_property
    def _cells(self) -> tuple[Cell, ...]:
        # A table asks for them once a row, to find the row's baseline.
        return tuple(cell for grid in self.grids for cell in self._expand(grid))

    def _expand(self, grid: Grid) -> Iterator[Cell]:
        for dataset, method in itertools.product(grid.datasets, grid.methods):
            row = self.methods[method]
            if row.run is None:
                continue
            for values in itertools.product(*grid.settings.values()):
                varied = dict(zip(grid.settings, values, strict=True))
                condition = Condition(
                    dataset=dataset,
                    method=row.run,
                    settings={**row.settings, **varied},
                    retriever=row.retriever,
                    reader=grid.reader,
                    seed=grid.seed,
                )
                keys = {"dataset": condition.label, "method": method, **varied}
                if grid.reader:
                    keys["reader"] = grid.reader
                yield Cell(self.name, grid.tier, grid.role, keys, condition, grid.n)


@dataclass(frozen=True)
class Contrast:
    """A difference between cells that decides a claim, or a part of it.

    more, less: keys that pick the two cells to be paired ("metric" among them
    where the two sides read different metrics); without `less` it is about the
    level of `more` alone. where: keys that both share. kinds: only questions of
    these kinds. rule: "mean" over the paired cells or "each" of them. delta:
    smallest effect of interest, in the metric's unit. margin: instead of delta,
    for a claim of no difference, or of the value `target` give or take it (with
    a delta: of a value that much below the target); with `no_loss` only a
    difference below -margin speaks against the claim.
    """

    metric: str
    more: Mapping[str, Any]
    less: Mapping[str, Any] | None = None
    delta: float | None = None
    margin: float | None = None
    target: float | None = None
    no_loss: bool = False
    where: Mapping[str, Any] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    rule: str = "mean"
    role: str = "primary"
    label: str = ""

    def __post_init__(self):
        if (self.delta is None) == (self.margin is None):
            raise StudyError("a contrast has either a delta or a margin")
        if (self.target is None) and (self.less is None):
            raise StudyError("a contrast has a side `less`, or a target for its level")
        if self.no_loss and self.margin is None:
            raise StudyError("no_loss needs a margin")
        if self.rule not in ("mean", "each"):
            hint = nearest(self.rule, ("mean", "each"))
            raise StudyError(f"rule {self.rule!r}{hint}: it is 'mean' or 'each'")
        if self.role not in ROLES:
            raise StudyError(f"role {self.role!r}{nearest(self.role, ROLES)}")


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, written so that records can refute it.

    support: whether the paper's own numbers bear it out: yes, partly, no, none.
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


@dataclass(frozen=True)
class Paper:
    """A paper with its exhibits and claims."""

    name: str
    title: str
    short: str
    cite: str
    folder: Path
    exhibits: Mapping[str, Exhibit]
    claims: tuple[Claim, ...]

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
        """The exhibit's printed values, one row a value, as the paper prints them."""
        name = self.exhibits[exhibit].values
        if name is None:
            return []
        return _printed(self.folder / name)


def names() -> list[str]:
    """The papers at hand: ours, and those in the folder that RAG_REPRO_PAPERS names."""
    return sorted(_folders())


def _folders() -> dict[str, Path]:
    own = os.environ.get(ENVIRONMENT)
    found: dict[str, Path] = {}
    for where in [PAPERS, *([Path(own)] if own else [])]:
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


def exhibit(full_name: str) -> tuple[Paper, Exhibit]:
    """An exhibit by its full name, as `drrag.table5`."""
    known = [f"{paper}.{key}" for paper in names() for key in load(paper).exhibits]
    if full_name not in known:
        raise StudyError(
            f"there is no exhibit {full_name!r}{nearest(full_name, known)}; "
            f"there are: {', '.join(known)}"
        )
    paper, key = full_name.split(".", 1)
    return load(paper), load(paper).exhibits[key]


def read(folder: Path) -> Paper:
    """A paper from its folder. Raises StudyError with file, place and what is wrong."""
    where = f"{folder.name}/paper.yaml"
    raw = table(_yaml(folder / "paper.yaml"), where)
    exhibits = {
        key: _exhibit(key, entry, folder.name, f"{where}, exhibit {key}")
        for key, entry in table(raw.pop("exhibits", None), f"{where}, exhibits").items()
    }
    where_claims = f"{folder.name}/claims.yaml"
    claims = tuple(
        _claim(entry, f"{where_claims}, claim {number}")
        for number, entry in enumerate(listed(_yaml(folder / "claims.yaml"), where_claims), start=1)
    )
    paper = strict(
        Paper,
        {**raw, "name": folder.name, "folder": folder, "exhibits": exhibits, "claims": claims},
        where,
    )
    for problem in checking.problems(paper):
        raise StudyError(problem)
    return paper


def _exhibit(key: str, entry: Any, paper: str, place: str) -> Exhibit:
    given = table(entry, place)
    methods = {
        name: strict(
            ExhibitMethod, table(row, f"{place}, method {name}"), f"{place}, method {name}"
        )
        for name, row in table(given.pop("methods", None), f"{place}, methods").items()
    }
    grids = []
    for i, grid in enumerate(listed(given.pop("grids", None), f"{place}, grids"), start=1):
        grids.append(strict(Grid, _tuples(grid, f"{place}, grid {i}"), f"{place}, grid {i}"))
        for name in grids[-1].methods:
            if name not in methods:
                raise StudyError(f"{place}: no method {name!r}{nearest(name, methods)}")
    made = {"name": f"{paper}.{key}", "methods": methods, "grids": tuple(grids)}
    return strict(Exhibit, {**_tuples(given, place), **made}, place)


def _claim(entry: Any, where: str) -> Claim:
    given = table(entry, where)
    if isinstance(given.get("id"), str):
        where = f"{where.rsplit(' ', 1)[0]} {given['id']}"
    parts = listed(given.get("contrasts"), f"{where}, contrasts")
    contrasts = tuple(strict(Contrast, _tuples(part, where), where) for part in parts)
    return strict(Claim, {**given, "contrasts": contrasts}, where)


def _tuples(entry: Any, where: str) -> dict[str, Any]:
    """Lists at the top become tuples, so that frozen things are frozen."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in table(entry, where).items()}


def _yaml(path: Path) -> Any:
    try:
        return from_yaml(text_of(path))
    except (PlainError, OSError) as error:
        raise StudyError(f"{path}: {error}; mend it, or restore it from version control") from error


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
