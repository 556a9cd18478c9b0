"""The same exhibits on other ground: your data set, your retriever, fewer questions.

What a chapter runs when its parameters are changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..data import is_made_here
from .conditions import ROLES
from .papers import ExhibitMethod, Grid, Paper


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
    `public`). retriever: searches for every method that has one. settings:
    other values for settings that a grid varies.
    """
    exhibits = {}
    for key, exhibit in paper.exhibits.items():
        moved = [
            _grid(grid, datasets, reader, n, seed, settings or {})
            for grid in sorted(exhibit.grids, key=lambda g: ROLES.index(g.role))
        ]
        # Grids that differed in tier and data sets alone are one now.
        once = {repr((g.tier, g.datasets, g.methods, g.settings)): g for g in reversed(moved)}
        exhibits[key] = replace(
            exhibit,
            methods={name: _row(row, retriever) for name, row in exhibit.methods.items()},
            grids=tuple(reversed(once.values())),
        )
    return replace(paper, exhibits=exhibits)


def _row(row: ExhibitMethod, retriever: str | None) -> ExhibitMethod:
    return replace(row, retriever=retriever) if row.retriever and retriever else row


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
    return replace(
        grid,
        tier=tier,
        datasets=tuple(datasets) or grid.datasets,
        reader=reader or grid.reader,
        n=n if n is not None else grid.n,
        seed=grid.seed if seed is None else seed,
        settings=moved,
    )
