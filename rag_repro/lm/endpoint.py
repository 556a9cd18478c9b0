"""How a reader at an endpoint is named: `api:MODEL@URL`, of several servers `api:MODEL@URL,URL`.

`Servers` sends a request to whichever server has room, and again elsewhere or later where that
may help; it knows whose turn it is, who rests and who is gone.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rag_repro.post import Key, Unreachable, get, post, through
from rag_repro.schema.errors import CallError, ReaderError
from rag_repro.words import nearest

PREFIX = "api:"
KEY_VARIABLE = "RAG_REPRO_API_KEY"
"""The environment variable with the key, where readers are named in conditions."""


def parse(name: str) -> tuple[str, tuple[str, ...]]:
    """Model and addresses in `api:MODEL@URL,URL`. ReaderError: it is not of that form."""
    found = re.fullmatch(PREFIX + r"(?P<model>.+)@(?P<urls>https?://.+)", name)
    if found is None:
        raise ReaderError(
            "a reader at an endpoint is named api:MODEL@URL, as "
            "api:llama3.2:1b@http://127.0.0.1:11434/v1; of several servers with the same model "
            "the addresses stand side by side, with a comma between them"
        )
    return found["model"], addresses(found["urls"])


def label(name: str | None) -> str | None:
    """A reader's name as records hold it: at an endpoint the model alone.

    Which server answered, and how many there were, changes no answer.
    """
    if name is None or not name.startswith(PREFIX):
        return name
    return PREFIX + parse(name)[0]


def addresses(urls: str) -> tuple[str, ...]:
    """One address, or several with commas between. ReaderError: one cannot be used, or is twice."""
    found = tuple(checked(url) for url in urls.split(","))
    for url in found:
        if found.count(url) > 1:
            raise ReaderError(f"{url} is named twice; name each server once")
    return found


def checked(url: str) -> str:
    """An endpoint's address without a slash at its end. ReaderError: it cannot be used."""
    try:
        parts = urllib.parse.urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, half an IPv6 address
        known = False
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        raise ReaderError(
            "an endpoint's address must be one, beginning with http:// or https:// "
            "(a comma within an address is written %2C)"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ReaderError(
            "the endpoint's address must hold no credentials and no query: "
            "put the key into an environment variable and name that"
        )
    return parts._replace(netloc=parts.netloc.lower()).geturl().rstrip("/")


log = logging.getLogger(__name__)

_TEMPORARY = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_NOT_NOW = {429, 503}
_REFUSED = {301, 302, 303, 307, 308, 401, 402, 403, 404, 405, 410}
_NO_LIST = {404, 405, 501}
# The codes of accounts that are used up, where waiting helps nobody.
_SPENT = re.compile(
    r"insufficient_(?:quota|balance|credits?|funds)|billing_(?:hard_limit_reached|not_active)"
)
_COUNTS = 256  # tokens from which a server's count is held against its prompt
_GLANCE = 10.0  # seconds for a list of models, which a server that is up has at hand
REFUSES, SILENT = "refuses us", "does not answer"


class _Refusal(Exception):
    """The server wants nothing of us; no second request will change that."""


class Passing(Exception):
    """A failure that may pass. wait: the seconds that the server asks for.

    of_call: the request was there, and may itself be the cause.
    """

    def __init__(self, why: str, *, of_call: bool, wait: float | None = None):
        super().__init__(why)
        self.of_call, self.wait = of_call, wait


@dataclass(eq=False)
class Server:
    """What is known of one server; changed by `Servers` alone.

    load: requests in flight. failures: in a row, the last at `failed_at`. until: the moment up to
    which it rests. checked: it was seen to list the model. gone: it refuses us, and is not asked
    again; or it did not answer a one-word question either, and is tried again now and then. why:
    its last failure. limit: what it calls the most tokens of a reply.
    """

    url: str
    load: int = 0
    failures: int = 0
    failed_at: float = -float("inf")
    until: float = -float("inf")
    checked: bool = False
    gone: str = ""
    why: str = ""
    limit: str = "max_tokens"


class Servers:
    """Asks the servers of one model, with at most `in_flight` requests at each.

    The next request goes to the least loaded server that is ready. One that failed rests for
    `backoff` seconds, after the next failure twice that, and so on, up to `patience`; what it asks
    for counts instead. Then it gets one request alone, and no more until that has gone well.

    What was never sent, or sent back with "not now" (429, 503), is asked again for as long as any
    server is left. What a server broke off or failed over may be the request's own fault:
    after `retries` such failures, or where one server fails so often in a row, a one-word question
    decides. If it is answered the request is at fault; else the server is set aside.
    timeout: seconds for one request with its reply. Safe to use from many threads.
    """

    def __init__(
        self,
        model: str,
        urls: Sequence[str],
        key: Key,
        *,
        in_flight: int = 4,
        retries: int = 5,
        timeout: float = 120.0,
        backoff: float = 1.0,
        patience: float = 60.0,
    ):
        if in_flight < 1:
            raise ReaderError(f"in_flight is {in_flight}; it must be at least 1")
        self.model, self.all = model, tuple(map(Server, urls))
        self.in_flight, self.clock = in_flight, time.monotonic
        self._key, self._retries, self._timeout = key, retries, timeout
        self._backoff, self._patience = backoff, patience
        self._changed = threading.Condition()

    def begin(self) -> None:
        """A new run. ReaderError: no key, or a server that is up has another model."""
        self._key.check()
        if all(server.gone for server in self.all):  # each gets another chance
            for server in self.all:
                server.gone, server.failures, server.until = "", 0, -float("inf")
        for server in self.all:
            if server.failures:
                continue  # whoever asks it next looks first
            since = self.clock()
            try:
                self._look(server)
            except _Refusal as refusal:
                self.leave(server, REFUSES, str(refusal))
            except Passing as passing:
                self.rest(server, passing, since)

    def ask(self, path: str, body: dict[str, Any], stop: threading.Event) -> Any:
        """The reply, as JSON has it.

        CallError: this request cannot be answered. ReaderError: no server is left.
        CancelledError: `stop` is set, the run has ended meanwhile.
        """
        last, tries, failed = None, 0, 0
        while True:
            with self.place(stop, avoid=last) as server:
                last, tries, since = server, tries + 1, self.clock()
                try:
                    self._look(server)
                    reply = self._reply(server, path, body)
                    self.fine(server)
                    _check_whole(server, body, reply)
                    return reply
                except CallError:
                    self.fine(server)
                    raise
                except _Refusal as refusal:
                    self.leave(server, REFUSES, str(refusal))
                    continue
                except Passing as passing:
                    why = str(passing)
                    failed += passing.of_call
                    in_a_row = self.rest(server, passing, since)
                log.info("%s: %s; trying again", server.url, why)
                if max(failed, in_a_row) <= self._retries:
                    continue
                if server.gone or not self._answers(server, path, body):
                    self.leave(server, SILENT, why)
                    failed = 0
                    continue
                self.fine(server)
                if failed > self._retries:
                    raise CallError(f"gave up after {tries} tries: {why}")
                failed += 1

    def end(self, stop: threading.Event) -> None:
        """Let nobody wait any longer whose run this is."""
        with self._changed:
            stop.set()
            self._changed.notify_all()

    # ------------------------------------------------------------- whose turn it is

    @contextmanager
    def place(self, stop: threading.Event, avoid: Server | None = None) -> Iterator[Server]:
        """A place for one request, waited for; at `avoid` only where no other server is ready.

        ReaderError: no server is left. CancelledError: `stop` is set.
        """
        with self._changed:
            while not (ready := self._ready(stop, now := self.clock())):
                rests = (s.until - now for s in self.all if s.gone != REFUSES and s.until > now)
                self._wait(min(rests, default=None))
            server = min(ready, key=lambda s: (s is avoid, s.load))
            server.load += 1
        try:
            yield server
        finally:
            with self._changed:
                server.load -= 1
                self._changed.notify_all()

    def _ready(self, stop: threading.Event, now: float) -> list[Server]:
        """The servers that have room for a request."""
        if stop.is_set():
            raise CancelledError
        if all(server.gone for server in self.all):
            told = "; ".join(f"{s.url} {s.gone} ({s.why})" for s in self.all)
            raise ReaderError(
                f"{PREFIX}{self.model}: {told}; what was finished is kept: "
                f"run again once {'one' if len(self.all) > 1 else 'it'} does"
            )
        return [
            s
            for s in self.all
            if s.gone != REFUSES
            and s.until <= now
            and s.load < (1 if s.failures or not s.checked else self.in_flight)
        ]

    def _wait(self, seconds: float | None) -> None:
        self._changed.wait(seconds)

    def fine(self, server: Server) -> None:
        """It answered a request, be it with a refusal of that one request."""
        with self._changed:
            server.failures = 0
            if server.gone == SILENT:
                server.gone = ""
            self._changed.notify_all()

    def rest(self, server: Server, passing: Passing, since: float) -> int:
        """A request begun at `since` failed there: it rests. -> how many have failed in a row.

        Requests that fail together count as one.
        """
        with self._changed:
            if server.gone != REFUSES:  # why it refuses us is what the user must hear
                server.why = str(passing)
            if since >= server.failed_at:
                server.failures += 1
                server.failed_at = self.clock()
            rest = passing.wait
            if rest is None:  # doubling for days would leave the range of floats
                rest = self._backoff * 2 ** min(server.failures - 1, 32)
            server.until = max(server.until, self.clock() + min(rest, self._patience))
            return server.failures

    def leave(self, server: Server, gone: str, why: str) -> None:
        """It refuses us, or does not answer a word and is tried again after `patience`."""
        with self._changed:
            if server.gone == REFUSES:
                return
            if not server.gone:
                log.warning("%s %s and is left out: %s", server.url, gone, why)
            server.gone, server.why = gone, why
            server.until = self.clock() + self._patience
            self._changed.notify_all()

    def _answers(self, server: Server, path: str, body: dict[str, Any]) -> bool:
        """Whether it answers a word; where it does not, no other request would fare better."""
        small = {"messages": [{"role": "user", "content": "Hello"}]}
        small = small if "messages" in body else {"prompt": "Hello"}
        small = {"model": self.model, "max_tokens": 1, "temperature": 0, **small}
        try:
            self._reply(server, path, small)
        except (Passing, _Refusal):
            return False
        except CallError:
            pass  # an answer, if no kind one
        return True

    # ------------------------------------------------------------- one request

    def _reply(self, server: Server, path: str, body: dict[str, Any]) -> Any:
        asked = {server.limit if name == "max_tokens" else name: body[name] for name in body}
        data = json.dumps(asked).encode()
        try:
            status, headers, text = post(server.url + path, data, self._key, self._timeout)
        except ConnectionError as error:
            sent = not isinstance(error, Unreachable)
            raise Passing(shown(str(error)), of_call=sent) from None
        newer = "max_completion_tokens"
        if status == 400 and newer in text and server.limit != newer:
            server.limit = newer
            return self._reply(server, path, body)
        if status != 200:
            raise self._judged(server, status, headers, text)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            why = f"a reply that is no JSON: {shown(text)}"
        raise Passing(why, of_call=True)

    def _look(self, server: Server) -> None:
        """See to it that the server has our model, once. ReaderError: it has another."""
        if server.checked:
            return
        try:
            status, headers, text = get(
                f"{server.url}/models", self._key, min(_GLANCE, self._timeout)
            )
        except ConnectionError as error:
            raise Passing(shown(str(error)), of_call=False) from None
        listed = _listed(text) if status == 200 else None
        if listed is None:
            if status != 200 and status not in _NO_LIST:
                trouble = self._judged(server, status, headers, text)
                # Of no call: none was made yet.
                if isinstance(trouble, CallError):
                    trouble = _Refusal(str(trouble))
                elif isinstance(trouble, Passing):
                    trouble.of_call = False
                raise trouble
            why = f"{server.url} has no list of its models (GET /models: status {status}); "
            why += "most addresses end in /v1"
            if len(self.all) > 1:
                raise ReaderError(
                    f"{why}; it cannot be seen to answer as the other servers do: name it alone"
                )
            log.warning("%s: taken at its word that it serves %s", why, self.model)
        elif self.model not in listed:
            known = ", ".join(map(repr, listed[:8])) + (", …" if listed[8:] else "")
            raise ReaderError(
                f"{server.url} does not list the model {self.model!r}"
                f"{nearest(self.model, listed)}; it lists: {shown(known) or 'none'}"
            )
        server.checked = True

    def _judged(self, server: Server, status: int, headers: dict[str, str], text: str) -> Exception:
        """What a status other than 200 means."""
        why = f"status {status}: {shown(self._key.hidden(_told(text)))}{through(server.url)}"
        if 300 <= status < 400:
            why = f"status {status}: redirects are not followed; name the address it points to, "
            why += shown(headers.get("location", "none"))
        if status in _NO_LIST:
            why += " (is it the right address? most end in /v1)"
        if status == 401 and not self._key.name:
            why += f" ({KEY_VARIABLE} holds no key)"
        if status in _REFUSED or (status == 429 and _SPENT.search(text)):
            return _Refusal(why)
        if status not in _TEMPORARY:
            return CallError(why)
        return Passing(why, of_call=status not in _NOT_NOW, wait=_wanted(headers))


def _told(text: str) -> str:
    """An error's own words, where a server wraps them in JSON as most do."""
    try:
        held = json.loads(text)
        held = held.get("error") or held
        held = held if isinstance(held, str) else held.get("message") or held.get("detail")
    except (ValueError, RecursionError, AttributeError):
        held = None
    return held if isinstance(held, str) else text


def _check_whole(server: Server, body: dict[str, Any], reply: Any) -> None:
    """CallError: the server read less than the whole prompt.

    A word takes a token at least, and a token rarely holds 16 bytes.
    """
    try:
        usage = reply["usage"]
        tokens = int(usage["prompt_tokens"])
        tokens += int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return
    if tokens < _COUNTS:
        return  # what some servers tell of any prompt
    said = body["prompt"] if "prompt" in body else " ".join(m["content"] for m in body["messages"])
    words = said.split()
    size = len("".join(words).encode())
    if tokens < max(len(words) * 3 // 4, size // 16):
        raise CallError(
            f"no answer to the whole prompt: {server.url} read {tokens} tokens of it, and it has "
            f"{len(words)} words in {size} bytes; give the server a longer context (Ollama: "
            "num_ctx), or fewer or shorter passages"
        )


def _listed(text: str) -> list[str] | None:
    """The names in a list of models; None: the text is no such list."""
    try:
        return [str(one["id"]) for one in json.loads(text)["data"]]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None


def _wanted(headers: dict[str, str]) -> float | None:
    """The seconds that Retry-After says; None: it says none, or a date."""
    told = headers.get("retry-after", "")
    return float(told) if re.fullmatch(r"\d+(\.\d+)?", told, re.ASCII) else None


def shown(message: str) -> str:
    """The beginning of a message, in one line."""
    line = " ".join(message[:10_000].split())[:300]
    return "".join(c if c.isprintable() else "\ufffd" for c in line)
