"""Records: one line of JSON a question, appended as it is finished.

A record file begins with a header line (the condition's identity and a
fingerprint of what else can change the result) and goes on with one line a
question. It lies open (`.jsonl`) while a run is under way and is compressed
(`.jsonl.gz`) when the run has ended; a sidecar manifest says which machine,
versions and commit made it, one entry a run.

A torn last line (a killed run) is cut off and its question asked again. Any
other damage, and a file made with other settings or data, is refused by name.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .conditions import Condition

FORMAT = 1
SHARD = ".shard-"


class RecordError(ValueError):
    """A record file that cannot be used; the message names it and the remedy."""


@dataclass(frozen=True)
class Record:
    """A condition's stored answers: header and lines, in the order of the run."""

    path: Path
    header: Mapping[str, Any]
    lines: tuple[Mapping[str, Any], ...]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def by_question(self) -> dict[str, Mapping[str, Any]]:
        return {line["id"]: line for line in self.lines}


def find(root: Path, condition: Condition) -> Path | None:
    """The condition's record file under `root`, open or compressed; None where there is none."""
    for ending in (".jsonl", ".jsonl.gz"):
        path = root / (condition.path + ending)
        if path.exists():
            return path
    return None


def load(root: Path, condition: Condition) -> Record | None:
    """The condition's record, checked; None where nobody has run it."""
    path = find(root, condition)
    if path is None:
        return None
    record = read(path)
    _check_identity(path, record.header, condition)
    return record


def read(path: Path) -> Record:
    """A record file, every line checked; a torn last line is left out."""
    header, lines, _ = _parse(path, _content(path))
    return Record(path, header, tuple(lines))


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError) as error:
        raise RecordError(
            f"{path} cannot be read ({error}); restore it from version control or delete it "
            "and run its condition again"
        ) from error


def _parse(path: Path, content: bytes) -> tuple[dict, list[dict], int]:
    """header, lines, and how many bytes of the content are whole lines."""
    end = content.rfind(b"\n") + 1
    parsed = []
    for number, raw in enumerate(content[:end].splitlines(), start=1):
        try:
            line = json.loads(raw)
        except ValueError as error:
            raise RecordError(
                f"{path}, line {number}: not JSON ({error}); restore the file from version "
                "control or delete it and run its condition again"
            ) from error
        parsed.append(line)
    header = parsed[0] if parsed else {}
    if not isinstance(header, dict) or header.get("format") != FORMAT or "identity" not in header:
        raise RecordError(
            f"{path} is no record file of format {FORMAT} (its first line is not our header); "
            "move it away"
        )
    seen: set[str] = set()
    for number, line in enumerate(parsed[1:], start=2):
        name = line.get("id") if isinstance(line, dict) and "scores" in line else None
        if not isinstance(name, str):
            raise RecordError(f"{path}, line {number}: not an answer's record; restore the file")
        if name in seen:
            raise RecordError(
                f"{path}, line {number}: question {name!r} is recorded twice; restore the file"
            )
        seen.add(name)
    return header, parsed[1:], end


def _check_identity(path: Path, header: Mapping[str, Any], condition: Condition) -> None:
    if header["identity"] != json.loads(json.dumps(condition.identity)):
        raise RecordError(
            f"{path} was made under another condition than its name says: "
            f"{_difference(header['identity'], condition.identity)}; move it away"
        )


