"""Records: one line of JSON a question, appended as it is finished.

A record file begins with a header line (the condition's identity and a
fingerprint of what else can change the result) and goes on with one line a
question. It lies open (`.jsonl`) while a run is under way and is compressed
(`.jsonl.xz`) when the run has ended; a sidecar manifest says which machine,
versions and commit made it, one entry a run. `rag-repro seal` moves both into parquet (`sealed`),
from where a run that goes on takes them up again.

A torn last line (a killed run) is cut off and its question asked again. Any
other damage, and a file made with other settings or data, is refused by name.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..digest import forget_parts, write_whole
from . import files, sealed
from . import lines as form
from .conditions import Condition
from .files import alone, trouble
from .lines import READ, SHARD, Parsed, RecordError
from .record_writer import AGAIN, RecordWriter, packed_name

__all__ = ["READ", "SHARD", "Record", "RecordError", "RecordWriter", "absorb", "at", "committed"]
__all__ += ["digest", "find"]
__all__ += ["is_written", "load", "open_record", "parts", "paths", "read", "set_aside"]
__all__ += ["times_beside"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Record:
    """A condition's stored answers: header and lines, in the order of the run."""

    path: Path
    header: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def is_sealed(self) -> bool:
        """Whether it is compressed: one that is not is being written, or its run was killed."""
        return not self.path.name.endswith(form.PLAIN)

    @property
    def by_question(self) -> dict[str, Mapping[str, Any]]:
        return {line["id"]: line for line in self.lines}


def times_beside(root: Path, exhibit: str) -> Path:
    """Where an exhibit's timed answers lie: in `times` beside the folder of records.

    Each exhibit's apart, since what a time compares with took turns with it.
    """
    return root.parent / "times" / exhibit


def committed(root: Path) -> Path | None:
    """The committed records that records of one's own build on; None where `root` is not such.

    root: a checkout's results/local/records builds on its results/records: what these hold is
    not asked again.
    """
    folder = root.absolute()
    is_local = folder.parts[-3:] == ("results", "local", "records")
    return folder.parents[1] / "records" if is_local else None


def find(root: Path, condition: Condition, shard: str = "") -> Path | None:
    """The condition's file of JSON lines, open or compressed; None where there is none.

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


def parts(root: Path, condition: Condition) -> list[str]:
    """The condition's parts that are not joined yet, open or compressed, as "1-of-4"."""
    base = root / (condition.path + SHARD)
    return sorted(
        {
            path.name.removeprefix(base.name).removesuffix(ending)
            for ending in (form.PLAIN, form.PACKED)
            for path in base.parent.glob(f"{base.name}*{ending}")
        }
    )


def is_written(root: Path, condition: Condition, shard: str = "") -> bool:
    """Whether a run is at work on it now. One that was killed is not: the system frees its lock."""
    return files.is_locked(_lock(root, condition, shard))


def _lock(root: Path, condition: Condition, shard: str = "") -> Path:
    return root / (_name(condition, shard) + ".lock")


def load(root: Path, condition: Condition, shard: str = "") -> Record | None:
    """The condition's record, checked; None where nobody has run it, or a run just begins.

    shard: a part of it, as "1-of-4", that waits to be joined or is at work.
    """
    record = at(root, _name(condition, shard))
    if record is not None:
        form.check_identity(record.path, record.header, condition)
    return record


def at(root: Path, path: str) -> Record | None:
    """The record of this path below `root`, as `Condition.path` has it; None as of `load`."""
    sys.audit(READ, str(root / path))
    # More than once: a run, or sealing, moves it between two looks.
    for ending in (form.PLAIN, form.PACKED) * 3:
        file = root / (path + ending)
        if file.exists():
            try:
                parsed = form.parse(file, form.content(file))
            except RecordError as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    continue
                raise
            return None if parsed is None else Record(file, parsed.header, tuple(parsed.lines))
        if ending == form.PACKED and (found := sealed.read(root, path)):
            return Record(*found)
    return None


