"""What every reader gives, whatever the format: one `Record` a question.

`build` turns records into a `Dataset`. `Row` takes fields out of an untrusted
JSON object and says file, place and remedy where one is missing or odd: a `DataError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_repro.plain import escaped, shortened
from rag_repro.schema import Interpretation


class DataError(ValueError):
    """A public data set cannot be read as it stands.

    `path` and `place` ("line 12", "record 3", or "" for the whole file) say
    where; the message ends with what to do next.
    """

    def __init__(self, path: Path | str, place: str, problem: str, remedy: str):
        self.path, self.place = Path(path), place
        # A place may name a key of the file, which may be of any length.
        where = f"{path}, {shortened(place)}" if place else str(path)
        super().__init__(escaped(f"{where}: {shortened(problem, 400)}; {remedy}"))


class MissingFile(DataError):
    """The file, or its folder, is not there."""


class UnknownName(ValueError):
    """No such data set, format or split; the message has the nearest name."""


@dataclass(frozen=True, slots=True)
class Doc:
    """A passage as handed out; `id` only where the source names it."""

    title: str
    text: str
    gold: bool = False
    id: str | None = None


@dataclass(frozen=True, slots=True)
class RecordStep:
    """One single-hop step; `title` or `doc` (index in docs) says where it is supported."""

    question: str
    answer: str
    hop: int
    doc: int | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One question of a file.

    gold_titles: gold passages known by title alone; looked up in the corpus.
    gold_ids: gold passages known by the ids of the corpus file.
    place: where in the file it stands, for error messages.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    place: str
    kind: str | None = None
    hops: int | None = None
    docs: tuple[Doc, ...] = ()
    gold_titles: tuple[str, ...] = ()
    gold_ids: tuple[str, ...] = ()
    steps: tuple[RecordStep, ...] = ()
    interpretations: tuple[Interpretation, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


_KINDS = {
    str: "a string",
    list: "an array",
    dict: "an object",
    bool: "true or false",
    int: "a whole number",
}
_REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Row:
    """A JSON object with its place; `take` is the only way at its fields."""

    path: Path
    place: str
    fields: Mapping[str, Any]

    def bad(self, problem: str, remedy: str = "correct or remove this question") -> DataError:
        return DataError(self.path, self.place, problem, remedy)

    def take(self, key: str, kind: type, default: Any = _REQUIRED) -> Any:
        """fields[key], of the given kind; `default` where absent or null."""
        value = self.fields.get(key)
        if value is None:
            if default is _REQUIRED:
                held = shortened(", ".join(sorted(map(str, self.fields))) or "none")
                raise self.bad(
                    f"no field {key!r} (it has {held})",
                    "check that format and file go together",
                )
            return default
        # bool is an int to Python, and never what a count is meant to be.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.bad(f"field {key!r} is not {_KINDS[kind]}: {str(value)[:60]!r}")
        return value

    def strings(self, key: str, default: Any = _REQUIRED) -> tuple[str, ...]:
        """A list of strings, blanks and repetitions left out, in order."""
        values = self.take(key, list, default)
        if not all(isinstance(v, str) for v in values):
            raise self.bad(f"field {key!r} has something other than strings")
        return unique(values)

    def text(self, key: str) -> str:
        """A string without blanks at its ends."""
        return self.take(key, str).strip()

    def inner(self, value: Any, what: str) -> Row:
        """A row for an object inside this one, at the same place."""
        if not isinstance(value, Mapping):
            raise self.bad(f"{what} is not an object: {str(value)[:60]!r}")
        return Row(self.path, f"{self.place}, {what}", value)

    def objects(self, key: str, what: str, default: Any = _REQUIRED) -> list[Row]:
        """A row for each object of a list; what: one of them, for messages."""
        values = self.take(key, list, default)
        return [self.inner(value, f"{what} {i}") for i, value in enumerate(values)]

    def note(self, ident: str, seen: dict[str, str]) -> None:
        """Write a passage's id down with its place. Raises DataError for one that was there."""
        if ident in seen:
            raise self.bad(
                f"passage id {ident!r} was {seen[ident]} already",
                "give each passage an id of its own",
            )
        seen[ident] = self.place


def unique(values) -> tuple[str, ...]:
    """Without blanks and repetitions, in the order of first occurrence."""
    return tuple(dict.fromkeys(v.strip() for v in values if v.strip()))
