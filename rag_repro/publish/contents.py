"""What the sources of the chapters say of themselves: their claims, their deviations.

Read from the scripts, so that it can be had before any chapter is executed.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from typing import Any

from rag_repro.book_folders import BookFolders, here
from rag_repro.publish.notebook_pairs import PairError, read_source


def claims(places: BookFolders | None = None) -> dict[str, str]:
    """Claim -> the chapter that decides it: the first whose CLAIMS name it."""
    places = places or here()
    found: dict[str, str] = {}
    for name in places.names():
        cells = (c.source for c in _cells(name, places, "code") if "CLAIMS =" in c.source)
        for claim in _evaluated(next(cells, ""), name):
            found.setdefault(claim, name)
    return found


def _evaluated(source: str, name: str) -> list[str]:
    """What CLAIMS is, by the cell's plain assignments; nothing else of it runs. Else PairError."""
    held: dict[str, Any] = {"__builtins__": {"range": range}}
    for statement in ast.parse(source).body:
        called = any(isinstance(node, ast.Attribute) for node in ast.walk(statement))
        if isinstance(statement, ast.Assign) and not called:
            with contextlib.suppress(NameError, TypeError):  # one that calls something else
                exec(compile(ast.Module([statement], []), name, "exec"), held)
    if source and "CLAIMS" not in held:
        raise PairError(f"{name}: CLAIMS is not made of literals and names beside it")
    return list(held.get("CLAIMS", ()))


def deviations(places: BookFolders) -> dict[str, str]:
    """Chapter -> the Markdown below the heading of its deviations, of those that have any."""
    return {
        name: cell.source.partition("\n")[2].strip()
        for name in places.names()
        for cell in _cells(name, places, "markdown")
        if "deviations" in cell.metadata.get("tags", [])
    }


def titles(places: BookFolders) -> dict[str, str]:
    """Chapter -> its title."""
    return {
        name: cell.source.partition("\n")[0].lstrip("# ").strip()
        for name in places.names()
        for cell in list(_cells(name, places, "markdown"))[:1]
    }


def _cells(name: str, places: BookFolders, kind: str) -> Iterator[Any]:
    return (c for c in read_source(places.source(name)).cells if c.cell_type == kind)
