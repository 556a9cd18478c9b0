"""Files that more than one process may write: whole or not at all, one at a time."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

log = logging.getLogger(__name__)

_REMEDY = {
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "make room: your quota is used up",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "name a folder that can be written",
    errno.EACCES: "make it writable, or name another folder",
    errno.EPERM: "make it writable, or name another folder",
    errno.ENAMETOOLONG: "take shorter names",
}


def trouble(error: OSError) -> str:
    """What the system says and what to do, as "No space left on device; make room on the disk"."""
    remedy = _REMEDY.get(error.errno, "mend that")
    return f"{error.strerror or error}; {remedy}"


@contextmanager
def alone(lock: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock file -> True; wait for whoever holds it, or yield False. It is gone afterwards.

    The system frees the lock of a process that was killed; the empty file that
    it leaves behind holds up nobody.
    """
    while True:
        file = lock.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                file.close()
                yield False
                return
            log.info("%s: another run is at work on this; waiting for its end", lock)
            fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            # Its last holder may have removed it while we waited: then ours is a ghost.
            if os.path.samestat(lock.stat(), os.fstat(file.fileno())):
                break
        file.close()
    try:
        yield True
    finally:
        lock.unlink(missing_ok=True)
        file.close()


def is_locked(lock: Path) -> bool:
    """Whether a process that still runs holds the lock file; nothing is written."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def write_all(descriptor: int, data: bytes) -> None:
    """All of the data: a disk that fills up takes a part of it."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def check_output(path: Path, what: str = "a file") -> None:
    """Refuse, before the work that it is for, where no file can be written.

    Raises ValueError with what to do. Folders that are missing are made later, with the file.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name {what} in it")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no plain file; name another one")
    folder = next(p for p in path.absolute().parents if p.exists())
    if not folder.is_dir():
        raise ValueError(f"{folder} is a file, so nothing can be below it; name another folder")
    try:
        with tempfile.TemporaryFile(dir=folder):
            if path.exists() and not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, "Permission denied")
    except OSError as error:
        told = f"{error.strerror or error}; make it writable, or name another place"
        raise ValueError(f"{path} cannot be written: {told}") from error
