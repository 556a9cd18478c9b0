"""One paper, one folder of plain files: what it printed, what we run, what it claims.

`papers/<name>/paper.yaml` lists the exhibits with the grid of conditions that
re-tests each; `tableN.csv` hold the printed values; `claims.yaml` holds the
claims with the contrasts that decide them. Runner, checker, tables, status
page all read these; `audits` reads `audit.yaml`. An unknown key anywhere is refused.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_repro.arguments import path as as_path

from ..words import choices, nearest
from . import checking
from .exhibits import Cell, Exhibit, ExhibitMethod, Grid
from .paper import Claim, Contrast, Gate, Paper, Proof
from .printed import Compared, Gain
from .strict import StudyError, content, listed, strict, table, tuples

__all__ = [
    "Cell",
    "Claim",
    "Contrast",
    "Exhibit",
    "ExhibitMethod",
    "Grid",
    "Paper",
    "StudyError",
    "exhibit",
    "load",
    "names",
    "read",
]

PAPERS = Path(__file__).parent / "papers"
ENVIRONMENT = "RAG_REPRO_PAPERS"
ORDER = ("drrag", "erm4", "dragin", "r2ag", "together", "tools")  # of the book


def names() -> list[str]:
    """The papers at hand, in the book's order; then those that RAG_REPRO_PAPERS names."""
    return sorted(_folders(), key=_place)


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _folders() -> dict[str, Path]:
    own = os.environ.get(ENVIRONMENT)
    found: dict[str, Path] = {}
    for where in [PAPERS, *([as_path(own)] if own else [])]:
        if not where.is_dir():
            raise StudyError(f"{ENVIRONMENT} names {where}, which is no folder")
        for file in where.glob("*/paper.yaml"):
            name = file.parent.name
            if name in found:
                raise StudyError(f"{file.parent}: there is a paper {name!r} already; rename yours")
            found[name] = file.parent
    return found


@lru_cache
def load(name: str) -> Paper:
    """A paper by name; everything in its files checked."""
    known = _folders()
    if name not in known:
        raise StudyError(f"there is no paper {name!r}{nearest(name, known)}")
    return read(known[name])


def exhibits(timed: bool) -> list[str]:
    """The full names of all exhibits that `rag-repro time` makes, or that `run` does."""
    held = [exhibit for name in names() for exhibit in load(name).exhibits.values()]
    return [exhibit.name for exhibit in held if exhibit.timed == timed and exhibit.grids]


def exhibit(full_name: str) -> tuple[Paper, Exhibit]:
    """An exhibit by its full name, as `drrag.table5`."""
    paper, _, key = full_name.partition(".")
    # The other papers take seconds to check: they are read only for who misspelt.
    if paper in _folders() and key in load(paper).exhibits:
        return load(paper), load(paper).exhibits[key]
    known = [f"{paper}.{key}" for paper in names() for key in load(paper).exhibits]
    raise StudyError(
        f"there is no exhibit {full_name!r}{choices(full_name, known, 'rag-repro status')}"
    )


def read(folder: Path) -> Paper:
    """A paper from its folder. Raises StudyError with file, place and what is wrong."""
    where = f"{folder.name}/paper.yaml"
    raw = table(content(folder / "paper.yaml"), where)
    exhibits = {
        key: _exhibit(key, entry, folder.name, f"{where}, exhibit {key}")
        for key, entry in table(raw.pop("exhibits", None), f"{where}, exhibits").items()
    }
    where_claims = f"{folder.name}/claims.yaml"
    claims = tuple(
        _claim(entry, f"{where_claims}, claim {number}")
        for number, entry in enumerate(
            listed(content(folder / "claims.yaml"), where_claims), start=1
        )
    )
    raw["kinds"] = tuples(table(raw.get("kinds", {}), f"{where}, kinds"), f"{where}, kinds")
    if "gate" in raw:
        raw["gate"] = strict(Gate, tuples(raw["gate"], f"{where}, gate"), f"{where}, gate")
    raw["proofs"] = tuple(
        strict(Proof, table(one, f"{where}, proofs"), f"{where}, proof {number}")
        for number, one in enumerate(listed(raw.get("proofs"), f"{where}, proofs"), start=1)
    )
    paper = strict(
        Paper,
        {**raw, "name": folder.name, "folder": folder, "exhibits": exhibits, "claims": claims},
        where,
    )
    for problem in checking.problems(paper):
        raise StudyError(problem)
    return paper


def _exhibit(key: str, entry: Any, paper: str, place: str) -> Exhibit:
    given = table(entry, place)
    methods = {
        name: strict(
            ExhibitMethod,
            _tuples_in("settings", row, f"{place}, method {name}"),
            f"{place}, method {name}",
        )
        for name, row in table(given.pop("methods", None), f"{place}, methods").items()
    }
    grids = []
    for i, grid in enumerate(listed(given.pop("grids", None), f"{place}, grids"), start=1):
        where = f"{place}, grid {i}"
        grids.append(strict(Grid, _tuples_in("fixed", tuples(grid, where), where), where))
        for name in grids[-1].methods:
            if name not in methods:
                raise StudyError(f"{place}: no method {name!r}{nearest(name, methods)}")
    made = {"name": f"{paper}.{key}", "methods": methods, "grids": tuple(grids)}
    return strict(Exhibit, {**tuples(given, place), **made}, place)


def _claim(entry: Any, where: str) -> Claim:
    given = table(entry, where)
    if isinstance(given.get("id"), str):
        where = f"{where.rsplit(' ', 1)[0]} {given['id']}"
    parts = listed(given.get("contrasts"), f"{where}, contrasts")
    contrasts = tuple(_contrast(part, where) for part in parts)
    printed = tuple(
        strict(Compared, table(part, where), f"{where}, printed {number}")
        for number, part in enumerate(listed(given.get("printed"), f"{where}, printed"), start=1)
    )
    changed = given.get("changed", ())
    given["changed"] = [changed] if isinstance(changed, str) else changed
    given = {**tuples(given, where), "contrasts": contrasts, "printed": printed}
    return strict(Claim, given, where)


def _contrast(entry: Any, where: str) -> Contrast:
    given = tuples(entry, where)
    if "printed" in given:
        place = f"{where}, printed"
        given["printed"] = strict(Gain, table(given["printed"], place), place)
    return strict(Contrast, given, where)


def _tuples_in(key: str, entry: Any, where: str) -> dict[str, Any]:
    """The same of one entry's own table: a setting that is a list, as RIND's factors."""
    given = table(entry, where)
    return {**given, key: tuples(given[key], f"{where}, {key}")} if key in given else given
