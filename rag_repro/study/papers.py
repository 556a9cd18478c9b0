"""One paper, one folder of plain files: what it printed, what we run, what it claims.

`papers/<name>/paper.yaml` lists the exhibits with the grid of conditions that
re-tests each; `tableN.csv` hold the printed values; `claims.yaml` holds the
claims with the contrasts that decide them. Runner, checker, tables, status
page all read these. An unknown key anywhere is refused.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ..words import nearest
from . import checking
from .conditions import ROLES, TIERS, Condition

PAPERS = Path(__file__).parent / "papers"


class StudyError(ValueError):
    """Something in a paper's files that cannot be; the message says where."""


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
        return [
            cell
            for grid in self.grids
            if tier in (None, grid.tier) and role in (None, grid.role)
            for cell in self._expand(grid)
        ]

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
                keys = {"dataset": dataset, "method": method, **varied}
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
            raise StudyError(f"rule {self.rule!r}: it is 'mean' or 'each'")
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

    def printed(self, exhibit: str) -> list[dict[str, str]]:
        """The exhibit's printed values, one row a value, as the paper prints them."""
        name = self.exhibits[exhibit].values
        if name is None:
            return []
        with (self.folder / name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


def names() -> list[str]:
    """The papers at hand."""
    return sorted(folder.name for folder in PAPERS.iterdir() if (folder / "paper.yaml").exists())


@lru_cache
def load(name: str) -> Paper:
    """A paper by name; everything in its files checked."""
    if name not in names():
        raise StudyError(f"there is no paper {name!r}{nearest(name, names())}")
    return read(PAPERS / name)


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
    """A paper from its folder."""
    raw = _yaml(folder / "paper.yaml")
    where = f"{folder.name}/paper.yaml"
    exhibits = {}
    for key, entry in raw.pop("exhibits", {}).items():
        place = f"{where}, exhibit {key}"
        methods = {
            name: strict(ExhibitMethod, row, f"{place}, method {name}")
            for name, row in entry.pop("methods", {}).items()
        }
        grids = tuple(
            strict(Grid, _tuples(grid), f"{place}, grid {i}")
            for i, grid in enumerate(entry.pop("grids", []), start=1)
        )
        for grid in grids:
            for name in grid.methods:
                if name not in methods:
                    raise StudyError(f"{place}: no method {name!r}{nearest(name, methods)}")
        exhibits[key] = strict(
            Exhibit,
            {**_tuples(entry), "name": f"{folder.name}.{key}", "methods": methods, "grids": grids},
            place,
        )
    claims = tuple(
        _claim(entry, f"{folder.name}/claims.yaml, claim {entry.get('id')}")
        for entry in _yaml(folder / "claims.yaml")
    )
    paper = strict(
        Paper,
        {**raw, "name": folder.name, "folder": folder, "exhibits": exhibits, "claims": claims},
        where,
    )
    for problem in checking.problems(paper):
        raise StudyError(problem)
    return paper


def _claim(entry: Mapping[str, Any], where: str) -> Claim:
    contrasts = tuple(strict(Contrast, _tuples(c), where) for c in entry.get("contrasts", ()))
    return strict(Claim, {**entry, "contrasts": contrasts}, where)


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Lists at the top become tuples, so that frozen things are frozen."""
    return {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()}


def _yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise StudyError(f"{path}: not valid YAML ({error})") from error


def strict(cls: type, given: Mapping[str, Any], where: str) -> Any:
    """cls(**given), with unknown and missing keys named."""
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key in given:
        if key not in fields:
            raise StudyError(f"{where}: unknown key {key!r}{nearest(key, fields)}")
    for name, f in fields.items():
        needed = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if needed and name not in given:
            raise StudyError(f"{where}: the key {name!r} is missing")
    try:
        return cls(**given)
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from error
