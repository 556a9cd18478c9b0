"""One HTTP request with one deadline, and a key that no message or traceback shows."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import re
import ssl
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from rag_repro.schema.errors import ReaderError

if TYPE_CHECKING:
    import httpx

# At its lowest level it logs headers, in which a server may echo the key.
logging.getLogger("httpcore").setLevel(logging.INFO)

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
    time, a reply that was cut or has no end.
    """
    return _asked("POST", url, data, key, timeout)


def get(url: str, key: Key, timeout: float) -> tuple[int, dict[str, str], str]:
    """The same without anything to send."""
    return _asked("GET", url, None, key, timeout)


def _asked(
    method: str, url: str, data: bytes | None, key: Key, timeout: float
) -> tuple[int, dict[str, str], str]:
    import httpx  # not at the top: a command that sends nothing starts without it

    kind = ConnectionError
    try:
        # In a thread of its own: a notebook's has a loop that runs already.
        with ThreadPoolExecutor(1) as thread:
            status, headers, body = thread.submit(
                asyncio.run, _sent(method, url, data, key, timeout)
            ).result()
    except TimeoutError:
        why = "timed out"
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        if isinstance(error, httpx.ConnectError | httpx.InvalidURL):
            kind, error = Unreachable, _root(error)
        refused = isinstance(error, ConnectionRefusedError)
        why = "connection refused" if refused else key.hidden(f"{type(error).__name__}: {error}")
    else:
        told = {name: key.hidden(value) for name, value in headers.multi_items()}
        return status, told, key.hidden(body.decode("utf-8-sig", errors="replace"))
    # Outside the block: the frames of the cause, which hold the key, are not carried along.
    raise kind(why + through(url))


def _root(error: BaseException) -> BaseException:
    """What lies under an error that says no more than that all attempts failed."""
    while under := error.__cause__ or error.__context__:
        error = under.exceptions[0] if isinstance(under, ExceptionGroup) else under
    return error


async def _sent(
    method: str, url: str, data: bytes | None, key: Key, timeout: float
) -> tuple[int, httpx.Headers, bytes]:
    import httpx

    headers = {"Content-Type": "application/json", **key.headers()}
    client = httpx.AsyncClient(
        # Its own timeout would begin anew at each byte.
        verify=_trusted(),
        trust_env=False,
        proxy=proxy(url),
        timeout=None,
        headers=headers,
    )
    async with (
        asyncio.timeout(timeout),
        client,
        client.stream(method, url, content=data) as answer,
    ):
        body = b""
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > LARGEST:
                raise ValueError(f"a reply of more than {LARGEST} bytes")
        return answer.status_code, answer.headers, body


@cache
def _trusted() -> ssl.SSLContext:
    """The system's certificates, which take longer to read than most requests."""
    return ssl.create_default_context()


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
    named = urllib.request.getproxies().get(parts.scheme)
    return named if named is None or "://" in named else f"http://{named}"


def through(url: str) -> str:
    """For messages: the proxy that stands between, which may be what failed; "" without one."""
    named = proxy(url)
    if named is None:
        return ""
    where = urllib.parse.urlsplit(named).netloc.rpartition("@")[2]  # without user and password
    return f" (through the proxy {where} of the environment)"
