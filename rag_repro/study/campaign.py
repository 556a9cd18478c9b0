"""Many conditions in one go: chosen from exhibits, primary ones first."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rag_repro.bars import Bar
from rag_repro.data import check_name, has_path, label
from rag_repro.methods import systems
from rag_repro.study import files, names, papers, records, registration, retarget, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.names import Untrained
from rag_repro.study.papers import Cell, Exhibit, StudyError
from rag_repro.study.services import Workshop
from rag_repro.words import duration, nearest

log = logging.getLogger(__name__)

# Passages of a corpus that an estimate indexes: it holds a world, and takes a minute or two.
SMALL = 5_000


def select(
    exhibits: Iterable[str],
    *,
    tier: str | None = None,
    role: str | None = None,
    datasets: Collection[str] | None = None,
    methods: Collection[str] | None = None,
    conditions: Collection[str] | None = None,
    seeds: Sequence[int] = (),
    timed: bool = False,
) -> list[Cell]:
    """The cells of these exhibits that are wanted, each condition once, primary ones first.

    datasets: of the exhibits' own, or, where one has a path (`data.has_path`), those that take
    their place, whole. conditions: by the hash that ends a record's name. seeds: of trained rows,
    in place of those that the exhibits name. timed: exhibits for `rag-repro time`; each command
    refuses the other's.
    """
    chosen = [_exhibit(name, datasets or ()) for name in exhibits]
    datasets = [label(name) for name in datasets] if datasets else None
    for exhibit in chosen:
        if exhibit.timed != timed:
            other = "time" if exhibit.timed else "run"
            why = "is timed" if exhibit.timed else "holds no times"
            raise StudyError(f"{exhibit.name} {why}: rag-repro {other} {exhibit.name}")
    cells = [c for exhibit in _seeded(chosen, seeds) for c in exhibit.cells(tier, role)]
    if not cells:
        raise StudyError("no condition is left to run: these exhibits have none at this tier")
    for key, wanted in (("dataset", datasets), ("method", methods)):
        cells = only(cells, key, wanted)
    if not cells:
        raise StudyError("no condition is left to run: none has both this data set and method")
    if conditions is not None:
        known = {cell.condition.hash for cell in cells}
        for name in conditions:
            if name not in known:
                raise StudyError(
                    f"no condition has the hash {name!r}; it is what a record's name ends in"
                )
        cells = [cell for cell in cells if cell.condition.hash in conditions]
    return once(cells)


def only(cells: Sequence[Cell], key: str, wanted: Collection[str] | None) -> list[Cell]:
    """The cells whose "dataset" or "method" is wanted; None: all. StudyError: none has a name."""
    if wanted is None:
        return list(cells)
    known = {cell.keys[key] for cell in cells}
    chosen = {one for name in wanted for one in matches(key, name, known)}
    return [cell for cell in cells if cell.keys[key] in chosen]


def matches(key: str, name: str, known: Collection[str]) -> list[str]:
    """What of `known` has this name, which of a method may be that of `rag-repro methods`.

    StudyError: nothing has.
    """
    named = [name] if name in known or key != "method" else systems.rows(name)
    if not (chosen := [one for one in named if one in known]):
        raise StudyError(
            f"no condition has the {key} {name!r}{nearest(name, sorted(known))}; "
            f"there are: {', '.join(sorted(known))}"
        )
    return chosen


def _exhibit(name: str, datasets: Collection[str]) -> Exhibit:
    """An exhibit by its full name; on these data sets where one of them has a path."""
    paper, exhibit = papers.exhibit(name)
    if not any(map(has_path, datasets)):
        return exhibit
    for one in datasets:
        check_name(one)
    moved = retarget.retarget(paper, datasets=tuple(datasets)).exhibit(name.split(".", 1)[1])
    return moved.regrid(lambda grid: replace(grid, n=None))


def _seeded(chosen: Sequence[Exhibit], seeds: Sequence[int]) -> Sequence[Exhibit]:
    """The exhibits with these seeds in each grid that has some."""
    if not seeds:
        return chosen
    if not any(grid.seeds for exhibit in chosen for grid in exhibit.grids):
        told = ", ".join(exhibit.name for exhibit in chosen)
        raise StudyError(f"{told}: no row is trained with seeds; leave --seeds out")
    given = tuple(dict.fromkeys(seeds))
    return [
        exhibit.regrid(lambda grid: replace(grid, seeds=given) if grid.seeds else grid)
        for exhibit in chosen
    ]


def once(cells: Iterable[Cell]) -> list[Cell]:
    """Each condition once, primary ones first; with the largest n that is asked for.

    Once for each exhibit that times it, too: those answers are others. Asked for with different
    kinds, it is asked all questions of them.
    """
    kept: dict[tuple[str, str], Cell] = {}
    for cell in sorted(cells, key=lambda c: c.role != "primary"):
        place = cell.condition.hash, cell.exhibit if cell.timed else ""
        first = kept.setdefault(place, cell)
        if set(first.kinds) != set(cell.kinds):
            both = (*first.kinds, *cell.kinds) if first.kinds and cell.kinds else ()
            kept[place] = replace(first, n=None, kinds=both)
        elif first.n is not None and (cell.n is None or cell.n > first.n):
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
    failed: bool = False,
) -> int:
    """Run what is missing of each cell, with a progress bar -> questions asked now.

    failed: questions that failed are asked again, too.

    A cell that needs something untrained is passed over, and one that an error stops holds up
    none behind it, unless the disk is what failed; StudyError names them at the end.
    """
    asked, untrained, stopped = 0, Counter(), []
    tests = registration.tests_of(results.parent)
    for place, cell in enumerate(cells, start=1):
        folder = registration.destination(results, cell.condition, tests)
        label = f"[{place}/{len(cells)}] {cell.condition.path}"
        with Bar(desc=label, unit="q") as bar:

            def report(progress: runner.Progress, bar=bar) -> None:
                bar.total = progress.total
                bar.update(progress.done - bar.n)

            try:
                if behind := _recorded(cell, workshop, folder, n, shard, failed=failed):
                    log.info(
                        "%s: already recorded in %s; 0 to ask (--results FOLDER asks anew)",
                        *(label, behind),
                    )
                    continue
                if failed:
                    if shard == (1, 1):  # the run joins finished shards, failures and all
                        records.absorb(folder, cell.condition)
                    records.forget_failed(folder, cell.condition)
                new = runner.run(
                    cell.condition,
                    workshop,
                    folder,
                    n=least(n, cell.n),
                    kinds=cell.kinds,
                    shard=shard,
                    batch_size=batch_size,
                    report=report,
                )
            except Untrained as error:
                untrained[str(error)] += 1
                continue
            except OSError:
                raise
            except Exception as error:
                if len(cells) == 1:
                    raise
                unforeseen = not isinstance(error, ValueError)
                log.error("%s: stopped: %s", label, error, exc_info=unforeseen)
                stopped.append(f"{cell.condition.path} since {error}")
                continue
        nothing = "complete" if shard == (1, 1) else "nothing left to ask in this shard"
        log.info("%s: %s", label, f"{new} questions answered" if new else nothing)
        asked += new
    told = []
    if stopped:
        told.append(
            f"{len(stopped)} of {len(cells)} conditions were stopped by an error, and what they "
            f"had finished is kept: {'; '.join(stopped)}"
        )
    if untrained:
        why = "; ".join(f"{times} since {error}" for error, times in untrained.items())
        told.append(f"{untrained.total()} of {len(cells)} conditions were passed over: {why}")
    if told:
        raise StudyError(". ".join(told))
    return asked


def _recorded(
    cell: Cell,
    workshop: Workshop,
    results: Path,
    n: int | None,
    shard: tuple[int, int],
    *,
    failed: bool,
) -> Path | None:
    """The committed records, where they hold all that is wanted and one's own hold nothing of it.

    No weights are loaded to know that. failed: an answer that failed is none.
    """
    held = runner.recorded(results, cell.condition)
    if held.committed is None or held.whole is not None or held.parts:
        return None
    lines = held.committed.lines
    there = {line["id"] for line in lines if not (failed and "error" in line)}
    return records.committed(results) if wanted(cell, workshop, n, shard) <= there else None


def check_writable(cells: Iterable[Cell], results: Path) -> None:
    """Refuse, before the work, where a cell's record cannot be written: ValueError."""
    for cell in cells:
        root = records.times_beside(results, cell.exhibit) if cell.timed else results
        files.check_output(root / f"{cell.condition.path}.jsonl")


