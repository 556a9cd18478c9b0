"""Named members out of a zip or tar.gz file, and nothing else.

No name in the archive ever becomes a path here: members are copied to where
the caller says.
"""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from rag_repro.digest import replacing

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
    try:
        with _opened(archive) as (names, read), ExitStack() as parts:
            entries = [_entry(archive, member, names) for member in members]
            for name, target in zip(entries, members.values(), strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                part = parts.enter_context(replacing(target))
                with read(name) as content, part.open("xb") as out:
                    shutil.copyfileobj(content, out)
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
def _opened(archive: Path) -> Iterator[tuple[list[str], Callable[[str], BinaryIO]]]:
    """The names of the regular files in an archive, and what opens one by its name."""
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as opened:
            yield [info.filename for info in opened.infolist() if not info.is_dir()], opened.open
    else:
        with tarfile.open(archive, "r:gz") as opened:
            yield [info.name for info in opened if info.isreg()], opened.extractfile


def _entry(archive: Path, member: str, names: Sequence[str]) -> str:
    found = [name for name in names if f"/{name}".endswith(f"/{member}")]
    if not found:
        raise ArchiveError(f"{archive}: there is no {member!r} in it; {_DELETE}")
    if len(found) > 1:
        raise ArchiveError(
            f"{archive}: both {found[0]!r} and {found[1]!r} could be the member {member!r}; "
            f"{_DELETE}"
        )
    return found[0]