def _difference(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    parts = [
        f"{key}: stored {stored.get(key)!r}, now {wanted.get(key)!r}"
        for key in sorted({*stored, *wanted})
        if stored.get(key) != wanted.get(key)
    ]
    return "; ".join(parts)


class RecordWriter:
    """Appends to one condition's record; see `open_record`."""

    def __init__(self, file, lines: list[dict]):
        self._file = file
        self._synced = 0.0
        self.lines = lines
        self.done = {line["id"] for line in lines}

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one answer's line: out of this process before this returns.

        So a killed run loses nothing; the disk is told once a second, so that a
        power cut loses no more than that.
        """
        if line["id"] in self.done:
            raise RecordError(f"question {line['id']!r} is recorded already")
        self._file.write(
            json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        )
        self._file.flush()
        if time.monotonic() - self._synced > 1:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()
        self.done.add(line["id"])
        self.lines.append(dict(line))


@contextmanager
def open_record(
    root: Path,
    condition: Condition,
    fingerprint: Mapping[str, Any],
    shard: str = "",
    order: Sequence[str] = (),
) -> Iterator[RecordWriter]:
    """Open a condition's record to continue it, alone: a second run waits here.

    Leaving compresses it, also after an interrupt. A record whose fingerprint
    differs (other data, weights, index) is refused: mixing would spoil it.
    shard: a part of its own, as "1-of-4", so that parts can be run at once;
    `absorb` joins them. order: question ids; the lines are put into this order
    on leaving, so that batches, shards and interrupts leave the same bytes, and
    the first n lines are the first n questions, not the n that were quickest.
    """
    base = root / (condition.path + (SHARD + shard if shard else ""))
    base.parent.mkdir(parents=True, exist_ok=True)
    plain, packed = base.with_name(base.name + ".jsonl"), base.with_name(base.name + ".jsonl.gz")
    with _alone(base.with_name(base.name + ".lock")):
        if packed.exists():
            _unpack(packed, plain)
        with plain.open("a+b") as file:
            file.seek(0)
            content = file.read()
            if not content.rfind(b"\n") + 1:  # new, or torn inside its header
                file.truncate(0)
                header = {
                    "format": FORMAT,
                    "identity": condition.identity,
                    "fingerprint": dict(fingerprint),
                }
                file.write(json.dumps(header, ensure_ascii=False).encode() + b"\n")
                file.flush()
                lines: list[dict] = []
            else:
                header, lines, whole = _parse(plain, content)
                _check_identity(plain, header, condition)
                if header["fingerprint"] != json.loads(json.dumps(dict(fingerprint))):
                    raise RecordError(
                        f"{plain} cannot be continued, since what it was made with has changed: "
                        f"{_difference(header['fingerprint'], fingerprint)}; move it away to "
                        "start anew, or restore what changed"
                    )
                file.truncate(whole)
                file.seek(whole)
            try:
                yield RecordWriter(file, lines)
            finally:
                file.flush()
                pack(plain, order)


def set_aside(root: Path, condition: Condition, fingerprint: Mapping[str, Any]) -> Path | None:
    """Rename a record that was made with other data or weights -> its new name, or None.

    For records that nobody publishes, where starting anew is what is wanted.
    """
    path = find(root, condition)
    if path is None or read(path).header["fingerprint"] == json.loads(json.dumps(fingerprint)):
        return None
    return path.rename(path.with_name(path.name + ".stale"))


def absorb(root: Path, condition: Condition) -> int:
    """Join the condition's finished shards into its record, and remove them -> lines added.

    Each shard must have been made with the same data and weights as the first.
    """
    base = root / condition.path
    added = 0
    for path in sorted(base.parent.glob(f"{base.name}{SHARD}*.jsonl.gz")):
        shard = read(path)
        _check_identity(path, shard.header, condition)
        with open_record(root, condition, shard.header["fingerprint"]) as record:
            for line in shard.lines:
                if line["id"] not in record.done:
                    record.append(line)
                    added += 1
        path.unlink()
    return added


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold the lock file; wait for whoever holds it. It is gone afterwards."""
    while True:
        file = lock.open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
        # Its last holder may have removed it while we waited: then ours is a ghost.
        if lock.exists() and os.fstat(file.fileno()).st_ino == lock.stat().st_ino:
            break
        file.close()
    try:
        yield
    finally:
        lock.unlink()
        file.close()


def _unpack(packed: Path, plain: Path) -> None:
    """Compressed record -> open one; whichever a crash leaves behind is whole."""
    if not plain.exists():
        _write_whole(plain, _content(packed))
    packed.unlink()


def pack(plain: Path, order: Sequence[str] = ()) -> Path:
    """Open record -> compressed one, the same bytes for the same lines."""
    packed = plain.with_name(plain.name + ".gz")
    content = _in_order(plain.read_bytes(), order) if order else plain.read_bytes()
    _write_whole(packed, gzip.compress(content, mtime=0))
    plain.unlink()
    return packed


def _in_order(content: bytes, order: Sequence[str]) -> bytes:
    """The record's whole lines in this order; ids that it does not name go last."""
    place = {name: i for i, name in enumerate(order)}
    head, *lines = content[: content.rfind(b"\n") + 1].splitlines(keepends=True)
    lines.sort(key=lambda line: place.get(json.loads(line)["id"], len(place)))
    return b"".join([head, *lines])


def _write_whole(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
