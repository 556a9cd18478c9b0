"""One HTTP request with one deadline, and a key that no message or traceback shows."""

from __future__ import annotations

import contextlib
import http.client
import io
import ipaddress
import os
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping

from rag_repro.schema.errors import ReaderError

LARGEST = 1 << 24  # bytes of a reply; an answer has a few thousand
SECRET = 8  # characters from which a key is taken for one; shorter ones are servers' dummies


class Key:
    """The key that an environment variable holds, read when it is needed and kept nowhere.

    name: the variable; None: no key. Nothing that printed this object, or the
    local variables of a function that holds it, could show the key.
    """

    def __init__(self, name: str | None):
        self.name = name

    def __repr__(self) -> str:
        return f"Key({self.name!r})"

    def headers(self) -> dict[str, str]:
        """What a request sends along."""
        return {"Authorization": f"Bearer {_value(self.name)}"} if self.name else {}

    def check(self) -> None:
        """ReaderError: there is no key, or it cannot be one."""
        if self.name and not _value(self.name):
            raise ReaderError(
                f"the environment variable {self.name} holds no key; set it to the server's"
            )
        if self.name and not re.fullmatch(r"[\x21-\x7e]+", _value(self.name)):
            # http.client would print the key in its complaint.
            raise ReaderError(
                f"the key in {self.name} holds white space or odd characters; set it anew"
            )

    def hidden(self, text: str) -> str:
        """The text with "[key]" in place of the key, should a server echo it.

        In whatever case, and written as JSON, HTML or an address would have it.
        """
        if not self.name or len(_value(self.name)) < SECRET:
            return text
        return re.sub("".join(map(_spellings, _value(self.name))), "[key]", text, flags=re.I)


def _value(name: str) -> str:
    return os.environ.get(name, "").strip()


def _spellings(c: str) -> str:
    code = f"{ord(c):x}"
    # Backslashes double where JSON stands in JSON.
    return rf"(?:\\*{re.escape(c)}|\\+u00{code}|%{code}|&#{ord(c)};|&#x{code};)"


class Unreachable(ConnectionError):
    """Nobody takes a connection there: the request was not sent."""


def post(url: str, data: bytes, key: Key, timeout: float) -> tuple[int, dict[str, str], str]:
    """Send JSON; -> status, headers (names in lower case), text; the key is in neither.

    Whatever the status; redirects are not followed. timeout: seconds for all of
    it, so that a server which sends a byte now and then holds nobody up.
    Unreachable: no such server. ConnectionError with the cause in words: no reply in
    time, a reply without end. (One that was cut is no JSON.)
    """
    return _asked(url, data, key, timeout)


def get(url: str, key: Key, timeout: float) -> tuple[int, dict[str, str], str]:
    """The same without anything to send."""
    return _asked(url, None, key, timeout)


def _asked(
    url: str, data: bytes | None, key: Key, timeout: float
) -> tuple[int, dict[str, str], str]:
    try:
        status, headers, body = _sent(url, data, key, timeout)
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = key.hidden(f"{type(error).__name__}: {error}") + through(url)
        # So urllib wraps what goes wrong before there is anything to read.
        kind = Unreachable if isinstance(error, urllib.error.URLError) else ConnectionError
    else:
        told = {name.lower(): key.hidden(value) for name, value in headers.items()}
        return status, told, key.hidden(body.decode("utf-8-sig", errors="replace"))
    # Outside the block: the frames of the cause, which hold the key, are not carried along.
    raise kind(why)


def _sent(
    url: str, data: bytes | None, key: Key, timeout: float
) -> tuple[int, Mapping[str, str], bytes]:
    proxies = None if proxy(url) else {}  # None: those of the environment
    opener = urllib.request.build_opener(
        _NoRedirect, _Timed(timeout), _TimedSafe(timeout), urllib.request.ProxyHandler(proxies)
    )
    headers = {"Content-Type": "application/json", **key.headers()}
    request = urllib.request.Request(url, data, headers, method="GET" if data is None else "POST")
    try:
        answer = opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        body = answer.read(LARGEST + 1)
        if len(body) > LARGEST:
            raise ValueError(f"a reply of more than {LARGEST} bytes")
        return answer.status, answer.headers, body


def is_loopback(host: str) -> bool:
    """Whether that host is this machine."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        address = getattr(address, "ipv4_mapped", None) or address
        return address.is_loopback or address.is_unspecified
    return host == "localhost" or host.endswith(".localhost")


def proxy(url: str) -> str | None:
    """The proxy of the environment that a request goes through; none leads to this machine."""
    parts = urllib.parse.urlsplit(url)
    bypassed = urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2])
    if is_loopback(parts.hostname or "") or bypassed:
        return None
    return urllib.request.getproxies().get(parts.scheme)


def through(url: str) -> str:
    """For messages: the proxy that stands between, which may be what failed; "" without one."""
    named = proxy(url)
    if named is None:
        return ""
    # Its user and password are nobody's business.
    return f" (through the proxy {named.rpartition('@')[2]} of the environment)"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None


# ---------------------------------------------------------------- the deadline


class _Reads(io.RawIOBase):
    """What a socket sends, until a moment; the socket's own timeout begins anew at each byte."""

    def __init__(self, sock: socket.socket, until: float):
        self._sock, self._until = sock, until
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Socket:
    """A socket whose reply must be read until a moment."""

    def __init__(self, sock: socket.socket, until: float):
        self._sock, self._until = sock, until

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reads(self._sock, self._until))

    def __getattr__(self, name: str):
        return getattr(self._sock, name)


def _until(kind: type, seconds: float) -> type:
    """A class of connections whose replies have so many seconds from now."""
    end = time.monotonic() + seconds

    class Connection(kind):
        def connect(self) -> None:
            super().connect()
            self.sock = _Socket(self.sock, end)

    return Connection


class _Timed(urllib.request.HTTPHandler):
    def __init__(self, seconds: float):
        super().__init__()
        self._seconds = seconds

    def http_open(self, req):
        return self.do_open(_until(http.client.HTTPConnection, self._seconds), req)


class _TimedSafe(urllib.request.HTTPSHandler):
    def __init__(self, seconds: float):
        super().__init__()
        self._seconds = seconds

    def https_open(self, req):
        return self.do_open(_until(http.client.HTTPSConnection, self._seconds), req)