def paths(root: Path) -> list[str]:
    """The paths of all records below `root`, as `Condition.path` has them, parts among them."""
    sys.audit(READ, f"{root}/")
    return sorted({*sealed.conditions(root), *beside(root)})


def digest(root: Path, path: str) -> str:
    """Short hash of a record: header, answers and manifest, sealed or not; "" where there is none.

    path: as of `at`; "": of all records below `root`.
    """
    if not path:
        whole = [f"{each} {digest(root, each)}" for each in paths(root)]
        return hashlib.sha256("\n".join(whole).encode()).hexdigest()[:16]
    held = sealed.conditions(root).get(path)
    if not held or any((root / (path + ending)).exists() for ending in (form.PLAIN, form.PACKED)):
        if (record := at(root, path)) is None:
            return ""
        manifest = sealed.manifest_text(root, path)
        held = {"header": json.dumps(record.header), "manifest": manifest}
        held["digest"] = sealed.digest(record.lines)
    told = json.dumps([held[name] for name in ("header", "manifest", "digest")])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def beside(root: Path) -> set[str]:
    """Those of the records that are JSON lines, and so newer than what was sealed."""
    return {
        path.relative_to(root).as_posix().removesuffix(ending)
        for ending in (form.PLAIN, form.PACKED)
        for path in root.rglob(f"*{ending}")
    }


def count(root: Path, condition: Condition) -> int:
    """Answers in the condition's record; 0 where there is none."""
    record = at(root, condition.path)
    return len(record) if record else 0


def read(path: Path) -> Record:
    """A file of JSON lines, every line checked; a torn last line is left out."""
    parsed = form.read_whole(path)
    return Record(path, parsed.header, tuple(parsed.lines))


def _parsed(path: Path) -> Parsed | None:
    return form.parse(path, form.content(path))


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
            stack.enter_context(alone(_lock(root, condition, shard)))
            for ending in (form.PLAIN, form.PACKED, ".manifest.json"):  # what a kill left half
                forget_parts(base.with_name(base.name + ending))
            writer = _writer(root, plain, condition, fingerprint)
        except OSError as error:
            raise RecordError(f"{base}: cannot be written ({trouble(error)}, {AGAIN})") from error
        try:
            yield writer
        except BaseException:
            # What stopped the run must be told, not that its record stays open.
            try:
                writer.close(order) if writer.lines else writer.discard()
            except RecordError as error:
                log.warning("%s", error)
            raise
        writer.close(order)


def _writer(
    root: Path, plain: Path, condition: Condition, fingerprint: Mapping[str, Any]
) -> RecordWriter:
    """A writer that goes on from what is there, which is touched only once it is found to fit."""
    stored = _stored(root, plain, condition, fingerprint)
    begun = stored is None or plain.exists()
    new = Parsed({}, [], form.header_bytes(condition, fingerprint))
    return RecordWriter(plain, stored or new, begun=begun)


def _stored(
    root: Path, plain: Path, condition: Condition, fingerprint: Mapping[str, Any]
) -> Parsed | None:
    """What is there, open or compressed; of both, the open one with what only the other has.

    A kill can leave both, with the same lines; version control can bring back
    a compressed one beside an open one that went another way. Where there is neither, what was
    sealed.
    """
    fits = []
    for path in (plain, packed_name(plain)):
        parsed = _parsed(path) if path.exists() else None
        if parsed is not None:
            _check(path, parsed, condition, fingerprint)
            fits.append(parsed)
    path = plain.relative_to(root).as_posix().removesuffix(form.PLAIN)
    if not fits and (found := sealed.read(root, path)):
        fits.append(unsealed(*found[1:]))
        _check(found[0], fits[0], condition, fingerprint)
    if len(fits) < 2:
        return fits[0] if fits else None
    open_, packed = fits
    known = {line["id"] for line in open_.lines}
    more = [line for line in packed.lines if line["id"] not in known]
    content = open_.content + b"".join(map(form.line_bytes, more))
    return Parsed(open_.header, [*open_.lines, *more], content)


