"""Exhibits: a table or figure of a paper, and the grid of conditions that re-tests it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rag_repro.data import splits
from rag_repro.data.splits import CONFIRM, SPLITS, SplitError
from rag_repro.data.titles import word
from rag_repro.methods import base, systems
from rag_repro.study.conditions import ROLES, TIERS, Condition
from rag_repro.study.yaml_files import StudyError
from rag_repro.words import nearest


@dataclass(frozen=True)
class ExhibitMethod:
    """A row of an exhibit: what it is called, and how we run it.

    run: a registered method; None with `waits` saying why there is none yet.
    baseline: the row that this one is compared with.
    """

    label: str
    run: str | None = None
    retriever: str | None = None
    settings: Mapping[str, tuple | Any] = field(default_factory=dict)
    baseline: str | None = None
    waits: str | None = None


@dataclass(frozen=True)
class Grid:
    """A block of conditions: every method on every data set with every setting.

    fixed: settings of one value here that are no key of the cells, as the
    classifier that belongs to the tier. split: whose questions are asked; others
    than "test" to train and tune on. trained: row -> the reader that was trained for
    it over `reader`, which is then what was frozen, or begun with, and stays the
    cells' key. seeds: of those trainings, a cell each with the key `seed`. retriever: in
    place of that of its rows, where they have one. kinds: only questions of these are asked
    and read; none named: of all.
    """

    tier: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    settings: Mapping[str, tuple] = field(default_factory=dict)
    fixed: Mapping[str, tuple | Any] = field(default_factory=dict)
    role: str = "primary"
    reader: str | None = None
    n: int | None = None
    seed: int = 0
    split: str = "test"
    trained: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    retriever: str | None = None
    kinds: tuple[str, ...] = ()

    def __post_init__(self):
        if self.trained and self.reader is None:
            raise StudyError("`trained` needs the `reader` that the training began with; name it")
        if self.seeds and not self.trained:
            raise StudyError(
                "`seeds` are those of `trained` readers, and there is none; leave them out"
            )
        for name in self.settings:
            if name in self.fixed:
                raise StudyError(f"setting {name!r} is both varied and fixed; leave one of them")
        if self.split not in (known := (*SPLITS, CONFIRM)):
            raise StudyError(f"split {self.split!r}{nearest(self.split, known)}")
        if self.tier not in TIERS:
            raise StudyError(f"tier {self.tier!r}{nearest(self.tier, TIERS)}")
        if self.role not in ROLES:
            raise StudyError(f"role {self.role!r}{nearest(self.role, ROLES)}")
        if self.n is not None and self.n < 1:
            raise StudyError(f"n is {self.n}; it must be at least 1")

    @property
    def varied(self) -> Iterator[dict[str, Any]]:
        """Each choice of values for the settings that it varies."""
        every = itertools.product(*self.settings.values())
        return (dict(zip(self.settings, values, strict=True)) for values in every)

    def readers(self, method: str) -> tuple[tuple[int | None, str | None], ...]:
        """Seed and reader of each of the row's cells; seed None: it has no key for one."""
        name = self.trained.get(method)
        if name is None:
            return ((None, self.reader),)
        if not self.seeds:
            return ((None, name),)
        # As training names them: the first seed bears the bare name.
        return tuple((seed, f"{name}-{seed}" if seed else name) for seed in self.seeds)


