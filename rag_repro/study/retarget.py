"""The same exhibits on other ground: your data set, your retriever, fewer questions.

What a chapter runs when its parameters are changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import mode
from typing import Any

from rag_repro.data import may_have_candidates
from rag_repro.methods import base
from rag_repro.study.conditions import ROLES
from rag_repro.study.exhibits import Exhibit, ExhibitMethod, Grid, alias
from rag_repro.study.names import label
from rag_repro.study.papers import Paper, StudyError
from rag_repro.words import nearest

CHANCE = "random"  # the retriever that is a control, whatever searches otherwise


def retarget(
    paper: Paper,
    *,
    datasets: Sequence[str] = (),
    retriever: str | None = None,
    reader: str | None = None,
    n: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Sequence[Any]] | None = None,
) -> Paper:
    """The paper with every condition moved; what is not given stays.

    datasets: put in place of each grid's own (tier `testbed` for worlds, else
    `public`). retriever: searches for every method that has one but the random one. settings:
    other values for settings that a grid varies or fixes, or that rows have; what is not varied
    takes the first of them. A row keeps what tells it from most.
    """
    exhibits = {}
    for key, exhibit in paper.exhibits.items():
        # What is tuned on belongs to its own data set, and moves to no other; so do the papers'
        # large readers.
        grids = [g for g in exhibit.grids if not datasets or _moves(g, reader)]
        moved = [
            (_grid(_given(exhibit, g, settings or {}), datasets, reader, n, seed), g) for g in grids
        ]
        # Of grids that are one now, that of the tier moved to stays: its classifier is right.
        moved.sort(key=lambda pair: (ROLES.index(pair[0].role), pair[0].tier != pair[1].tier))
        exhibits[key] = replace(
            exhibit,
            methods={
                name: _row(_set(exhibit, row, settings or {}), retriever, datasets)
                for name, row in exhibit.methods.items()
            },
            grids=_once((grid for grid, _ in moved), bool(datasets)),
        )
    return replace(paper, exhibits=exhibits)


def _moves(grid: Grid, reader: str | None) -> bool:
    return grid.split == "test" and (grid.tier != "paper" or reader is not None)


def only(paper: Paper, exhibits: Sequence[str], methods: Sequence[str]) -> Paper:
    """The paper with these rows alone in the grids of these exhibits.

    Raises StudyError, with the nearest one, for a row that none of them has.
    """
    known = {name for key in exhibits for name in paper.exhibit(key).methods}
    for name in methods:
        if name not in known:
            raise StudyError(f"no row {name!r} in {', '.join(exhibits)}{nearest(name, known)}")

    def kept(grid: Grid) -> Grid:
        return replace(grid, methods=tuple(name for name in grid.methods if name in methods))

    left = {key: paper.exhibit(key).regrid(kept) for key in exhibits}
    return replace(paper, exhibits={**paper.exhibits, **left})


def _once(grids: Iterable[Grid], elsewhere: bool) -> tuple[Grid, ...]:
    """The grids without the methods of which an earlier one has every cell.

    elsewhere: they are on one ground now, where what each fixed for its own (a classifier, a
    reader) tells them apart no more.
    """
    seen: set[str] = set()
    kept = []
    for grid in grids:
        new = {name: _cells(grid, name, elsewhere) - seen for name in grid.methods}
        seen = seen.union(*new.values())
        if names := tuple(name for name, cells in new.items() if cells):
            kept.append(replace(grid, methods=names))
    return tuple(kept)


def _cells(grid: Grid, method: str, elsewhere: bool) -> set[str]:
    where = grid.tier, grid.datasets, grid.split, method
    if not elsewhere:
        where += grid.reader, grid.retriever, grid.fixed, grid.trained, grid.seeds
    return {repr((where, varied)) for varied in grid.varied}


def _set(
    exhibit: Exhibit, row: ExhibitMethod, settings: Mapping[str, Sequence[Any]]
) -> ExhibitMethod:
    """The row with these settings, where it can take them and has what most rows have."""
    [own] = [name for name, one in exhibit.methods.items() if one is row]
    for name in settings if row.run else ():
        held = [repr(one.settings.get(name)) for one in exhibit.methods.values() if one.run]
        made = replace(row, settings={**row.settings, name: settings[name][0]})
        its = [grid for grid in exhibit.grids if own in grid.methods]
        if mode(held) == repr(row.settings.get(name)) and all(_can(made, grid) for grid in its):
            row = made
    return row


def _can(row: ExhibitMethod, grid: Grid) -> bool:
    """Whether the row's method takes all that it and the grid set: that it has each setting, and
    that none would do nothing."""
    if not row.run:
        return True
    method, own = alias(row)
    try:
        for varied in grid.varied:
            base.get(method).configure({**own, **grid.fixed, **varied})
    except ValueError:
        return False
    return True


def _row(row: ExhibitMethod, retriever: str | None, datasets: Sequence[str]) -> ExhibitMethod:
    row = replace(row, settings=_searching(row.settings, datasets))
    if not (row.retriever and retriever and row.retriever not in (CHANCE, retriever)):
        return row
    # The row's own name may be that of what searched before, as SM.
    return replace(row, retriever=retriever, label=f"{row.label}, by {label(retriever)}")


def _given(exhibit: Exhibit, grid: Grid, settings: Mapping[str, Sequence[Any]]) -> Grid:
    """The grid with those of these settings that it has, where all of its rows can take them."""
    for name, values in settings.items():
        made = grid
        if name in grid.settings:
            made = replace(grid, settings={**grid.settings, name: tuple(values)})
        elif name in grid.fixed:
            made = replace(grid, fixed={**grid.fixed, name: values[0]})
        if made is grid or all(_can(exhibit.methods[row], made) for row in grid.methods):
            grid = made
    return grid


def _grid(
    grid: Grid,
    datasets: Sequence[str],
    reader: str | None,
    n: int | None,
    seed: int | None,
) -> Grid:
    tier = grid.tier
    if datasets:
        tier = "testbed" if all(name.startswith("world-") for name in datasets) else "public"
    # What was trained over one reader says nothing of another.
    other = reader is not None and reader != grid.reader
    kept = tuple(m for m in grid.methods if not (other and m in grid.trained))
    return replace(
        grid,
        tier=tier,
        datasets=tuple(datasets) or grid.datasets,
        methods=kept,
        reader=reader or grid.reader,
        n=n if n is not None else grid.n,
        seed=grid.seed if seed is None else seed,
        settings=_searching(grid.settings, datasets, (False,)),
        fixed=_searching(grid.fixed, datasets),
    )


def _searching(
    settings: Mapping[str, Any], datasets: Sequence[str], none: Any = False
) -> Mapping[str, Any]:
    """The settings for data sets some of whose questions come without candidates."""
    if "own_candidates" not in settings or all(map(may_have_candidates, datasets)):
        return settings
    return {**settings, "own_candidates": none}
