"""A record file's bytes: header and lines taken apart, checked, put together.

The file is JSON Lines, in the open (`.jsonl`) or compressed (`.jsonl.xz`,
half as long as gzip's, whose window is shorter than the ids repeat). What
is wrong with one is told by name and line, with the remedy.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..evaluation.registry import METRICS
from ..plain import PlainError, from_json, shortened
from . import attentions, compressions, drafts, knowledge, queries, told
from .conditions import Condition
from .files import trouble
from .shapes import (
    Shape,
    every,
    is_amount,
    is_count,
    is_name,
    is_number,
    is_share,
    is_text,
    maybe,
    row,
    whole,
)

FORMAT = 1
# What every header begins with, so that a torn one is told from somebody else's file.
START = json.dumps({"format": FORMAT, "identity": {}}).encode().removesuffix(b"{}}")
PLAIN, PACKED = ".jsonl", ".jsonl.xz"
LARGEST = 1 << 28  # bytes of a record unpacked; ours have one million at most
RESTORE = "restore the file from version control, or delete it and run its condition again"

# What an answer's line must hold, and what it may.
_NEEDED = {"id": str, "cluster": str, "hits": list, "scores": dict}
_KNOWN = {
    **{"kind": str | None, "gold": list, "cost": dict},
    **{"text": str, "prediction": str | None, "remembered": list, "error": str},
    **{"judged": list, "turns": list},
    **{"decided": list, "critique": list, "timing": list, "dynamic": dict, "variants": list},
    **{"queries": list, "influence": list, "likelihood": list},
    **{"compressed": dict, "attention": dict},
    **{"counts": dict, "filter": list, "trigger": list, "held": list},
}

# Of scores: a share, or how much of something; what the registry does not know is not ours.
_SCORES: Mapping[str, Shape] = {
    name: is_share if metric.unit == "percent" else is_amount
    for name, metric in METRICS.items()
    if metric.needs != "line"
}

_AMOUNTS: Mapping[str, Shape] = {"hops": maybe(is_count), "entropy": is_amount}
_is_gold = row(maybe(is_name), maybe(is_count), maybe(whole(1)))
"""[role, hop, rank among the hits or None]."""
_is_pair = row(is_name, is_name, is_share, maybe(whole(0, 2)))
"""[passage, passage, probability, how many of the two are gold or None]."""
_are_notes = every(row(is_text, is_amount, is_count))
"""Of a clock: [kind, seconds, items]."""


class RecordError(ValueError):
    """A record file that cannot be used; the message names it and the remedy."""


@dataclass(frozen=True)
class Parsed:
    """header, lines, and the bytes of these alone: without what is torn behind them."""

    header: dict[str, Any]
    lines: list[dict[str, Any]]
    content: bytes

    def without_failed(self) -> Parsed:
        """The lines of questions that did not fail."""
        head, *rows = self.content.splitlines(keepends=True)
        pairs = zip(self.lines, rows, strict=True)
        kept = [(line, row) for line, row in pairs if "error" not in line]
        content = b"".join([head, *(row for _, row in kept)])
        return Parsed(self.header, [line for line, _ in kept], content)

    def in_order(self, order: Sequence[str]) -> Parsed:
        """The lines in this order of ids; those that it does not name go last."""
        place = {name: i for i, name in enumerate(order)}
        last = len(place)
        head, *rows = self.content.splitlines(keepends=True)
        pairs = sorted(
            zip(self.lines, rows, strict=True), key=lambda pair: place.get(pair[0]["id"], last)
        )
        lines = [line for line, _ in pairs]
        return Parsed(self.header, lines, b"".join([head, *(row for _, row in pairs)]))


def content(path: Path) -> bytes:
    """The file's bytes, decompressed. Raises RecordError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path} cannot be read ({trouble(error)})") from error
    if not path.name.endswith(PACKED):
        return data
    stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=LARGEST)
    try:
        data = stream.decompress(data, LARGEST + 1)
    except lzma.LZMAError as error:
        raise RecordError(f"{path}: damaged archive ({error}); {RESTORE}") from error
    if len(data) > LARGEST:
        raise RecordError(f"{path}: it unpacks to more than {LARGEST:,} bytes; {RESTORE}")
    if not stream.eof or stream.unused_data:
        ends = "goes on behind its end" if stream.eof else "ends too early"
        raise RecordError(f"{path}: damaged archive (it {ends}); {RESTORE}")
    return data


