"""Records: one line of JSON a question, appended as it is finished.

A record file begins with a header line (the condition's identity and a
fingerprint of what else can change the result) and goes on with one line a
question. It lies open (`.jsonl`) while a run is under way and is compressed
(`.jsonl.xz`) when the run has ended; a sidecar manifest says which machine,
versions and commit made it, one entry a run.

A torn last line (a killed run) is cut off and its question asked again. Any
other damage, and a file made with other settings or data, is refused by name.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import lines as form
from .conditions import Condition
from .files import alone, trouble, write_whole
from .lines import Parsed, RecordError

__all__ = ["SHARD", "Record", "RecordError", "RecordWriter", "absorb", "find", "load"]
__all__ += ["open_record", "read", "set_aside", "times_beside"]

log = logging.getLogger(__name__)

SHARD = ".shard-"
AGAIN = "and run the same command again"


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


def times_beside(root: Path, exhibit: str) -> Path:
    """Where an exhibit's timed answers lie: in `times` beside the folder of records.

    Each exhibit's apart, since what a time compares with took turns with it.
    """
    return root.parent / "times" / exhibit


def find(root: Path, condition: Condition, shard: str = "") -> Path | None:
    """The condition's record file under `root`, open or compressed; None where there is none.

    shard: that of a part, as "1-of-4".
    """
    # More than once: a run that opens or compresses it moves it between two looks.
    for ending in (form.PLAIN, form.PACKED) * 3:
        path = root / (_name(condition, shard) + ending)
        if path.exists():
            return path
    return None


def _name(condition: Condition, shard: str) -> str:
    return condition.path + (SHARD + shard if shard else "")


def load(root: Path, condition: Condition, shard: str = "") -> Record | None:
    """The condition's record, checked; None where nobody has run it, or a run just begins.

    shard: a part of it, as "1-of-4", that waits to be joined or is at work.
    """
    found = _content(root, condition, shard)
    parsed = form.parse(*found) if found is not None else None
    if parsed is None:
        return None
    form.check_identity(found[0], parsed.header, condition)
    return Record(found[0], parsed.header, tuple(parsed.lines))


def count(root: Path, condition: Condition) -> int:
    """Answers in the condition's record: its lines behind the header, none of them looked into."""
    found = _content(root, condition)
    return max(0, found[1].count(b"\n") - 1) if found is not None else 0


def _content(root: Path, condition: Condition, shard: str = "") -> tuple[Path, bytes] | None:
    """The condition's record file and what it holds."""
    while (path := find(root, condition, shard)) is not None:
        try:
            return path, form.content(path)
        except RecordError as error:
            # A run may have opened or compressed it since we looked.
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
    return None


def read(path: Path) -> Record:
    """A record file, every line checked; a torn last line is left out."""
    parsed = _parsed(path)
    if parsed is None:
        raise RecordError(f"{path} holds nothing yet: a run on it began and was stopped; delete it")
    return Record(path, parsed.header, tuple(parsed.lines))


def _parsed(path: Path) -> Parsed | None:
    return form.parse(path, form.content(path))


