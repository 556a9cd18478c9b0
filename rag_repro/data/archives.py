"""Named members out of a zip or tar.gz file, and nothing else.

No name in the archive ever becomes a path here: members are copied to where
the caller says. All the same an archive with entries that could write outside
a folder (absolute or Windows paths, "..", links out of it, devices) is no
release of a data set, and is refused whole.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from rag_repro.plain import UNSEEN, shortened

# Text shrinks to a third or a tenth; what grows more than this was made to fill the disk.
RATIO, FLOOR = 50, 64 * 2**20
_MOST_ENTRIES = 100_000
_LARGEST_HEADER = 16 * 2**20
_LONGEST_NAME = 4096  # as of a path
_CHUNK = 2**20
_DELETE = "delete it, and fetch it again or get it from the data set's page"
_OUTSIDE = re.compile(r"[/\\]|[A-Za-z]:|.*(^|[/\\])\.\.([/\\]|$)", re.DOTALL)


class ArchiveError(ValueError):
    """An archive that is damaged, lacks a member, or is not what it should be."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something in an archive; `size` is what it says of itself. plain: a regular file."""

    name: str
    size: int
    plain: bool
    open: Callable[[], BinaryIO]


def unpack(archive: Path, members: Mapping[str, Path], *, limit: int | None = None) -> None:
    """Copy each member to its target: all of them, or none.

    A member is named by the end of its path in the archive ("dev.json" finds
    "release/dev.json"); what fits two entries is refused. Targets that exist
    are replaced. limit: bytes that everything in the archive may have
    together, by default 50 times the archive's own, or 64 MiB.

    Raises ArchiveError, with the archive's name, the entry and what to do.
    """
    folder = Path(os.path.commonpath([target.parent for target in members.values()]))
    with _named_errors(archive):
        room = max(FLOOR, RATIO * archive.stat().st_size) if limit is None else limit
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as made:
            copies = {name: Path(made) / str(i) for i, name in enumerate(members)}
            _copy(archive, copies, room)
            for name, target in members.items():
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(copies[name], target)


@contextmanager
def _named_errors(archive: Path) -> Iterator[None]:
    try:
        yield
    except ArchiveError:
        raise
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise ArchiveError(f"{archive} is damaged ({error}); {_DELETE}") from error
    except (struct.error, ValueError, RuntimeError) as error:
        # A password, a compression that Python does not know, nonsense in a header.
        raise ArchiveError(f"{archive} cannot be read ({error}); {_DELETE}") from error
    except OSError as error:
        raise ArchiveError(f"{archive} cannot be unpacked: {error}") from error


def _copy(archive: Path, copies: Mapping[str, Path], room: int) -> None:
    found: dict[str, str] = {}
    for number, entry in enumerate(_entries(archive, room), start=1):
        if number > _MOST_ENTRIES:
            raise ArchiveError(f"{archive}: more than {_MOST_ENTRIES:,} entries; {_DELETE}")
        name = shortened(repr(entry.name))
        if not entry.name or _OUTSIDE.match(entry.name):
            raise ArchiveError(f"{archive}: the entry {name} points outside the archive; {_DELETE}")
        if UNSEEN.search(entry.name) or len(entry.name) > _LONGEST_NAME:
            raise ArchiveError(
                f"{archive}: the entry {name} has a name that no file can have; {_DELETE}"
            )
        if entry.size < 0:
            raise ArchiveError(f"{archive}: the entry {name} has {entry.size} bytes; {_DELETE}")
        # Names that differ only in case are one file on some disks, so they count as one.
        path = f"/{entry.name}".casefold()
        for member in (m for m in copies if path.endswith(f"/{m}".casefold())):
            if member in found:
                raise ArchiveError(
                    f"{archive}: both {found[member]!r} and {entry.name!r} could be the member "
                    f"{member!r}; {_DELETE}"
                )
            found[member] = entry.name
            room -= _copy_one(archive, entry, copies[member], room)
    if missing := [member for member in copies if member not in found]:
        raise ArchiveError(f"{archive}: there is no {missing[0]!r} in it; {_DELETE}")


def _copy_one(archive: Path, entry: _Entry, copy: Path, room: int) -> int:
    """-> bytes written. What the entry says of its size is believed only to refuse it."""
    if not entry.plain:
        raise ArchiveError(f"{archive}: {entry.name!r} is no file but a link or such; {_DELETE}")
    _check_room(archive, entry.name, entry.size, room)
    free = shutil.disk_usage(copy.parent).free
    if entry.size > free:
        raise ArchiveError(
            f"{archive}: {entry.name!r} needs {entry.size:,} bytes, {free:,} are free; make room"
        )
    written = 0
    with entry.open() as content, copy.open("xb") as out:
        while chunk := content.read(_CHUNK):
            written += len(chunk)
            _check_room(archive, entry.name, written, room)
            out.write(chunk)
    return written


def _check_room(archive: Path, name: str, size: int, room: int) -> None:
    if size > room:
        raise ArchiveError(
            f"{archive}: {name!r} unpacks to more than {room:,} bytes, which no honest text does; "
            f"{_DELETE}"
        )


# --------------------------------------------------------------- the two kinds


def _entries(archive: Path, room: int) -> Iterator[_Entry]:
    if archive.name.endswith(".zip"):
        return _zip_entries(archive)
    if archive.name.endswith((".tar.gz", ".tgz")):
        return _tar_entries(archive, room)
    raise ArchiveError(f"{archive}: neither .zip nor .tar.gz")


def _zip_entries(archive: Path) -> Iterator[_Entry]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            plain = kind in (0, stat.S_IFREG)
            # zipfile cuts a name at a NUL: orig_filename is what the archive says.
            yield _Entry(info.orig_filename, info.file_size, plain, partial(opened.open, info))


def _tar_entries(archive: Path, room: int) -> Iterator[_Entry]:
    with gzip.open(archive) as content:
        limited = _Limited(content, archive, room)
        # Mode "r:": tarfile is not to guess at further layers of compression.
        with tarfile.open(fileobj=limited, mode="r:") as opened:
            for info in opened:
                try:
                    tarfile.data_filter(info, str(archive.parent))
                except tarfile.FilterError as error:
                    raise ArchiveError(f"{archive}: {error}; {_DELETE}") from error
                yield _Entry(info.name, info.size, info.isreg(), partial(opened.extractfile, info))
        while limited.read(_CHUNK):  # gzip's checksum is at the very end
            pass


class _Limited:
    """Decompressed bytes, only so many: tarfile reads through members that nobody asked for,
    and takes long headers into memory whole."""

    def __init__(self, content: BinaryIO, archive: Path, room: int):
        self._content, self._archive = content, archive
        self._end = room + _LARGEST_HEADER  # headers and padding are not text

    def read(self, size: int) -> bytes:
        if size > _LARGEST_HEADER:
            raise ArchiveError(f"{self._archive}: a header of {size:,} bytes; {_DELETE}")
        self._check(self._content.tell() + size)
        return self._content.read(size)

    def seek(self, place: int) -> int:
        self._check(place)
        return self._content.seek(place)

    def tell(self) -> int:
        return self._content.tell()

    def _check(self, place: int) -> None:
        _check_room(self._archive, "(all entries together)", place, self._end)
