"""The same exhibits on other ground: your data set, your retriever, fewer questions.

What a chapter runs when its parameters are changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..data import is_made_here
from ..words import nearest
from .conditions import ROLES
from .names import label
from .papers import ExhibitMethod, Grid, Paper, StudyError

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
    other values for settings that a grid varies
    or fixes; what a grid fixes takes the first of them.
    """
    exhibits = {}
    for key, exhibit in paper.exhibits.items():
        # What is tuned on belongs to its own data set, and moves to no other.
        grids = [g for g in exhibit.grids if not datasets or g.split == "test"]
        moved = [(_grid(g, datasets, reader, n, seed, settings or {}), g) for g in grids]
        # Of grids that are one now, that of the tier moved to stays: its classifier is right.
        moved.sort(key=lambda pair: (ROLES.index(pair[0].role), pair[0].tier != pair[1].tier))
        exhibits[key] = replace(
            exhibit,
            methods={name: _row(row, retriever) for name, row in exhibit.methods.items()},
            grids=_once(grid for grid, _ in moved),
        )
    return replace(paper, exhibits=exhibits)


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

    left = {
        key: replace(paper.exhibit(key), grids=tuple(map(kept, paper.exhibit(key).grids)))
        for key in exhibits
    }
    return replace(paper, exhibits={**paper.exhibits, **left})


def _once(grids: Iterable[Grid]) -> tuple[Grid, ...]:
    """The grids without the methods of which an earlier one has every cell."""
    seen: set[str] = set()
    kept = []
    for grid in grids:
        new = {name: _cells(grid, name) - seen for name in grid.methods}
        seen = seen.union(*new.values())
        if names := tuple(name for name, cells in new.items() if cells):
            kept.append(replace(grid, methods=names))
    return tuple(kept)


def _cells(grid: Grid, method: str) -> set[str]:
    settings = itertools.product(*grid.settings.values())
    where = grid.tier, grid.datasets, grid.split, method, tuple(grid.settings)
    return {repr((where, values)) for values in settings}


def _row(row: ExhibitMethod, retriever: str | None) -> ExhibitMethod:
    moves = row.retriever and retriever and row.retriever not in (CHANCE, retriever)
    if not moves:
        return row
    # The row's own name may be that of what searched before, as SM.
    return replace(row, retriever=retriever, label=f"{row.label}, by {label(retriever)}")


def _grid(
    grid: Grid,
    datasets: Sequence[str],
    reader: str | None,
    n: int | None,
    seed: int | None,
    settings: Mapping[str, Sequence[Any]],
) -> Grid:
    moved = {name: tuple(settings.get(name, values)) for name, values in grid.settings.items()}
    tier = grid.tier
    if datasets:
        tier = "testbed" if all(name.startswith("world-") for name in datasets) else "public"
    handed = tier != "testbed" and not any(map(is_made_here, datasets))
    if "own_candidates" in moved and not handed:
        moved["own_candidates"] = (False,)  # worlds and folders hand out none
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
        settings=moved,
        fixed={name: settings.get(name, (value,))[0] for name, value in grid.fixed.items()},
    )