def unsealed(header: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> Parsed:
    """A sealed record as JSON lines."""
    lines = [dict(line) for line in lines]
    head = json.dumps(header, ensure_ascii=False).encode() + b"\n"
    return Parsed(dict(header), lines, b"".join([head, *map(form.line_bytes, lines)]))


def _check(
    path: Path, parsed: Parsed, condition: Condition, fingerprint: Mapping[str, Any]
) -> None:
    form.check_identity(path, parsed.header, condition)
    if not is_same(parsed.header, fingerprint):
        raise RecordError(
            f"{path} cannot be continued, since what it was made with has changed: "
            f"{form.difference(parsed.header['fingerprint'], fingerprint)}; move it away to "
            "start anew, or restore what changed"
        )


def is_same(header: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> bool:
    """Whether a record's header tells of this fingerprint."""
    return header["fingerprint"] == json.loads(json.dumps(dict(fingerprint)))


def set_aside(root: Path, condition: Condition, fingerprint: Mapping[str, Any]) -> Path | None:
    """Rename a record that was made with other data or weights -> its new name, or None.

    For records that nobody publishes, where starting anew is what is wanted.
    """
    record = load(root, condition)
    if record is None or is_same(record.header, fingerprint):
        return None
    if (file := find(root, condition)) is None:
        with alone(root / "seal.lock"):
            sealed.rewrite(root, record.path, {condition.path: None}, {})
        file = root / (condition.path + form.PACKED)
        write_whole(file, form.packed_bytes(unsealed(record.header, record.lines).content))
    return files.set_aside(file)


def forget_failed(root: Path, condition: Condition) -> int:
    """Take questions that failed out of the record, so that a run asks them again -> how many.

    For where the cause is mended: a run by itself never asks one again, since a method that fails
    is wrong.
    """
    base = root / condition.path
    with ExitStack() as stack:
        if base.parent.is_dir():
            stack.enter_context(alone(_lock(root, condition)))
        failed: set[str] = set()
        for ending in (form.PLAIN, form.PACKED):  # a kill can leave both
            path = base.with_name(base.name + ending)
            held = _parsed(path) if path.is_file() else None
            if ending == form.PACKED and find(root, condition) is None:
                found = sealed.read(root, condition.path)
                held = unsealed(*found[1:]) if found and sealed.failed(found[2]) else None
            kept = held and held.without_failed()
            if held and len(kept.lines) < len(held.lines):
                content = kept.content
                write_whole(path, form.packed_bytes(content) if ending == form.PACKED else content)
                failed |= {line["id"] for line in held.lines} - {line["id"] for line in kept.lines}
        return len(failed)


def absorb(root: Path, condition: Condition) -> int:
    """Join the condition's parts into its record, and remove them -> lines added.

    Those that a run is writing are left to it; one whose run was killed is joined as it is. Each
    must have been made with the same data and weights as the first.
    """
    for first in parts(root, condition):
        part = None if is_written(root, condition, first) else load(root, condition, first)
        if part is None:  # nothing in it, or joined by another run since we looked
            continue
        fingerprint = part.header["fingerprint"]
        with open_record(root, condition, fingerprint) as record:
            names = parts(root, condition)
            added = sum(_join(root, condition, fingerprint, name, record) for name in names)
            if not record.lines:
                record.discard()
            return added
    return 0


def _join(
    root: Path,
    condition: Condition,
    fingerprint: Mapping[str, Any],
    name: str,
    record: RecordWriter,
) -> int:
    """One part's lines into the open record, and the part away; 0 where a run is at work on it."""
    plain = root / (_name(condition, name) + form.PLAIN)
    with alone(_lock(root, condition, name), wait=False) as free:
        if not free:
            return 0
        part = _stored(root, plain, condition, fingerprint)
        new = [line for line in part.lines if line["id"] not in record.done] if part else []
        for line in new:
            record.append(line)
        record.settle()
        for path in (plain, packed_name(plain)):
            path.unlink(missing_ok=True)
    return len(new)
