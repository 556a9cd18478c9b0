"""Named members out of a zip or tar.gz file, and nothing else.

No name in the archive ever becomes a path here: members are copied to where
the caller says.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

# Text shrinks to a third or a tenth; what grows more than this was made to fill the disk.
RATIO, FLOOR = 50, 64 * 2**20
_DELETE = "delete it, and fetch it again or get it from the data set's page"


class ArchiveError(ValueError):
    """An archive that is damaged, lacks a member, or is not what it should be."""


def unpack(archive: Path, members: Mapping[str, Path]) -> None:
    """Copy each member to its target: all of them, or none.

    A member is a file named by the end of its path in the archive ("dev.json"
    finds "release/dev.json"); what fits two files is refused. Targets that
    exist are replaced.

    Raises ArchiveError, with the archive's name, the member and what to do.
    """
    folder = Path(os.path.commonpath([target.parent for target in members.values()]))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            _opened(archive) as (sizes, read),
            tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as made,
        ):
            names = [_entry(archive, member, sizes) for member in members]
            _check_room(archive, sum(sizes[name] for name in names), folder)
            copies = [Path(made) / str(number) for number in range(len(names))]
            for name, copy in zip(names, copies, strict=True):
                with read(name) as content, copy.open("xb") as out:
                    shutil.copyfileobj(content, out)
            for copy, target in zip(copies, members.values(), strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(copy, target)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise ArchiveError(f"{archive} is damaged ({error}); {_DELETE}") from error
    except ArchiveError:
        raise
    except (RuntimeError, ValueError) as error:
        # A password, a compression that Python does not know, nonsense in a header.
        raise ArchiveError(f"{archive} cannot be read ({error}); {_DELETE}") from error
    except OSError as error:
        raise ArchiveError(f"{archive} cannot be unpacked: {error}") from error


@contextmanager
def _opened(archive: Path) -> Iterator[tuple[dict[str, int], Callable[[str], BinaryIO]]]:
    """The regular files in an archive with their sizes, and what opens one by its name."""
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as opened:
            files = [info for info in opened.infolist() if not info.is_dir()]
            yield {info.filename: info.file_size for info in files}, opened.open
    elif archive.name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(archive, "r:gz") as opened:
            yield {info.name: info.size for info in opened if info.isreg()}, opened.extractfile
    else:
        raise ArchiveError(f"{archive}: neither .zip nor .tar.gz")


def _entry(archive: Path, member: str, names: Mapping[str, int]) -> str:
    found = [name for name in names if f"/{name}".endswith(f"/{member}")]
    if not found:
        raise ArchiveError(f"{archive}: there is no {member!r} in it; {_DELETE}")
    if len(found) > 1:
        raise ArchiveError(
            f"{archive}: both {found[0]!r} and {found[1]!r} could be the member {member!r}; "
            f"{_DELETE}"
        )
    return found[0]


def _check_room(archive: Path, needed: int, folder: Path) -> None:
    """What an archive says of its files is more than they hold in none that can be read."""
    most, free = max(FLOOR, RATIO * archive.stat().st_size), shutil.disk_usage(folder).free
    if needed > most:
        raise ArchiveError(
            f"{archive} unpacks to more than {most:,} bytes, which no honest text does; {_DELETE}"
        )
    if needed > free:
        raise ArchiveError(
            f"{archive}: its files need {needed:,} bytes, {free:,} are free; make room"
        )
