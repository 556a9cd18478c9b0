"""One file over HTTP, whole and checked, or not at all.

Bytes go to `<name>.part` beside the target. Only what has the right SHA-256 gets the target's
name. A part is gone on with where the file's SHA-256 is known, which then tells whether it was
put together rightly.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import tenacity

from rag_repro.bars import Bar
from rag_repro.digest import sha256 as sha256_of

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

TRIES = 8
"""Of one call, until it gives up."""
SILENCE = 30.0
"""Seconds until a connection counts as stalled."""
_TEMPORARY = {408, 425, 429, 500, 502, 503, 504}
_ADDRESS = re.compile(r"https?://[^/?#@]+([/?#]|$)")


class FetchError(ValueError):
    """A release or a file of it cannot be had; the message says what to do instead."""


class _Again(Exception):
    """This try failed, the next may not."""


def download(url: str, target: Path, *, size: int | None = None, sha256: str | None = None) -> str:
    """Get `url` as `target` -> its SHA-256. size, sha256: what the file must have.

    Dropped, stalled and cut connections are tried again, from where they
    stopped if the SHA-256 is known. On KeyboardInterrupt, too, what is there is kept.

    Raises FetchError: an address that is not http(s); a refusal; wrong length or bytes
    (which are deleted); another process is at the same file.
    """
    import httpx

    if not _ADDRESS.match(url):
        raise FetchError(
            "the address must begin with http:// or https://, and hold no name and password"
        )
    part, shown = target.with_name(target.name + ".part"), without_query(url)
    passing = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError, _Again)
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(passing),
        stop=tenacity.stop_after_attempt(TRIES),
        wait=tenacity.wait_exponential(max=120),
        before_sleep=tenacity.before_sleep_log(log, logging.INFO),
        reraise=True,
    )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                with httpx.Client(timeout=SILENCE, follow_redirects=True) as client:
                    retrying(_receive, client, url, file, size, keep=sha256 is not None)
                file.flush()
                got = sha256_of(part)
                if sha256 not in (None, got):
                    file.truncate(0)
                    raise FetchError(
                        f"{target.name}: wrong bytes from {shown}: SHA-256 {sha256} was expected, "
                        f"{got} came; they are deleted. Give the same command again; where that "
                        "does not help the release has changed, or somebody has changed it on the "
                        "way: look at the data set's page"
                    )
                os.replace(part, target)
                return got
            finally:
                file.flush()
                if part.exists() and not part.stat().st_size:
                    part.unlink()
    except BlockingIOError:
        raise FetchError(
            f"{part}: another process is downloading this file; wait until it has finished"
        ) from None
    except OSError as error:
        raise FetchError(f"{target}: cannot be written ({error})") from error
    except passing as error:
        why = str(error) or type(error).__name__
        kept = f"; {part.name} is kept, and the same command goes on from it"
        raise FetchError(
            f"{shown}: gave up after {TRIES} tries ({why}){kept if sha256 else ''}"
        ) from error
    except (httpx.RequestError, httpx.InvalidURL) as error:
        raise FetchError(f"{shown}: {error}") from error


def _receive(
    client: httpx.Client, url: str, file: BinaryIO, size: int | None, *, keep: bool
) -> None:
    """All bytes into the open part, or _Again, or FetchError."""
    have = file.seek(0, os.SEEK_END) if keep else file.truncate(0)
    # identity: a compressed transfer has another length and another hash.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", url, headers=headers) as answer:
        goes_on = have and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if answer.status_code in (206, 416) and not goes_on:
            file.truncate(0)
            raise _Again("the server does not go on from what is here; from the start")
        _check_answer(answer, without_query(url))
        if answer.status_code != 206:
            have = file.truncate(0)
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else size
        if size is not None and total != size:
            raise FetchError(
                f"{without_query(url)}: {size:,} bytes were expected, the server has {total:,}: "
                "the release has changed or this is another file; look at the data set's page"
            )
        name = Path(file.name).stem
        with Bar(desc=name, unit="B", unit_scale=True, total=total, initial=have) as bar:
            for chunk in answer.iter_raw():
                bar.update(file.write(chunk))


def _check_answer(answer: httpx.Response, url: str) -> None:
    if answer.status_code in _TEMPORARY:
        raise _Again(f"status {answer.status_code}")
    if answer.status_code not in (200, 206):
        raise FetchError(
            f"{url}: the server refuses with status {answer.status_code}; the file may have moved: "
            "look at the data set's page, and give its new address with --url"
        )
    if answer.headers.get("Content-Type", "").startswith("text/html"):
        raise FetchError(
            f"{url}: a web page came instead of the file (to log in, to confirm, or an "
            "error); open the address in a browser"
        )
    told = any(name in answer.headers for name in ("Content-Length", "Transfer-Encoding"))
    if "Content-Encoding" in answer.headers or not told:
        raise FetchError(
            f"{url}: the server compresses the file, or does not say how long it is, so that one "
            "that is cut off would pass for whole; download it with a browser"
        )


def without_query(url: str) -> str:
    """For messages: behind the ? may stand a token."""
    return url.partition("?")[0].partition("#")[0]
