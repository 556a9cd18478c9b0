"""Files: what one holds in one number, and how one is replaced; and what is installed."""

from __future__ import annotations

import glob
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path


def sha256(path: Path) -> str:
    """Hex digest of the file's bytes as they are stored."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def installed(names: Iterable[str]) -> dict[str, str]:
    """The versions of those of these packages that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Another path to write to, whose file then takes this path's place.

    The file has the new content, or is as it was: neither kill nor power cut leaves a half one.
    """
    # Not one name for all: two that write this file at once would write into one another's.
    part = path.with_name(f"{path.name}.{threading.get_native_id()}.part")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)  # a full disk needs its room
        raise
    # The folder's entries are on the disk before what relies on them.
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def forget_parts(path: Path) -> None:
    """Remove what kills left half beside this file, for whoever writes it alone."""
    for part in path.parent.glob(f"{glob.escape(path.name)}.*.part"):
        part.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str) -> None:
    """The file with this content (text as UTF-8), or as it was."""
    with replacing(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