@dataclass(frozen=True)
class Cell:
    """One condition at its place in an exhibit.

    keys: what finds it there: dataset, method (the row's name), the settings
    that the grid varies, the reader where there is one (of a trained row the one
    that it was trained over), its seed, and a split other than "test". timed: its
    answers are those of `study.timed_runs`, which lie in a folder of their own.
    """

    exhibit: str
    tier: str
    role: str
    keys: Mapping[str, Any]
    condition: Condition
    n: int | None
    timed: bool = False
    kinds: tuple[str, ...] = ()

    @property
    def asked(self) -> int | None:
        """How many questions it asks: its n, else all of its split; None where no file fixes it."""
        return self.listed if self.n is None else self.n

    @property
    def listed(self) -> int | None:
        """Questions that the split file lists; None where it does not know the data set."""
        try:
            return len(splits.ids(self.condition.label, self.condition.split)) or None
        except SplitError:
            return None

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
    shares: scores are printed as shares of 1 (0.187), which stand beside ours as 18.7.
    by: what splits each cell into rows: a field of the answers' records ("kind"), or
    "gold_there" (`grouping`).
    timed: its conditions take turns, one question at a time (`rag-repro time`).
    beside: which printed values stand beside our cells where keys differ, as
    {ours: {reader: public-reader}, printed: {reader: llama3-8b}}. candidates: what is
    printed is of the questions' own candidates, not of a pooled corpus.
    """

    name: str
    title: str
    place: str
    metrics: tuple[str, ...]
    methods: Mapping[str, ExhibitMethod]
    grids: tuple[Grid, ...] = ()
    values: str | None = None
    shares: bool = False
    by: str | None = None
    own: bool = False
    timed: bool = False
    beside: tuple[Mapping[str, Mapping[str, Any]], ...] = ()
    candidates: bool = False

    def __post_init__(self):
        for pair in self.beside:
            if set(pair) != {"ours", "printed"}:
                raise StudyError(f"beside needs `ours` and `printed`, not {', '.join(pair)}")
        for name in (name for grid in self.grids for name in grid.methods):
            if name not in self.methods:
                raise StudyError(f"no method {name!r}{nearest(name, self.methods)}")

    @cached_property
    def whole(self) -> Exhibit:
        """With one cell, the first training's and without a `seed`, for all trainings of a row."""
        if not any(grid.seeds for grid in self.grids):
            return self
        return self.regrid(lambda grid: replace(grid, seeds=()))

    def regrid(self, change: Callable[[Grid], Grid]) -> Exhibit:
        """The same with every grid changed."""
        return replace(self, grids=tuple(map(change, self.grids)))

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
            run, settings = alias(row)
            for varied, (seed, reader) in itertools.product(grid.varied, grid.readers(method)):
                condition = Condition(
                    dataset=dataset,
                    method=run,
                    settings={**settings, **grid.fixed, **varied},
                    retriever=row.retriever and (grid.retriever or row.retriever),
                    reader=reader,
                    split=grid.split,
                    seed=grid.seed,
                )
                keys = {"dataset": condition.label, "method": method, **varied}
                if grid.reader:
                    keys["reader"] = grid.reader
                if seed is not None:
                    keys["seed"] = seed
                if grid.split != "test":
                    keys["split"] = grid.split
                place = self.name, grid.tier, grid.role
                yield Cell(*place, keys, condition, grid.n, self.timed, grid.kinds)


def alias(row: ExhibitMethod) -> tuple[str, Mapping[str, Any]]:
    """What a row runs, and its settings: a method, or a system by its paper's name.

    Where both have one name, as "r2ag", it is the method: records are named by that.
    """
    if row.run in base.method_names():
        return row.run, row.settings
    system = systems.get(row.run)
    return system.method, {**system.settings, **row.settings}


def full_name(exhibit: Exhibit, cell: Cell) -> str:
    """As "MuSiQue, QDC, k = 4": its data set, its row and its settings, in a reader's words."""
    return _words(exhibit, cell, cell.keys)


def short_names(exhibit: Exhibit, cells: Sequence[Cell]) -> list[str]:
    """Of cells that stand side by side: the data set, and of the rest what tells them apart.

    One cell alone has its full name.
    """
    if len(cells) == 1:
        return [full_name(exhibit, cells[0])]
    keys = {key for cell in cells for key in cell.keys}
    varied = {k for k in keys if any(c.keys.get(k) != cells[0].keys.get(k) for c in cells)}
    return [_words(exhibit, cell, {"dataset", *varied}) for cell in cells]


def _words(exhibit: Exhibit, cell: Cell, keys: Collection[str]) -> str:
    row = [exhibit.methods[cell.keys["method"]].label] if "method" in keys else []
    settings = [
        f"{key.replace('_', ' ')} = {word(str(value))}"
        for key, value in cell.keys.items()
        if key in keys and key not in ("dataset", "method") and value is not False
    ]
    return ", ".join([word(cell.keys["dataset"]), *row, *settings])
