"""The bytes of one file over HTTP into its part file, however often it takes.

`<name>.part.json` beside the part says which version of the file they belong
to, so that a later call goes on where the last one stopped.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from rag_repro.bars import Bar
from rag_repro.digest import write_whole

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

_TEMPORARY = {408, 425, 429, 500, 502, 503, 504}
_RANGE = re.compile(r"bytes ([0-9]{1,15})-[0-9]{1,15}/([0-9]{1,15})")


class DownloadError(ValueError):
    """A file could not be downloaded; the message names it, its address and what to do."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds of silence until a connection counts as stalled; tries that bring no new byte;
    the first wait between two tries, doubled each time up to the longest (also of those that
    a server asks for); bytes a second below which it is given up, past the first `grace` seconds;
    bytes of a file whose size we do not know."""

    stall: float = 30.0
    retries: int = 5
    backoff: float = 1.0
    longest: float = 120.0
    slowest: float = 10_000.0
    grace: float = 300.0
    largest: int = 1 << 36


class _Again(Exception):
    """This try failed, the next may not. wait: seconds that the server asks for."""

    def __init__(self, why: str, wait: float | None = None):
        super().__init__(why)
        self.wait = wait


class Transfer:
    """One download: `have` bytes of the file are in the part. stitched: of several answers."""

    def __init__(
        self, url: str, target: Path, file: BinaryIO, size: int | None, patience: Patience
    ):
        self._address, self.url = url, without_query(url)
        self.target, self.size, self.patience = target, size, patience
        self.part = target.with_name(target.name + ".part")
        self.note = target.with_name(target.name + ".part.json")
        self._file = file
        self.stitched = False
        self.have = file.seek(0, os.SEEK_END)

    def restart(self) -> None:
        """Throw away what is there."""
        self.note.unlink(missing_ok=True)
        self._file.truncate(0)
        self.have, self.stitched = 0, False

    def _version(self) -> str | None:
        """What names the version of the file that the part is of; None where nothing does."""
        try:
            noted = json.loads(self.note.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        match noted:
            case {"url": self.url, "version": str(version)} if version.isascii():
                return version if version.isprintable() else None
        return None

    def run(self) -> None:
        """All bytes into the part, or DownloadError."""
        import httpx

        limits = httpx.Timeout(self.patience.stall)
        hooks = {"response": [_check_redirect]}
        failures, best = 0, self.have
        self._began, self._came = time.monotonic(), 0
        settings = {"follow_redirects": True, "event_hooks": hooks}
        settings["trust_env"] = not is_here(urlsplit(self.url).hostname)  # no proxy leads here
        with (
            httpx.Client(timeout=limits, **settings) as client,
            Bar(desc=self.target.name, unit="B", unit_scale=True, total=self.size) as bar,
        ):
            while True:
                try:
                    self._once(client, bar)
                    return
                except (httpx.TransportError, _Again) as error:
                    why = str(error) or type(error).__name__
                    asked = getattr(error, "wait", None)
                except (httpx.RequestError, httpx.InvalidURL) as error:
                    raise DownloadError(f"{self.url}: {error}") from error
                finally:
                    self._file.flush()
                failures = 0 if self.have > best else failures + 1
                best = max(best, self.have)
                if failures > self.patience.retries:
                    kept = f"; {self.part.name} is kept, and the same command goes on from it"
                    raise DownloadError(
                        f"{self.url}: gave up after {failures} tries without a new byte "
                        f"({why}){kept if self.have else ''}"
                    )
                wait = self.patience.backoff * 2**failures if asked is None else asked
                log.info("%s: %s; trying again", self.target.name, why)
                time.sleep(min(wait, self.patience.longest))

    def _once(self, client: httpx.Client, bar) -> None:
        # identity: a compressed transfer has another length and another hash.
        headers = {"Accept-Encoding": "identity"}
        version = self._version()
        if self.have and version is not None:
            headers |= {"Range": f"bytes={self.have}-", "If-Range": version}
        elif self.have:
            self.restart()
        with client.stream("GET", self._address, headers=headers) as answer:
            self._accept(answer)
            total = self._total(answer)
            self._check_room(total)
            bar.reset(total)
            bar.n = bar.initial = self.have
            for chunk in answer.iter_raw():
                self._file.write(chunk)
                self.have += len(chunk)
                self._came += len(chunk)
                self._check_pace()
                bar.update(len(chunk))
                if total is not None and self.have > total:
                    self.restart()
                    raise _Again("the server sends more than it announced")
        if total is not None and self.have < total:
            raise _Again(f"cut off at {self.have:,} of {total:,} bytes")

    def _accept(self, answer: httpx.Response) -> None:
        """Make the part ready for the body of this answer, or raise."""
        status = answer.status_code
        if status == 416 and self.have:
            self.restart()
            raise _Again("the server has no more than what is here; from the start")
        if status in _TEMPORARY:
            raise _Again(f"status {status}", _seconds(answer.headers.get("Retry-After")))
        if status not in (200, 206):
            raise DownloadError(
                f"{self.url}: the server refuses with status {status}; the file may have moved: "
                "look at the data set's page, and give its new address with --url"
            )
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            raise DownloadError(
                f"{self.url}: a web page came instead of the file (to log in, to confirm, or an "
                "error); open the address in a browser"
            )
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise DownloadError(
                f"{self.url}: the server sends the file in another form than it was asked for; "
                "download it with a browser"
            )
        if status == 200:
            self.restart()
            noted = {"url": self.url, "version": _version(answer)}
            write_whole(self.note, json.dumps(noted))
            return
        found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        # A 206 need not repeat the date by which it was asked for.
        same = _version(answer) in (None, self._version())
        if found is None or int(found[1]) != self.have or not same:
            self.restart()
            raise _Again("the server went on with another file or at another place")
        self.stitched = True

    def _total(self, answer: httpx.Response) -> int | None:
        """The length of the whole file; None where it is sent in chunks, which have an end."""
        headers = answer.headers
        if answer.status_code == 206:
            total = int(_RANGE.fullmatch(headers["Content-Range"])[2])
        elif headers.get("Content-Length", "").isdecimal():
            total = int(headers["Content-Length"])
        elif self.size is not None or headers.get("Transfer-Encoding"):
            total = self.size
        else:
            raise DownloadError(
                f"{self.url}: the server does not say how long the file is, so one that is cut "
                "off would pass for whole; download it with a browser"
            )
        if self.size is not None and total != self.size:
            raise DownloadError(
                f"{self.url}: {self.size:,} bytes were expected, the server has {total:,}: the "
                "release has changed or this is another file; look at the data set's page"
            )
        return total

    def _check_pace(self) -> None:
        """Of a server that drips, or has no end. What is sent again counts once more."""
        seconds, patience = time.monotonic() - self._began, self.patience
        if seconds > patience.grace + self._came / patience.slowest:
            raise DownloadError(
                f"{self.url}: {self._came:,} bytes in {seconds:,.0f} seconds are too few; "
                f"{self.part.name} is kept, and the same command goes on from it"
            )
        if self.size is None and self.have > patience.largest:
            self.restart()
            raise DownloadError(
                f"{self.url}: sends more than {patience.largest:,} bytes, which no release has; "
                "look at the data set's page"
            )

    def _check_room(self, total: int | None) -> None:
        needed, free = (total or 0) - self.have, shutil.disk_usage(self.target.parent).free
        if needed > free:
            raise DownloadError(
                f"{self.target.name} needs {needed:,} more bytes, {free:,} are free in "
                f"{self.target.parent}; make room or name another folder"
            )


def _check_redirect(answer: httpx.Response) -> None:
    """Redirects stay on the web, and do not leave encryption."""
    if answer.has_redirect_location:
        goal = answer.url.join(answer.headers["Location"])
        inwards = is_here(goal.host) and not is_here(answer.url.host)
        if inwards or (
            goal.scheme != "https" and (goal.scheme != "http" or answer.url.scheme == "https")
        ):
            told = without_query(str(answer.url)), without_query(str(goal))
            raise DownloadError("{}: redirects to {}, which is refused".format(*told))


def without_query(url: str) -> str:
    """For messages and notes: behind the ? may stand a token."""
    return url.partition("?")[0].partition("#")[0]


def is_here(host: str | None) -> bool:
    """Whether that host is this machine: no proxy leads there, nor a redirect from elsewhere."""
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


def _version(answer: httpx.Response) -> str | None:
    """What names this version of the file for sure: a strong ETag, or the date."""
    tag = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') else answer.headers.get("Last-Modified")


def _seconds(header: str | None) -> float | None:
    """What Retry-After says, where it says seconds."""
    return float(header) if header and header.isdecimal() else None