def join(cells: Sequence[Cell], workshop: Workshop, results: Path) -> int:
    """Join the parts of each cell that no run is writing, and ask nothing -> answers joined."""
    joined, tests = 0, registration.tests_of(results.parent)
    for cell in cells:
        folder = registration.destination(results, cell.condition, tests)
        added = runner.join(cell.condition, workshop, folder)
        log.info("%s: %s", cell.condition.path, f"{added} answers joined")
        if written := runner.recorded(folder, cell.condition).written:
            log.warning(
                "%s is not complete: %s is being written; join again when that run has ended",
                *(cell.condition.path, ", ".join(sorted(written))),
            )
        joined += added
    return joined


def wanted(
    cell: Cell, workshop: Workshop, n: int | None, shard: tuple[int, int] = (1, 1)
) -> set[str]:
    """Ids of the questions that a run of the cell is about."""
    i, of = shard
    dataset = workshop.dataset(cell.condition.dataset, cell.condition.split)
    return {q.id for q in dataset.first(least(n, cell.n), cell.kinds).questions[i - 1 :: of]}


def estimate(
    cells: Sequence[Cell],
    workshop: Workshop,
    results: Path,
    *,
    n: int | None,
    shard: tuple[int, int] = (1, 1),
    batch_size: int = 16,
) -> Iterator[str]:
    """What the missing questions would cost: a line per condition and one for all.

    A few questions of one condition are tried per data set, method, retriever and reader; others
    with the same four are reckoned from it, since a trial of each takes minutes. What cannot be
    tried is listed with the reason, unless it is the only condition; nothing is trained or
    downloaded for a trial, and only corpora of `SMALL` passages are indexed.
    """
    total, unknown = 0.0, 0
    tried: dict[tuple, tuple[str, runner.Estimate]] = {}
    tests = registration.tests_of(results.parent)
    for cell in Bar(cells, desc="trying a few questions of each", unit="condition"):
        condition = cell.condition
        named = ", ".join(test.key for test in tests.get(condition.hash, ()))
        decides = f"; decides {named}" if named else ""
        held = runner.recorded(registration.destination(results, condition, tests), condition)
        done = held.ids(shard)
        left = len(wanted(cell, workshop, n, shard) - done)
        alike = (condition.label, condition.method, condition.retriever, condition.reader)
        like, cost = tried.get(alike, ("", None))
        try:
            why = lacking(condition, workshop) if left else None
            if left and not why:
                cost = (
                    replace(cost, missing=left)
                    if cost
                    else runner.estimate(
                        condition, workshop, missing=left, done=done, batch_size=batch_size
                    )
                )
                tried.setdefault(alike, (condition.hash, cost))
        except ValueError as error:
            if len(cells) == 1:
                raise
            why = str(error)
        if why:
            unknown += 1
            yield f"{condition.path}: {left:,} questions, not tried: {why}{decides}"
            continue
        total += cost.seconds if left else 0
        complete = held.is_complete(wanted(cell, workshop, n))
        as_tried = f", as {like}" if like and left else ""
        yield f"{condition.path}: {of_one(left, cost, complete)}{as_tried}{decides}"
    least = f"{unknown} of them not tried; at least" if unknown else "about"
    yield (
        f"{len(cells)} conditions, {least} {duration(total)} on this machine, "
        "besides building indexes and loading weights"
    )


def lacking(condition: Condition, workshop: Workshop) -> str | None:
    """What keeps a trial from beginning at once, in words; None: nothing does."""
    commands = names.untrained(condition.reader, condition.configured.needs)
    if commands:
        return "; ".join(f"{name} is not trained here: {how}" for name, how in commands.items())
    lacks = workshop.lacks(condition, small=SMALL)
    return f"it needs {lacks} first" if lacks else None


def of_one(left: int, cost: runner.Estimate | None, complete: bool) -> str:
    """What is left of one condition, in words; cost: None where there was no trial."""
    if not left:
        return "complete" if complete else "all answered, to be joined"
    if cost is None:
        return f"{left} questions"
    each = ", ".join(f"{count:.1f} {name}" for name, count in cost.cost_a_question.items())
    return (
        f"{left} questions, about {duration(cost.seconds)} ({cost.trial} tried; a question: {each})"
    )


def least(*limits: int | None) -> int | None:
    """The smallest limit that is set; None where none is."""
    return min((limit for limit in limits if limit is not None), default=None)
