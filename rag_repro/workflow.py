"""A grid of exhibits on many workers: its jobs, what they would cost, and Snakemake over them.

A job is one command of this package: `train` what a condition lacks, `run` a shard of a condition,
`run --join` its parts. What is finished is read from the records alone, so a plan names only what
they lack. It is plain data, which `workflow/Snakefile` reads without this package, and of one
start: whoever starts again plans again, so that nothing that Snakemake remembers is out of date.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from rag_repro.book_folders import BookFolders
from rag_repro.data import absolute, has_path
from rag_repro.data.public.record import MissingFile
from rag_repro.digest import write_whole
from rag_repro.study import campaign, names, reservoirs, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.papers import Cell
from rag_repro.study.records import SHARD
from rag_repro.study.services import Workshop
from rag_repro.words import duration, nearest

SNAKEMAKE = "RAG_REPRO_SNAKEMAKE"
OWN = Path(".venv-grid") / "bin" / "snakemake"
SNAKEFILE = Path("workflow") / "Snakefile"


class GridError(ValueError):
    """A grid that cannot be run, or whose jobs failed; the message says what to do."""


def describe_plan(
    plan: GridPlan, workshop: Workshop, settings: GridSettings, *, trial: bool = True
) -> str:
    """What there is, what is missing and what it costs: a line each, and their sum.

    trial: ask a few questions of each condition and prepare each training, as `--estimate` of
    `run` and `train` do; without, answers are counted and no time is told.
    """
    costed = [
        (name, *(_training(command, settings) if trial else ("to train", 0.0)))
        for name, command in plan.training.items()
    ]
    costed += [(work.condition.path, *_trial(work, workshop, trial)) for work in plan.works]
    lines = [f"{name}: {words}" for name, words, _ in costed]
    seconds = sum(cost or 0.0 for *_, cost in costed)
    unknown = sum(cost is None for *_, cost in costed)
    absent = Counter(plan.absent.values())
    lines += [f"{count} conditions left out: {why}" for why, count in absent.items()]
    return "\n".join([*lines, _sum(plan, seconds if trial else None, unknown)])


def _trial(work: Work, workshop: Workshop, trial: bool) -> tuple[str, float | None]:
    """One condition in words -> and its seconds; None: nobody knows."""
    cost, why = None, ""
    if work.missing and trial:
        if work.lacks:
            why = f", not tried: it waits for {', '.join(work.lacks)}"
        else:
            try:
                if lacking := campaign.lacking(work.condition, workshop):
                    return f"{work.missing} questions, not tried: {lacking}", None
                cost = runner.estimate(work.condition, workshop, missing=work.missing)
            except (ValueError, OSError) as error:
                why = f", not tried: {error}"
    words = campaign.of_one(work.missing, cost, work.is_complete)
    if len(work.shards) > 1:
        words += f", in {len(work.shards)} shards"
    seconds = cost.seconds if cost else (None if why else 0.0)
    return words + why, seconds


def _training(command: str, settings: GridSettings) -> tuple[str, float | None]:
    """What a training takes, in words -> and its seconds; None: nobody knows."""
    from rag_repro.training import run
    from rag_repro.training.recipes import recipe

    _, _, name, *seed = command.split()
    try:
        chosen = recipe(name).on(None)
        number = int(seed[1]) if seed else chosen.seeds[0]
        prepared = run.prepare(chosen, number, settings.data, settings.results, settings.device)
    except (ValueError, OSError) as error:
        return f"to train, not tried: {error}", None
    return f"to train, about {duration(prepared.seconds)}", prepared.seconds


def _sum(plan: GridPlan, seconds: float | None, unknown: int) -> str:
    complete = sum(work.is_complete for work in plan.works)
    missing, total = (sum(getattr(w, key) for w in plan.works) for key in ("missing", "total"))
    kinds = Counter(name.split("/")[0] for name in plan.jobs)
    jobs = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
    text = (
        f"{len(plan.works)} conditions, {complete} complete; {missing:,} of {total:,} answers to "
        f"make; jobs: {jobs}"
    )
    if seconds is None:
        return text
    least = "at least " if unknown else "about "
    return (
        f"{text}; {least}{duration(seconds)} of work on this machine, besides building "
        "indexes and loading weights, which each job does"
    )


def snakemake(places: BookFolders) -> Path:
    """The program: what RAG_REPRO_SNAKEMAKE names, `.venv-grid`'s, or the one on the PATH.

    Raises GridError, with how to install it.
    """
    if named := os.environ.get(SNAKEMAKE):
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise GridError(f"{SNAKEMAKE} names {named}, which is no program; mend it or unset it")
        return Path(named).absolute()
    if (own := places.root / OWN).is_file():
        return own
    if found := shutil.which("snakemake"):
        return Path(found)
    raise GridError(
        "Snakemake is not installed: `make grid` puts it into .venv-grid, an environment of its "
        f"own, since it moves some pins; or name the program in {SNAKEMAKE}"
    )


def profile(name: str, places: BookFolders) -> Path:
    """A profile's folder: one of workflow/profiles by name, or any folder with a config.yaml."""
    if "/" in name and (Path(name) / "config.yaml").is_file():
        return Path(name).absolute()
    folder = places.root / "workflow" / "profiles"
    known = sorted(path.parent.name for path in folder.glob("*/config.yaml"))
    if name not in known:
        raise GridError(
            f"there is no profile {name!r}{nearest(name, known)}; there are: {', '.join(known)}, "
            "and any folder with a config.yaml (write it with a /)"
        )
    return folder / name


def write(plan: GridPlan, places: BookFolders, folder: Path) -> None:
    """The plan into a folder, under a name of its own, with what Snakemake needs there."""
    folder.mkdir(parents=True, exist_ok=True)
    snakefile = places.root / SNAKEFILE
    write_whole(folder / snakefile.name, snakefile.read_bytes())
    write_whole(folder / "plan.json", plan.as_json(uuid.uuid4().hex))


def run(
    plan: GridPlan, places: BookFolders, program: Path, *, profile: Path, workers: int | None = None
) -> None:
    """All jobs of the plan through Snakemake, which prints what it does.

    workers: jobs at once; None: as the profile says. Raises GridError where a job failed; what
    others finished is recorded, and the folder with the failed jobs' logs is kept.
    """
    above = places.root / "results" / "local" / "grid"
    above.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{datetime.now():%Y%m%d-%H%M%S}-", dir=above))
    write(plan, places, folder)
    words = [
        *(str(program), "--snakefile", str(folder / SNAKEFILE.name)),
        *("--directory", str(folder), "--profile", str(profile)),
        *(("--jobs", str(workers)) if workers else ()),
    ]
    if status := _status(words):
        raise GridError(
            f"not all jobs ended well (Snakemake's status is {status}): their logs are in "
            f"{folder / 'log'}; what was answered is recorded, and the same command does the rest"
        )
    shutil.rmtree(folder)


def _status(words: list[str]) -> int:
    with subprocess.Popen(words) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()  # it was interrupted as well, and ends its jobs first
            raise


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
    condition, held = cell.condition, runner.recorded(results, cell.condition)
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
        part = runner.shard_name((i, of))
        shard = ("--shard", f"{i}/{of}") if part else ()
        what = condition.path + (SHARD + part if part else "")
        jobs[f"answers/{what}"] = Job((*run, *shard, *ask), first)
    if work.joins:
        jobs[f"join/{condition.path}"] = Job((*run, "--join", *settings.folders), tuple(jobs))
    return jobs
