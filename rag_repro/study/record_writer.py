"""Writing one condition's record, line by line; `records.open_record` hands the writer out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..digest import write_whole
from . import lines as form
from .files import trouble, write_all
from .lines import Parsed, RecordError

AGAIN = "and run the same command again"


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
        try:
            write_all(self._descriptor, data)
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

    def discard(self) -> None:
        """Leave nothing of a record that holds no answer."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self.plain.unlink(missing_ok=True)

    def close(self, order: Sequence[str]) -> None:
        """Compress what lies open, its lines in this order; else leave all as it is."""
        begun = self._descriptor is not None
        try:
            if begun:
                os.close(self._descriptor)
                self._descriptor = None
                self._held = form.parse(self.plain, form.content(self.plain))
            ordered = self._held.in_order(order) if order else self._held
            if begun or ordered.content != self._held.content:
                write_whole(packed_name(self.plain), form.packed_bytes(ordered.content))
                self.plain.unlink(missing_ok=True)
        except OSError as error:
            raise self._stuck(error) from error


def packed_name(plain: Path) -> Path:
    return plain.with_name(plain.name.removesuffix(form.PLAIN) + form.PACKED)
