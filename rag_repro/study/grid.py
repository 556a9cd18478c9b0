"""The grid of exhibits as jobs: which commands make their records, and what is still missing.

A job is one command of this package: `train` what a condition lacks, `run` a shard of a
condition, `run --join` its parts. What is finished is read from the records and from nowhere
else, so a plan names only what they lack; the plan itself is plain data, which `workflow/Snakefile`
reads without this package.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..data import absolute, has_path
from ..data.public.errors import MissingFile
from . import campaign, names, parts, reservoirs
from .conditions import Condition
from .papers import Cell
from .records import SHARD
from .services import Workshop

FORMAT = 1


@dataclass(frozen=True)
class GridSettings:
    """How every job of a grid runs: the options of `rag-repro run` that all of them share.

    results, data: folders; jobs may run elsewhere, so their commands name them in full.
    data None: RAG_REPRO_DATA's. seeds: as `campaign.select`.
    """

    exhibits: tuple[str, ...]
    results: Path
    data: Path | None = None
    seeds: tuple[int, ...] = ()
    device: str = "cpu"
    dtype: str = "float32"
    batch_size: int = 16
    in_flight: int = 4

    @property
    def folders(self) -> list[str]:
        given = {"--results": self.results, "--data": self.data}
        return [w for name, path in given.items() if path for w in (name, str(path.resolve()))]


@dataclass(frozen=True)
class Work:
    """What one condition still takes.

    total: how many questions are wanted; missing: how many of them no record has. shards: (i,
    of) of each run that has something to ask -> how much; one of (1, 1) makes the record by
    itself. joins: whether parts are joined behind them. lacks: what must be trained first.
    """

    cell: Cell
    total: int
    missing: int
    shards: Mapping[tuple[int, int], int]
    joins: bool
    lacks: tuple[str, ...] = ()

    @property
    def condition(self) -> Condition:
        return self.cell.condition

    @property
    def is_complete(self) -> bool:
        """Whether no job is left: all answers are there, and none waits to be joined."""
        return not self.shards and not self.joins


@dataclass(frozen=True)
class Job:
    """One command of the package; after: names of the jobs whose end it waits for."""

    command: tuple[str, ...]
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class GridPlan:
    """works: every condition of the grid, complete ones too. training: name -> what trains it.
    absent: a condition's path -> why its data is not at hand; nothing of it is run.

    jobs: by name, KIND/WHAT: train, answers, join or chapter, the Snakefile's rules; what is
    trained, a record or a part of one, or a chapter.
    """

    works: tuple[Work, ...]
    training: Mapping[str, str]
    jobs: Mapping[str, Job] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)

    def as_json(self, start: str) -> str:
        """As the Snakefile reads it: the jobs, the program whose commands they are, and where.

        start: a name that no other plan has, for what marks its finished jobs.
        """
        program = [sys.executable, "-m", "rag_repro.cli"]
        made = {"format": FORMAT, "start": start, "program": program, "folder": str(Path.cwd())}
        made["jobs"] = {name: asdict(job) for name, job in self.jobs.items()}
        return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def plan(
    cells: Sequence[Cell],
    workshop: Workshop,
    settings: GridSettings,
    *,
    n: int | None = None,
    shards: int = 1,
    chapters: Iterable[str] = (),
) -> GridPlan:
    """What the cells still take, each condition in so many shards at most.

    Conditions whose questions draw on each other run in one. chapters: to be executed when
    all records are there. Raises RecordError for a record that cannot be used, by name, and
    MissingFile where the data of no condition is at hand.
    """
    works, absent = [], {}
    for cell in cells:
        try:
            works.append(_work(cell, workshop, settings.results, n, shards))
        except MissingFile as error:
            absent[cell.condition.path] = str(error)
            if len(absent) == len(cells):
                raise
    training = _to_train(name for work in works for name in work.lacks)
    jobs = {
        f"train/{name}": Job(
            (*command.split()[1:], "--device", settings.device, *settings.folders),
            tuple(f"train/{other}" for other in names.ingredients(name) if other in training),
        )
        for name, command in training.items()
    }
    for work in works:
        jobs |= _jobs(work, settings)
    made = tuple(jobs)
    jobs |= {f"chapter/{name}": Job(("chapter", name, "--update"), made) for name in chapters}
    return GridPlan(tuple(works), training, jobs, absent)


def _work(cell: Cell, workshop: Workshop, results: Path, n: int | None, shards: int) -> Work:
    condition, held = cell.condition, parts.held(results, cell.condition)
    wanted = campaign.wanted(cell, workshop, n)
    total = len(wanted)
    of = 1 if reservoirs.is_ordered(condition) else max(1, min(shards, total))
    every = [(i, of) for i in range(1, of + 1)]
    left = {shard: campaign.wanted(cell, workshop, n, shard) - held.ids(shard) for shard in every}
    missing = {shard: len(ids) for shard, ids in left.items() if ids}
    alone = of == 1 and bool(missing)  # such a run joins and compresses by itself
    lacks = names.untrained(condition.reader, condition.configured.needs) if missing else {}
    return Work(
        cell,
        total,
        sum(missing.values()),
        missing,
        joins=not alone and not held.is_complete(wanted),
        lacks=tuple(lacks),
    )


def _to_train(lacking: Iterable[str]) -> dict[str, str]:
    """All that must be trained, with what it is made of where that is not there either."""
    commands: dict[str, str] = {}
    waiting = list(lacking)
    while waiting:
        name = waiting.pop()
        if name not in commands:
            commands[name] = names.train_command(name, (*names.READERS, *names.SCORERS))
            waiting += names.ingredients(name)
    return commands


def _jobs(work: Work, settings: GridSettings) -> dict[str, Job]:
    """The condition's jobs, that which leaves its record last."""
    condition = work.condition
    run = ("run", *settings.exhibits, "--condition", condition.hash)
    if has_path(condition.dataset):  # in place of the exhibits' own
        run += ("--dataset", absolute(condition.dataset))
    if settings.seeds:
        run += ("--seeds", *map(str, settings.seeds))
    ask = ("--n", str(work.total), "--device", settings.device, "--dtype", settings.dtype)
    ask += ("--batch-size", str(settings.batch_size), "--in-flight", str(settings.in_flight))
    ask += tuple(settings.folders)
    first = tuple(f"train/{name}" for name in work.lacks)
    jobs = {}
    for i, of in work.shards:
        part = parts.name((i, of))
        shard = ("--shard", f"{i}/{of}") if part else ()
        what = condition.path + (SHARD + part if part else "")
        jobs[f"answers/{what}"] = Job((*run, *shard, *ask), first)
    if work.joins:
        jobs[f"join/{condition.path}"] = Job((*run, "--join", *settings.folders), tuple(jobs))
    return jobs
