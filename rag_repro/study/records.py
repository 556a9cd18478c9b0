"""Records: one line of JSON a question, appended as it is finished, behind a header.

The header holds the condition's identity and a fingerprint of what else can change the result. A
record lies in `.jsonl` until it is sealed (`sealed`), in parquet, from where a run that goes on
takes it up again. A torn last line is cut off and its question asked again; any other damage, and
a file made with other settings or data, is refused by name.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_repro.digest import forget_parts, write_whole
from rag_repro.study import files, sealed
from rag_repro.study import lines as form
from rag_repro.study.conditions import Condition
from rag_repro.study.files import alone, trouble, write_all
from rag_repro.study.lines import AGAIN, READ, SHARD, Record, RecordError

log = logging.getLogger(__name__)


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
    """The condition's file of JSON lines; None where there is none.

    shard: that of a part, as "1-of-4".
    """
    file = _file(root, condition, shard)
    return file if file.exists() else None


def _file(root: Path, condition: Condition, shard: str = "") -> Path:
    return root / (_name(condition, shard) + form.ENDING)


def _name(condition: Condition, shard: str) -> str:
    return condition.path + (SHARD + shard if shard else "")


def parts(root: Path, condition: Condition) -> list[str]:
    """The condition's parts that are not joined yet, as "1-of-4"."""
    base = root / (condition.path + SHARD)
    found = base.parent.glob(f"{base.name}*{form.ENDING}")
    return sorted(file.name.removeprefix(base.name).removesuffix(form.ENDING) for file in found)


def is_written(root: Path, condition: Condition, shard: str) -> bool:
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
    file = root / (path + form.ENDING)
    try:
        return form.read(file)
    except FileNotFoundError:
        if (packed := Path(f"{file}.xz")).exists():
            raise RecordError(f"{packed} is as older versions left it: unxz {packed}") from None
        return sealed.read(root, path)


def paths(root: Path) -> list[str]:
    """The paths of all records below `root`, as `Condition.path` has them, parts among them."""
    sys.audit(READ, f"{root}/")
    return sorted({*sealed.conditions(root), *unsealed_records(root)})


def digest(root: Path, path: str) -> str:
    """Short hash of a record: header, answers and manifest, sealed or not; "" where there is none.

    path: as of `at`; "": of all records below `root`.
    """
    if not path:
        whole = [f"{each} {digest(root, each)}" for each in paths(root)]
        return hashlib.sha256("\n".join(whole).encode()).hexdigest()[:16]
    held = sealed.conditions(root).get(path)
    if not held or (root / (path + form.ENDING)).exists():
        if (record := at(root, path)) is None:
            return ""
        manifest = sealed.manifest_text(root, path)
        held = {"header": json.dumps(record.header), "manifest": manifest}
        held["digest"] = sealed.digest(record.lines)
    told = json.dumps([held[name] for name in ("header", "manifest", "digest")])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def unsealed_records(root: Path) -> set[str]:
    """Those of the records that are JSON lines, and so newer than what was sealed."""
    files = root.rglob(f"*{form.ENDING}")
    return {file.relative_to(root).as_posix().removesuffix(form.ENDING) for file in files}


