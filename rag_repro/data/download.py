"""One file over HTTP, whole and checked, or not at all.

Bytes go to `<name>.part` beside the target (`transfer`). Only what has the
right length and SHA-256 gets the target's name.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from ..digest import sha256 as sha256_of
from .transfer import DownloadError, Patience, Transfer, without_query

log = logging.getLogger(__name__)

__all__ = ["DownloadError", "Patience", "download"]


def download(
    url: str,
    target: Path,
    *,
    size: int | None = None,
    sha256: str | None = None,
    patience: Patience | None = None,
) -> str:
    """Get `url` as `target` -> its SHA-256. size, sha256: what the file must have.

    Dropped, stalled and cut connections are tried again from where they
    stopped (Range with If-Range; from the start where the file has changed or
    the server cannot). On KeyboardInterrupt, too, what is there is kept.

    Raises DownloadError: an address that is not http(s), also after a
    redirect; no room; a refusal; wrong length or bytes (which are deleted);
    another process is at the same file.
    """
    _check_address(url)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target.with_name(target.name + ".part")) as file:
            if target.exists():
                raise DownloadError(f"{target} is there already; move it away first")
            job = Transfer(url, target, file, size, patience or Patience())
            job.run()
            got = sha256_of(job.part)
            if sha256 is not None and got != sha256 and job.stitched:
                log.info("%s: wrong bytes when put together; downloading it whole", target.name)
                job.restart()
                job.run()
                got = sha256_of(job.part)
            if sha256 is not None and got != sha256:
                job.restart()
                raise DownloadError(
                    f"{target.name}: wrong bytes from {job.url}: SHA-256 {sha256} was expected, "
                    f"{got} came; they are deleted. The release has changed or somebody has "
                    "changed it on the way: look at the data set's page"
                )
            os.fsync(file.fileno())
            os.replace(job.part, target)
            job.note.unlink(missing_ok=True)
            return got
    except OSError as error:
        raise DownloadError(f"{target}: cannot be written ({error})") from error


@contextmanager
def _alone(part: Path) -> Iterator[BinaryIO]:
    """The open part file, locked; an empty one is not left behind."""
    while True:
        file = part.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise DownloadError(
                f"{part}: another process is downloading this file; wait until it has finished"
            ) from None
        # Its last holder may have renamed it since we opened it: then it is no longer the part.
        if part.exists() and os.fstat(file.fileno()).st_ino == part.stat().st_ino:
            break
        file.close()
    try:
        yield file
    finally:
        file.flush()
        if part.exists() and not part.stat().st_size:
            part.unlink()
        file.close()


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DownloadError(
            f"{without_query(url).rpartition('@')[2]!r}: the address must begin with http:// or https://"
        )
    if parts.username or parts.password:
        raise DownloadError("the address must hold no name and password")
