"""A memory on disk while it is filled: a header, and a line of JSON for each question.

A line is on the disk before the next begins, so that a killed run goes on where it stopped;
a torn last line is cut off and its question asked again. A file of another make, and one that
is damaged otherwise, is refused by name. The order of the lines does not matter: whoever reads
them takes the questions in theirs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..digest import forget_parts, write_whole
from ..plain import PlainError, fits, from_json, shortened
from ..schema import Passage
from .files import alone, set_aside, trouble

FORMAT = 1
AGAIN = "delete it, and it is filled anew"


class ReservoirFileError(ValueError):
    """A memory's file that cannot be used; the message names it and the remedy."""


@dataclass(frozen=True)
class Brought:
    """What one question brings into the memory.

    passages: in the order of their remembering. found: each query with the ids of what it
    found, best first.
    """

    question: str
    passages: tuple[Passage, ...]
    found: tuple[tuple[str, tuple[str, ...]], ...]

    def line(self) -> bytes:
        made = {
            "id": self.question,
            "passages": [[p.id, p.title, p.text] for p in self.passages],
            "found": [[query, list(ids)] for query, ids in self.found],
        }
        return json.dumps(made | {"sum": _sum(made)}, ensure_ascii=True).encode() + b"\n"


def _sum(made: Mapping[str, Any]) -> str:
    """What a line says of its own content, so that a changed one is no passage of a memory."""
    return hashlib.sha256(json.dumps(made, ensure_ascii=True).encode()).hexdigest()[:16]


_LINE = {"id": str, "passages": list[list[str]], "found": list[list[Any]]}


def header_bytes(made: Mapping[str, Any]) -> bytes:
    """made: all that can change what is in the file, as JSON has it."""
    return json.dumps({"reservoir": FORMAT, "made": dict(made)}, ensure_ascii=True).encode() + b"\n"


def read(path: Path) -> tuple[dict[str, Any], list[Brought], int]:
    """The header's `made`, the whole lines, and how many bytes these are. ReservoirFileError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReservoirFileError(f"{path} cannot be read ({trouble(error)})") from error
    whole = data[: data.rfind(b"\n") + 1]
    first, *rest = whole.splitlines() or [b""]
    made = _header(path, first)
    brought: dict[str, Brought] = {}
    for number, row in enumerate(rest, start=2):
        one = _brought(path, number, row)
        if one.question in brought:
            raise ReservoirFileError(
                f"{path}, line {number}: question {one.question!r} is there twice; {AGAIN}"
            )
        brought[one.question] = one
    return made, list(brought.values()), len(whole)


def _header(path: Path, first: bytes) -> dict[str, Any]:
    try:
        header = from_json(first)
    except PlainError:
        header = None
    known = isinstance(header, dict) and set(header) == {"reservoir", "made"}
    if not known or header["reservoir"] != FORMAT or not isinstance(header["made"], dict):
        raise ReservoirFileError(
            f"{path} is no memory's file of format {FORMAT} (its first line is not our header); "
            "move it away"
        )
    return header["made"]


def _brought(path: Path, number: int, row: bytes) -> Brought:
    try:
        line = from_json(row)
    except PlainError as error:
        raise ReservoirFileError(f"{path}, line {number}: {error}; {AGAIN}") from error
    # Files of before there were sums have none.
    given = line.pop("sum", None) if isinstance(line, dict) else None
    right = isinstance(line, dict) and set(line) == set(_LINE)
    right = right and all(fits(line[key], kind) for key, kind in _LINE.items())
    right = right and all(len(one) == 3 for one in line["passages"])
    right = right and all(
        len(one) == 2 and isinstance(one[0], str) and fits(one[1], list[str])
        for one in line["found"]
    )
    if right and given is not None and given != _sum(line):
        raise ReservoirFileError(f"{path}, line {number}: its checksum is another; {AGAIN}")
    if not right:
        raise ReservoirFileError(
            f"{path}, line {number}: not what a question brings "
            f"({shortened(repr(line), 60)}); {AGAIN}"
        )
    return Brought(
        line["id"],
        tuple(Passage(*one) for one in line["passages"]),
        tuple((query, tuple(ids)) for query, ids in line["found"]),
    )


class Writer:
    """Appends to a memory's file; see `opened`."""

    def __init__(self, path: Path, brought: Sequence[Brought], descriptor: int):
        self.path, self.brought = path, list(brought)
        self._descriptor = descriptor

    def append(self, one: Brought) -> None:
        """On the disk before this returns."""
        left = memoryview(one.line())
        try:
            while left:  # a disk that fills up takes a part of a line
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise _stuck(self.path, error) from error
        self.brought.append(one)


@contextmanager
def opened(path: Path, made: Mapping[str, Any]) -> Iterator[Writer]:
    """The file, to be gone on with, alone: a second run waits here.

    A file that was made otherwise goes aside under another name, as what it was made with is
    no longer there. ReservoirFileError: it is foreign or damaged, or the disk takes nothing.
    """
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(alone(path.with_name(path.name + ".lock")))
            forget_parts(path)
            if path.exists() and read(path)[0] != dict(made):
                set_aside(path)
            if not path.exists():
                write_whole(path, header_bytes(made))
            _, brought, size = read(path)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
            stack.callback(os.close, descriptor)
            os.ftruncate(descriptor, size)
        except OSError as error:
            raise _stuck(path, error) from error
        yield Writer(path, brought, descriptor)


def _stuck(path: Path, error: OSError) -> ReservoirFileError:
    return ReservoirFileError(
        f"{path} cannot be written ({trouble(error)}, and run the same command again)"
    )
