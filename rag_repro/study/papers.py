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
from .paper import Claim, Contrast, Paper
from .strict import StudyError, build, content, listed, table

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
    where = f"{folder.name}/claims.yaml"
    entries = enumerate(listed(content(folder / "claims.yaml"), where), start=1)
    claims = [_claim(entry, f"{where}, claim {number}") for number, entry in entries]
    where = f"{folder.name}/paper.yaml"
    raw = table(content(folder / "paper.yaml"), where)
    exhibits = table(raw.get("exhibits"), f"{where}, exhibits")
    exhibits = {
        key: {**table(one, f"{where}, exhibit {key}"), "name": f"{folder.name}.{key}"}
        for key, one in exhibits.items()
    }
    own = {"name": folder.name, "folder": folder, "exhibits": exhibits, "claims": claims}
    paper = build(Paper, {**raw, **own}, where)
    for problem in checking.problems(paper):
        raise StudyError(problem)
    return paper


def _claim(entry: Any, where: str) -> Claim:
    given = table(entry, where)
    if isinstance(given.get("id"), str):
        where = f"{where.rsplit(' ', 1)[0]} {given['id']}"
    if isinstance(given.get("changed"), str):
        given["changed"] = [given["changed"]]
    return build(Claim, given, where)