class RecordWriter:
    """Appends to one condition's record; see `open_record`."""

    def __init__(self, plain: Path, held: Parsed, begun: bool):
        self.plain = plain
        self.lines = held.lines
        self.done = {line["id"] for line in held.lines}
        self._held = held
        self._descriptor: int | None = None
        self._end = 0
        self._synced = 0.0
        if begun:
            self._begin()

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one answer's line: out of this process before this returns.

        So a killed run loses nothing; the disk is told once a second, so that a
        power cut loses no more than that. Where the disk takes no more, the file
        ends with the last whole line.
        """
        data = form.line_bytes(line)
        if line["id"] in self.done:
            raise RecordError(f"question {line['id']!r} is recorded already")
        try:
            if self._descriptor is None:
                self._begin()
            self._write(data)
            if time.monotonic() - self._synced > 1:
                os.fsync(self._descriptor)
                self._synced = time.monotonic()
        except OSError as error:
            raise self._stuck(error) from error
        self.done.add(line["id"])
        self.lines.append(dict(line))

    def settle(self) -> None:
        """Have all that was appended on the disk."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def _begin(self) -> None:
        """The open record on disk, in place of the compressed one."""
        if not self.plain.exists() or self.plain.read_bytes() != self._held.content:
            write_whole(self.plain, self._held.content)
        packed_name(self.plain).unlink(missing_ok=True)
        self._descriptor = os.open(self.plain, os.O_WRONLY | os.O_APPEND)
        self._end = len(self._held.content)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:  # a disk that fills up takes a part of a line
                left = left[os.write(self._descriptor, left) :]
        except OSError:
            with suppress(OSError):  # the torn line is cut off by the next run, too
                os.ftruncate(self._descriptor, self._end)
            raise
        self._end += len(data)

    def _stuck(self, error: OSError) -> RecordError:
        return RecordError(
            f"{self.plain} cannot be written ({trouble(error)}, {AGAIN}); "
            f"its {len(self.lines)} finished answers are saved"
        )

    def close(self, order: Sequence[str]) -> None:
        """Compress what lies open, its lines in this order; else leave all as it is."""
        begun = self._descriptor is not None
        try:
            if begun:
                os.close(self._descriptor)
                self._descriptor = None
                self._held = _parsed(self.plain)
            ordered = self._held.in_order(order) if order else self._held
            if begun or ordered.content != self._held.content:
                write_whole(packed_name(self.plain), form.packed_bytes(ordered.content))
                self.plain.unlink(missing_ok=True)
        except OSError as error:
            raise self._stuck(error) from error


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

    Raises RecordError, also where the disk cannot be written; what was
    appended before is kept.
    """
    base = root / _name(condition, shard)
    plain = base.with_name(base.name + form.PLAIN)
    with ExitStack() as stack:
        try:
            base.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(alone(base.with_name(base.name + ".lock")))
            for ending in (form.PLAIN, form.PACKED, ".manifest.json"):  # what a kill left half
                base.with_name(f"{base.name}{ending}.part").unlink(missing_ok=True)
            writer = _writer(plain, condition, fingerprint)
        except OSError as error:
            raise RecordError(f"{base}: cannot be written ({trouble(error)}, {AGAIN})") from error
        try:
            yield writer
        except BaseException:
            # What stopped the run must be told, not that its record stays open.
            try:
                writer.close(order)
            except RecordError as error:
                log.warning("%s", error)
            raise
        writer.close(order)


def packed_name(plain: Path) -> Path:
    return plain.with_name(plain.name.removesuffix(form.PLAIN) + form.PACKED)


def _writer(plain: Path, condition: Condition, fingerprint: Mapping[str, Any]) -> RecordWriter:
    """A writer that goes on from what is there, which is touched only once it is found to fit."""
    packed = packed_name(plain)
    fits = []
    for path in (plain, packed):
        parsed = _parsed(path) if path.exists() else None
        if parsed is not None:
            _check(path, parsed, condition, fingerprint)
            fits.append(parsed)
    if not fits:
        new = Parsed({}, [], form.header_bytes(condition, fingerprint))
        return RecordWriter(plain, new, begun=True)
    if len(fits) == 1:
        return RecordWriter(plain, fits[0], begun=plain.exists())
    return RecordWriter(plain, _both(*fits), begun=True)


def _both(open_: Parsed, packed: Parsed) -> Parsed:
    """The open record with what only the compressed one has.

    A kill can leave both, with the same lines; version control can bring back
    a compressed one beside an open one that went another way.
    """
    known = {line["id"] for line in open_.lines}
    more = [line for line in packed.lines if line["id"] not in known]
    content = open_.content + b"".join(map(form.line_bytes, more))
    return Parsed(open_.header, [*open_.lines, *more], content)


def _check(
    path: Path, parsed: Parsed, condition: Condition, fingerprint: Mapping[str, Any]
) -> None:
    form.check_identity(path, parsed.header, condition)
    if not _same(parsed.header, fingerprint):
        raise RecordError(
            f"{path} cannot be continued, since what it was made with has changed: "
            f"{form.difference(parsed.header['fingerprint'], fingerprint)}; move it away to "
            "start anew, or restore what changed"
        )


def _same(header: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> bool:
    return header["fingerprint"] == json.loads(json.dumps(dict(fingerprint)))


def set_aside(root: Path, condition: Condition, fingerprint: Mapping[str, Any]) -> Path | None:
    """Rename a record that was made with other data or weights -> its new name, or None.

    For records that nobody publishes, where starting anew is what is wanted.
    """
    record = load(root, condition)
    if record is None or _same(record.header, fingerprint):
        return None
    return record.path.rename(record.path.with_name(record.path.name + ".stale"))


def absorb(root: Path, condition: Condition) -> int:
    """Join the condition's finished shards into its record, and remove them -> lines added.

    Each shard must have been made with the same data and weights as the first.
    """
    base = root / condition.path
    while shards := sorted(base.parent.glob(f"{base.name}{SHARD}*{form.PACKED}")):
        try:
            fingerprint = read(shards[0]).header["fingerprint"]
        except RecordError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue  # another run has joined it since we looked
            raise
        with open_record(root, condition, fingerprint) as record:
            return sum(_join(path, condition, fingerprint, record) for path in shards)
    return 0


def _join(
    path: Path, condition: Condition, fingerprint: Mapping[str, Any], record: RecordWriter
) -> int:
    """One shard's lines into the open record, and the shard away; 0 where another run did it."""
    with alone(path.with_name(path.name.removesuffix(form.PACKED) + ".lock")):
        if not path.exists():
            return 0
        shard = _parsed(path)
        if shard is None:
            raise RecordError(f"{path} holds nothing; delete it")
        _check(path, shard, condition, fingerprint)
        new = [line for line in shard.lines if line["id"] not in record.done]
        for line in new:
            record.append(line)
        record.settle()
        path.unlink()
    return len(new)