def parse(path: Path, data: bytes) -> Parsed | None:
    """The file taken apart; None where a kill or power cut left no whole header.

    A last line without its end is left out, as are the zeros that a power cut
    can leave in its place.
    """
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
    lines: list[dict] = []
    seen: set[str] = set()
    for number, text in enumerate(rest, start=2):
        try:
            line = from_json(text)
        except PlainError as error:
            raise RecordError(f"{path}, line {number}: {error}; {RESTORE}") from error
        if fault := _fault(line):
            raise RecordError(f"{path}, line {number}: not an answer's record ({fault}); {RESTORE}")
        if line["id"] in seen:
            raise RecordError(
                f"{path}, line {number}: question {line['id']!r} is recorded twice; {RESTORE}"
            )
        seen.add(line["id"])
        lines.append(line)
    return Parsed(header, lines, whole)


def _foreign(path: Path) -> RecordError:
    return RecordError(
        f"{path} is no record file of format {FORMAT} (its first line is not our header); "
        "move it away"
    )


def _fault(line: Any) -> str:
    """What of an answer's line is not as it must be; "" where all is."""
    if not isinstance(line, dict):
        return "no object"
    for key, kind in {**_NEEDED, **_KNOWN}.items():
        if key in line and not isinstance(line[key], kind):
            return f"{key!r} is {shortened(repr(line[key]), 60)}"
        if key in _NEEDED and key not in line:
            return f"it lacks {key!r}"
    # All at once, since there are many and nearly all are right.
    names = [line["id"], line["cluster"], line.get("kind") or ""]
    names += line["hits"] + line.get("remembered", [])
    if not (all(map(is_text, names)) and is_name("".join(names))):
        wrong = next(name for name in names if not is_name(name))
        return f"a name or passage is {shortened(repr(wrong), 60)}"
    for key, shape in _AMOUNTS.items():
        if key in line and not shape(line[key]):
            return f"{key!r} is {shortened(repr(line[key]), 60)}"
    for entry in line.get("gold", ()):
        if not _is_gold(entry):
            return f"a gold passage is {shortened(repr(entry), 60)}"
    for pair in line.get("judged", ()):
        if not _is_pair(pair):
            return f"a judged pair is {shortened(repr(pair), 60)}"
    for turn in line.get("turns", ()):
        if not _is_turn(turn):
            return f"a turn is {shortened(repr(turn), 60)}"
    for kept in (told, drafts, queries, compressions, knowledge, attentions):
        if fault := kept.fault(line):
            return fault
    for name, value in line.get("cost", {}).items():
        if not is_count(value):
            return f"the cost {name!r} is {shortened(repr(value), 60)}"
    for name, value in line["scores"].items():
        if not _SCORES.get(name, is_number)(value):
            return f"the score {name!r} is {shortened(repr(value), 60)}"
    return ""


def _is_turn(entry: Any) -> bool:
    """Whether it is {"seconds": s, "clock": notes}."""
    known = isinstance(entry, dict) and set(entry) == {"seconds", "clock"}
    return known and is_amount(entry["seconds"]) and _are_notes(entry["clock"])


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


def header_bytes(condition: Condition, fingerprint: Mapping[str, Any]) -> bytes:
    """The first line of a new record."""
    header = {"format": FORMAT, "identity": condition.identity, "fingerprint": dict(fingerprint)}
    return json.dumps(header, ensure_ascii=False).encode() + b"\n"


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


def packed_bytes(content: bytes) -> bytes:
    """Compressed; the same bytes for the same lines."""
    return lzma.compress(content)
