"""Many conditions in one go: chosen from exhibits, primary ones first."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..words import nearest
from . import papers, records, runner
from .names import Untrained
from .papers import Cell, StudyError
from .services import Workshop

log = logging.getLogger(__name__)


def select(
    exhibits: Iterable[str],
    *,
    tier: str | None = None,
    role: str | None = None,
    datasets: Collection[str] | None = None,
    methods: Collection[str] | None = None,
    timed: bool = False,
) -> list[Cell]:
    """The cells of these exhibits that are wanted, each condition once, primary ones first.

    timed: exhibits for `rag-repro time`; each command refuses the other's.
    """
    chosen = [papers.exhibit(name)[1] for name in exhibits]
    for exhibit in chosen:
        if exhibit.timed != timed:
            other = "time" if exhibit.timed else "run"
            why = "is timed" if exhibit.timed else "holds no times"
            raise StudyError(f"{exhibit.name} {why}: rag-repro {other} {exhibit.name}")
    cells = [cell for exhibit in chosen for cell in exhibit.cells(tier, role)]
    if not cells:
        raise StudyError("no condition is left to run: these exhibits have none at this tier")
    for key, wanted in (("dataset", datasets), ("method", methods)):
        known = sorted({cell.keys[key] for cell in cells})
        for name in wanted or ():
            if name not in known:
                raise StudyError(
                    f"no condition has the {key} {name!r}{nearest(name, known)}; "
                    f"there are: {', '.join(known)}"
                )
        cells = [cell for cell in cells if wanted is None or cell.keys[key] in wanted]
    if not cells:
        raise StudyError("no condition is left to run: none has both this data set and method")
    return once(cells)


def once(cells: Iterable[Cell]) -> list[Cell]:
    """Each condition once, primary ones first; with the largest n that is asked for.

    Once for each exhibit that times it, too: those answers are others.
    """
    kept: dict[tuple[str, str], Cell] = {}
    for cell in sorted(cells, key=lambda c: c.role != "primary"):
        place = cell.condition.hash, cell.exhibit if cell.timed else ""
        first = kept.setdefault(place, cell)
        if first.n is not None and (cell.n is None or cell.n > first.n):
            kept[place] = replace(first, n=cell.n)
    return list(kept.values())


def run(
    cells: Sequence[Cell],
    workshop: Workshop,
    results: Path,
    *,
    n: int | None = None,
    shard: tuple[int, int] = (1, 1),
    batch_size: int = 16,
) -> int:
    """Run what is missing of each cell, with a progress bar -> questions asked now.

    A cell that needs something untrained is passed over; StudyError names it at the end.
    """
    from tqdm import tqdm

    asked, untrained = 0, Counter()
    for place, cell in enumerate(cells, start=1):
        label = f"[{place}/{len(cells)}] {cell.condition.path}"
        with tqdm(desc=label, unit="q", leave=False) as bar:

            def report(progress: runner.Progress, bar=bar) -> None:
                bar.total = progress.total
                bar.update(progress.done - bar.n)

            try:
                new = runner.run(
                    cell.condition,
                    workshop,
                    results,
                    n=least(n, cell.n),
                    shard=shard,
                    batch_size=batch_size,
                    report=report,
                )
            except Untrained as error:
                untrained[str(error)] += 1
                continue
        log.info("%s: %s", label, f"{new} questions answered" if new else "complete")
        asked += new
    if untrained:
        why = "; ".join(f"{times} since {error}" for error, times in untrained.items())
        raise StudyError(f"{untrained.total()} of {len(cells)} conditions were passed over: {why}")
    return asked


def missing(cell: Cell, workshop: Workshop, results: Path, n: int | None) -> int:
    """How many of the cell's questions have no record yet."""
    dataset = workshop.dataset(cell.condition.dataset, cell.condition.split)
    wanted = {q.id for q in dataset.first(least(n, cell.n)).questions}
    record = records.load(results, cell.condition)
    return len(wanted - (record.by_question.keys() if record else set()))


def estimate(cells: Sequence[Cell], workshop: Workshop, results: Path, *, n: int | None) -> str:
    """What the missing questions would cost, from a trial of a few of each condition."""
    lines, total = [], 0.0
    for cell in cells:
        left = missing(cell, workshop, results, n)
        if not left:
            lines.append(f"{cell.condition.path}: complete")
            continue
        cost = runner.estimate(cell.condition, workshop, missing=left)
        total += cost.seconds
        each = ", ".join(f"{count:.1f} {name}" for name, count in cost.cost_a_question.items())
        lines.append(
            f"{cell.condition.path}: {left} questions, about {duration(cost.seconds)} "
            f"({cost.trial} tried; a question: {each})"
        )
    lines.append(
        f"{len(cells)} conditions, about {duration(total)} on this machine, "
        "besides building indexes and loading weights"
    )
    return "\n".join(lines)


def least(*limits: int | None) -> int | None:
    """The smallest limit that is set; None where none is."""
    return min((limit for limit in limits if limit is not None), default=None)


def duration(seconds: float) -> str:
    """As "8 s", "3.2 min" or "5.1 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
