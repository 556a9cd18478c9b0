"""The rooms of the package in their order: no import runs upward, none to a room beside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import rag_repro

PACKAGE = Path(rag_repro.__file__).parent
ORDER = (
    {
        "words",
        "plain",
        "digest",
        "bars",
        "logs",
        "arguments",
        "without_jax",
        "book_folders",
    },
    {"schema", "splitter"},
    {"cache", "post", "evaluation"},
    {"lm", "retrieval"},
    {"data", "engine"},
    {"methods"},
    {"study"},
    {"training"},
    {"analysis"},
    {"show"},
    {"publish"},
    {"quick", "comparison", "workflow", "commands"},
    {"cli", "__init__"},
)
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
HELPERS = ORDER[0]  # small ones, which may use each other
ENTRANCES = ORDER[-2]  # what users begin with, which may use each other


def imported(file: Path) -> Iterator[str]:
    """The rooms whose modules a file imports, inside its functions too."""
    inside = file.relative_to(PACKAGE.parent).with_suffix("").parts
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(inside[: len(inside) - node.level]) if node.level else ""
            origin = ".".join(filter(None, (base, node.module)))
            names = [f"{origin}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == PACKAGE.name and rest.partition(".")[0] in RANK:
                yield rest.partition(".")[0]


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def test_every_room_has_its_place():
    rooms = {room_of(file) for file in PACKAGE.rglob("*.py")}
    assert rooms == set(RANK)


def test_no_import_runs_upward_or_to_a_room_beside():
    wrong = []
    for file in PACKAGE.rglob("*.py"):
        room = room_of(file)
        for other in imported(file):
            beside = RANK[other] == RANK[room] and room not in HELPERS | ENTRANCES
            if other != room and (RANK[other] > RANK[room] or beside):
                wrong.append(f"{file.relative_to(PACKAGE)} imports {other}")
    assert not wrong
