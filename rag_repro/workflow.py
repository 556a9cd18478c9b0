"""A grid of exhibits on many workers: what it would cost, and Snakemake over its jobs.

`study.grid` says which jobs there are; here a plan is costed in words, written where
`workflow/Snakefile` finds it, and handed to Snakemake, which knows nothing of this package and
lives in an environment of its own. A plan is of one start: whoever starts again plans again, from
the records, so that nothing that Snakemake remembers can be out of date.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections import Counter
from datetime import datetime
from pathlib import Path

from rag_repro.digest import write_whole

from .publish.places import Places
from .study import campaign, runner
from .study.grid import GridPlan, GridSettings, Work
from .study.services import Workshop
from .words import nearest

SNAKEMAKE = "RAG_REPRO_SNAKEMAKE"
OWN = Path(".venv-grid") / "bin" / "snakemake"
SNAKEFILE = Path("workflow") / "Snakefile"


class GridError(ValueError):
    """A grid that cannot be run, or whose jobs failed; the message says what to do."""


def told(plan: GridPlan, workshop: Workshop, settings: GridSettings, *, trial: bool = True) -> str:
    """What there is, what is missing and what it costs: a line each, and their sum.

    trial: ask a few questions of each condition and prepare each training, as `--estimate` of
    `run` and `train` do; without, answers are counted and no time is told.
    """
    lines, seconds, unknown = [], 0.0, 0
    for name in plan.training:
        words, cost = _training(plan.training[name], settings) if trial else ("to train", 0.0)
        lines.append(f"{name}: {words}")
        seconds += cost or 0.0
        unknown += cost is None
    for work in plan.works:
        words, cost = _work(work, workshop, trial)
        lines.append(f"{work.condition.path}: {words}")
        seconds += cost or 0.0
        unknown += cost is None
    absent = Counter(plan.absent.values())
    lines += [f"{count} conditions left out: {why}" for why, count in absent.items()]
    return "\n".join([*lines, _sum(plan, seconds if trial else None, unknown)])


def _work(work: Work, workshop: Workshop, trial: bool) -> tuple[str, float | None]:
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
    from .training import run
    from .training.recipes import recipe

    _, _, name, *seed = command.split()
    try:
        chosen = recipe(name).on(None)
        number = int(seed[1]) if seed else chosen.seeds[0]
        prepared = run.prepare(chosen, number, settings.data, settings.results, settings.device)
    except (ValueError, OSError) as error:
        return f"to train, not tried: {error}", None
    return f"to train, about {campaign.duration(prepared.seconds)}", prepared.seconds


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
        f"{text}; {least}{campaign.duration(seconds)} of work on this machine, besides building "
        "indexes and loading weights, which each job does"
    )


def snakemake(places: Places) -> Path:
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


def profile(name: str, places: Places) -> Path:
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


def write(plan: GridPlan, places: Places, folder: Path) -> None:
    """The plan into a folder, under a name of its own, with what Snakemake needs there."""
    folder.mkdir(parents=True, exist_ok=True)
    snakefile = places.root / SNAKEFILE
    write_whole(folder / snakefile.name, snakefile.read_bytes())
    write_whole(folder / "plan.json", plan.as_json(uuid.uuid4().hex))


def run(
    plan: GridPlan, places: Places, program: Path, *, profile: Path, workers: int | None = None
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