class RecordWriter:
    """Appends to one condition's record; see `open_record`."""

    def __init__(self, file: Path, held: Record):
        self.file = file
        self.lines = list(held.lines)
        self.done = {line["id"] for line in held.lines}
        self._held = held
        self._descriptor: int | None = None
        self._end = 0
        self._synced = 0.0
        if not held.lines:
            self._begin()

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one answer's line: out of this process before this returns, on the disk within a
        second. Where the disk takes no more, the file ends with the last whole line.
        """
        data = form.line_bytes(line)
        if line["id"] in self.done:
            raise RecordError(f"question {line['id']!r} is recorded already")
        try:
            if self._descriptor is None:
                self._begin()
            write_all(self._descriptor, data)
            if time.monotonic() - self._synced > 1:
                os.fsync(self._descriptor)
                self._synced = time.monotonic()
        except OSError as error:
            if self._descriptor is not None:
                with suppress(OSError):  # the torn line is cut off by the next run, too
                    os.ftruncate(self._descriptor, self._end)
            raise self._stuck(error) from error
        self._end += len(data)
        self.done.add(line["id"])
        self.lines.append(dict(line))

    def settle(self) -> None:
        """Have all that was appended on the disk."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def _begin(self) -> None:
        """The file with what is held, and no torn line behind it."""
        content = self._held.content
        if not self.file.exists() or self.file.read_bytes() != content:
            write_whole(self.file, content)
        self._descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND)
        self._end = len(content)

    def _stuck(self, error: OSError) -> RecordError:
        return RecordError(
            f"{self.file} cannot be written ({trouble(error)}, {AGAIN}); "
            f"its {len(self.lines)} finished answers are saved"
        )

    def close(self, order: Sequence[str]) -> None:
        """Leave the lines in this order, and no file without any; one that holds just that is not
        written again.
        """
        place = {name: i for i, name in enumerate(order)}  # what it does not name goes last
        ordered = sorted(self.lines, key=lambda line: place.get(line["id"], len(place)))
        try:
            self.settle()
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
            if not ordered and not self._held.lines:
                self.file.unlink(missing_ok=True)
            elif ordered != [*self._held.lines] or self.file.exists():
                content = replace(self._held, lines=ordered).content
                if not self.file.exists() or self.file.read_bytes() != content:
                    write_whole(self.file, content)
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

    Leaving puts its lines into the `order` of question ids, also after an interrupt: so batches,
    shards and interrupts leave the same bytes. shard: a part of its own, as "1-of-4", which can be
    written beside others; `absorb` joins them. Raises RecordError for another fingerprint, since
    mixing would spoil the record, and where the disk cannot be written; what was appended before
    is kept.
    """
    file = _file(root, condition, shard)
    with ExitStack() as stack:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(alone(_lock(root, condition, shard)))
            for path in (file, root / (_name(condition, shard) + form.MANIFEST)):
                forget_parts(path)  # what a kill left half
            # Nothing that is there is touched before it is found to fit.
            stored = _stored(root, condition, fingerprint, shard)
            if stored is None:
                facts = {"identity": condition.identity, "fingerprint": dict(fingerprint)}
                stored = Record(file, {"format": form.FORMAT, **facts}, ())
            writer = RecordWriter(file, stored)
        except OSError as error:
            raise RecordError(f"{file} cannot be written ({trouble(error)}, {AGAIN})") from error
        try:
            yield writer
        except BaseException:
            # What stopped the run must be told, not that its record stays as it is.
            try:
                writer.close(order)
            except RecordError as error:
                log.warning("%s", error)
            raise
        writer.close(order)


def _stored(
    root: Path, condition: Condition, fingerprint: Mapping[str, Any], shard: str = ""
) -> Record | None:
    """What is there, checked to be continued with this fingerprint."""
    record = load(root, condition, shard)
    if record is not None and not is_same(record.header, fingerprint):
        raise RecordError(
            f"{record.path} cannot be continued, since what it was made with has changed: "
            f"{form.difference(record.header['fingerprint'], fingerprint)}; move it away to "
            "start anew, or restore what changed"
        )
    return record


def is_same(header: Mapping[str, Any], fingerprint: Mapping[str, Any]) -> bool:
    """Whether a record's header tells of this fingerprint."""
    return header["fingerprint"] == json.loads(json.dumps(dict(fingerprint)))


def set_aside(root: Path, condition: Condition, fingerprint: Mapping[str, Any]) -> Path | None:
    """Rename a record that was made with other data or weights -> its new name, the first free
    one of ".stale", ".stale-2", ...; or None.

    For records that nobody publishes, where starting anew is what is wanted.
    """
    record = load(root, condition)
    if record is None or is_same(record.header, fingerprint):
        return None
    file = _file(root, condition)
    names = (f"{file.name}.stale{f'-{i}' if i > 1 else ''}" for i in itertools.count(1))
    aside = next(p for p in map(file.with_name, names) if not p.exists())
    if find(root, condition) is not None:
        return file.rename(aside)
    with alone(root / "seal.lock"):  # the copy first: whoever stops this loses nothing
        write_whole(aside, record.content)
        sealed.rewrite(root, record.path, {condition.path: None}, {})
    return aside


def forget_failed(root: Path, condition: Condition) -> int:
    """Take questions that failed out of the record, so that a run asks them again -> how many.

    For where the cause is mended: a run by itself never asks one again, since a method that fails
    is wrong.
    """
    if (record := load(root, condition)) is None:
        return 0
    order = [line["id"] for line in record.lines]
    with open_record(root, condition, record.header["fingerprint"], order=order) as writer:
        failed = [line for line in writer.lines if "error" in line]
        writer.lines = [line for line in writer.lines if "error" not in line]
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
            return sum(_join(root, condition, fingerprint, name, record) for name in names)
    return 0


def _join(
    root: Path,
    condition: Condition,
    fingerprint: Mapping[str, Any],
    name: str,
    record: RecordWriter,
) -> int:
    """One part's lines into the open record, and the part away; 0 where a run is at work on it."""
    with alone(_lock(root, condition, name), wait=False) as free:
        if not free:
            return 0
        part = _stored(root, condition, fingerprint, name)
        new = [line for line in part.lines if line["id"] not in record.done] if part else []
        for line in new:
            record.append(line)
        record.settle()
        _file(root, condition, name).unlink(missing_ok=True)
    return len(new)
