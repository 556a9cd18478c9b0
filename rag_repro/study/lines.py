"""A record file's bytes: header and lines taken apart, checked, put together.

The file is JSON Lines. What is wrong with one is told by name and line, with the remedy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rag_repro.evaluation.metrics import METRICS
from rag_repro.plain import PlainError, from_json, shortened
from rag_repro.study.conditions import Condition
from rag_repro.study.files import trouble
from rag_repro.study.line_fields import EXACT, Amount, Count, Name, Number, Rank, Text, TraceFields

FORMAT = 1
# What every header begins with, so that a torn one is told from somebody else's file.
START = json.dumps({"format": FORMAT, "identity": {}}).encode().removesuffix(b"{}}")
ENDING, MANIFEST, SHARD = ".jsonl", ".manifest.json", ".shard-"
READ = "rag_repro.record"
"""The audit event of a look at a record: ROOT/PATH; ROOT/ of a look at all of them."""
AGAIN = "and run the same command again"
RESTORE = "restore the file from version control, or delete it and run its condition again"


def _scores(scores: dict[str, float]) -> dict[str, float]:
    """By their units: a share, or how much of something; what the registry lacks is not ours."""
    for name, value in scores.items():
        metric = METRICS.get(name)
        if metric and metric.needs != "line":
            most = 1 if metric.unit == "percent" else float("inf")
            if not 0 <= value <= most:
                raise ValueError(f"{name} is {value!r}")
    return scores


class Turn(TypedDict):
    """One timed answer. clock: [kind, seconds, items] of each thing that took time."""

    __pydantic_config__ = EXACT
    seconds: Amount
    clock: list[tuple[Text, Amount, Count]]


class _Needed(TypedDict):
    id: Name
    cluster: Name
    hits: list[Name]
    scores: Annotated[dict[Text, Number], AfterValidator(_scores)]


class _Known(TypedDict, total=False):
    """gold: [role, hop, rank among the hits or None]."""

    kind: Name | None
    hops: Count | None
    gold: list[tuple[Name | None, Count | None, Rank | None]]
    cost: dict[Text, Count]
    text: Text
    prediction: Text | None
    remembered: list[Name]
    error: Text
    turns: list[Turn]


class Line(_Needed, _Known, TraceFields):
    """One answer's line: what every one has, then what parts of a method's trace leave."""


FIELDS = (
    *("id", "kind", "hops", "cluster", "hits", "gold", "scores", "cost"),
    *TraceFields.__annotations__,
    *("text", "prediction", "remembered", "error", "turns"),
)
"""In the order in which a line is written."""


@cache
def _line_type() -> TypeAdapter:
    return TypeAdapter(Line)


class RecordError(ValueError):
    """A record file that cannot be used; the message names it and the remedy."""


@dataclass(frozen=True)
class Record:
    """A condition's stored answers: header and lines, in the order of the run."""

    path: Path
    header: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def by_question(self) -> dict[str, Mapping[str, Any]]:
        return {line["id"]: line for line in self.lines}

    @property
    def content(self) -> bytes:
        """As a file of JSON lines."""
        head = json.dumps(self.header, ensure_ascii=False).encode() + b"\n"
        return b"".join([head, *map(line_bytes, self.lines)])


def read(path: Path) -> Record | None:
    """The file taken apart; None where a kill or power cut left no whole header.

    A last line without its end is left out, as are the zeros that a power cut
    can leave in its place. Raises RecordError, and FileNotFoundError where there is no file.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordError(f"{path} cannot be read ({trouble(error)})") from error
    whole = data[: data.rfind(b"\n") + 1]
    if not whole:
        torn = data.rstrip(b"\0")
        if START.startswith(torn) or torn.startswith(START):
            return None
        raise _foreign(path)
    first, *rest = whole.splitlines()
    try:
        header = from_json(first)
    except PlainError as error:
        raise _foreign(path) from error
    parts = isinstance(header, dict) and [header.get(key) for key in ("identity", "fingerprint")]
    if not parts or header.get("format") != FORMAT or not all(isinstance(p, dict) for p in parts):
        raise _foreign(path)
    lines: dict[str, dict] = {}
    for number, text in enumerate(rest, start=2):
        try:
            line = from_json(text)
        except PlainError as error:
            raise RecordError(f"{path}, line {number}: {error}; {RESTORE}") from error
        if fault := _fault(line):
            raise RecordError(f"{path}, line {number}: not an answer's record ({fault}); {RESTORE}")
        if line["id"] in lines:
            raise RecordError(
                f"{path}, line {number}: question {line['id']!r} is recorded twice; {RESTORE}"
            )
        lines[line["id"]] = line
    return Record(path, header, tuple(lines.values()))


def _foreign(path: Path) -> RecordError:
    return RecordError(
        f"{path} is no record file of format {FORMAT} (its first line is not our header); "
        "move it away"
    )


def _fault(line: Any) -> str:
    """The first thing of an answer's line that is not as it must be: where it is, and what stands
    there; "" where all is well.
    """
    try:
        _line_type().validate_python(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    else:
        return ""
    place = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function"))
    if first["type"] == "missing":
        return f"it lacks {place!r}"
    return f"{place or 'the line'!r} is {shortened(repr(first['input']), 60)}"


def check_identity(path: Path, header: Mapping[str, Any], condition: Condition) -> None:
    """Raise RecordError where the file is not this condition's."""
    if header["identity"] != json.loads(json.dumps(condition.identity)):
        raise RecordError(
            f"{path} was made under another condition than its name says: "
            f"{difference(header['identity'], condition.identity)}; move it away"
        )


def difference(
    stored: Mapping[str, Any],
    wanted: Mapping[str, Any],
    sides: tuple[str, str] = ("stored", "now"),
) -> str:
    """As "k: stored 3, now 4; seed: stored 0, now 1"; sides: in place of these two words."""
    one, other = sides
    parts = [
        f"{key}: {one} {shortened(repr(stored.get(key)))}, {other} {wanted.get(key)!r}"
        for key in sorted({*stored, *wanted})
        if stored.get(key) != wanted.get(key)
    ]
    return "; ".join(parts)


def line_bytes(line: Mapping[str, Any]) -> bytes:
    """An answer's line. Raises RecordError for what could not be read back.

    Half a character, which an odd reader can write, is kept as JSON's escape.
    """
    fault = _fault(line)
    try:
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, TypeError) as error:
        fault = fault or str(error)
    if fault:
        raise RecordError(f"an answer that cannot be recorded, {line.get('id')!r}: {fault}")
    return text.encode("utf-8", "backslashreplace") + b"\n"
