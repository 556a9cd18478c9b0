"""Several servers behind one reader: whose turn it is, who rests, who is gone.

Nothing here sends anything. A request holds a `place` at a server, and tells what became of it:
`fine`, `trouble`, `lose` or `refuse`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rag_repro.schema.errors import ReaderError

log = logging.getLogger(__name__)


class Stopped(Exception):
    """The run has ended meanwhile; this request need not be made."""


@dataclass(frozen=True)
class Waiting:
    """How long is waited after what went wrong.

    backoff: seconds after the first failure, twice that after the second, and so on; what a
    server asks for counts instead. patience: the most. jitter: draws by how much a wait of our own
    is stretched or cut (a quarter), so that requests which failed together do not return together.
    """

    backoff: float
    patience: float
    jitter: random.Random

    def seconds(self, failures: int, asked_for: float | None = None) -> float:
        """After so many failures in a row (from 1)."""
        if asked_for is None:
            # Doubling for days would leave the range of floats.
            asked_for = self.backoff * 2 ** min(failures - 1, 32) * self.jitter.uniform(0.75, 1.25)
        return min(asked_for, self.patience)


@dataclass(eq=False)
class Server:
    """What is known of one server; changed by `Servers` alone.

    load: requests in flight. served: places taken so far. failures: in a row. until: the moment up
    to which it rests. why: its last failure. checked: it was seen to list the model. lost: it did
    not answer a one-word question either, and is tried again now and then; refuses: it
    wants nothing of us, and is not. limit: what it calls the most tokens of a reply. counts: the
    most tokens that it counted in a prompt, and the lengths of the prompts of so many.
    """

    url: str
    load: int = 0
    served: int = 0
    failures: int = 0
    failed_at: float = -float("inf")
    until: float = -float("inf")
    why: str = ""
    checked: bool = False
    lost: bool = False
    refuses: bool = False
    limit: str = "max_tokens"
    counts: tuple[int, frozenset[int]] = (0, frozenset())


@dataclass
class Servers:
    """Hands out places, at most `in_flight` at a server, to the least loaded that is ready.

    A server that failed rests for a while; then it gets one request alone, and no more until
    that has gone well. Safe to use from many threads. name: the reader's, for messages.
    clock: seconds that only grow.
    """

    name: str
    urls: Sequence[str]
    in_flight: int
    waiting: Waiting
    clock: Callable[[], float] = time.monotonic
    all: tuple[Server, ...] = field(init=False)

    def __post_init__(self):
        if self.in_flight < 1:
            raise ReaderError(f"in_flight is {self.in_flight}; it must be at least 1")
        self.all = tuple(map(Server, self.urls))
        self._changed = threading.Condition()

    def begin(self) -> None:
        """A new run: where none was left, each gets another chance."""
        with self._changed:
            if self._none_left():
                for server in self.all:
                    server.lost = server.refuses = False
                    server.failures, server.until = 0, -float("inf")

    @contextmanager
    def place(self, stop: threading.Event, avoid: Server | None = None) -> Iterator[Server]:
        """A place for one request, waited for; at `avoid` only where no other server is ready.

        ReaderError: none is left. Stopped: `stop` is set.
        """
        server = self._take(stop, avoid)
        try:
            yield server
        finally:
            with self._changed:
                server.load -= 1
                self._changed.notify_all()

    def _take(self, stop: threading.Event, avoid: Server | None) -> Server:
        with self._changed:
            while True:
                if stop.is_set():
                    raise Stopped
                if self._none_left():
                    raise ReaderError(self._why())
                left, now = [s for s in self.all if not s.refuses], self.clock()
                ready = [s for s in left if s.until <= now and s.load < self._room(s)]
                if ready:
                    # Of equal ones the less used: each is soon seen to work.
                    server = min(ready, key=lambda s: (s is avoid, s.load, s.served))
                    server.load += 1
                    server.served += 1
                    return server
                self._wait(min((s.until - now for s in left if s.until > now), default=None))

    def fine(self, server: Server) -> None:
        """It answered a request, be it with a refusal of that one request."""
        with self._changed:
            if server.lost or server.failures:
                log.info("%s answers again", server.url)
            server.failures, server.lost = 0, False
            self._changed.notify_all()

    def trouble(
        self, server: Server, why: str, since: float, asked_for: float | None = None
    ) -> int:
        """A request begun at `since` failed there: it rests. -> how many have failed in a row.

        Requests that fail together count as one. asked_for: the seconds after which the server
        wants to be asked again.
        """
        with self._changed:
            if not server.refuses:  # why it refuses us is what the user must hear
                server.why = why
            if since >= server.failed_at:
                server.failures += 1
                server.failed_at = self.clock()
            rest = self.waiting.seconds(server.failures, asked_for)
            server.until = max(server.until, self.clock() + rest)
            return server.failures

    def lose(self, server: Server, why: str) -> None:
        """It does not answer a word: set aside, and tried again when patience is at its end."""
        with self._changed:
            if not server.lost:
                log.warning("%s does not answer and is set aside: %s", server.url, why)
            server.lost, server.why = True, why
            server.until = self.clock() + self.waiting.patience
            self._changed.notify_all()

    def refuse(self, server: Server, why: str) -> None:
        """It wants nothing of us: not asked again in this run."""
        with self._changed:
            if not server.refuses:
                log.warning("%s refuses us and is left out: %s", server.url, why)
            server.refuses, server.why = True, why
            self._changed.notify_all()

    def pause(self, failures: int, stop: threading.Event, asked_for: float | None = None) -> None:
        """Let a request wait that failed, at no fault of its server's."""
        seconds = self.waiting.seconds(failures, asked_for)
        with self._changed:
            until = self.clock() + seconds
            while not stop.is_set() and (left := until - self.clock()) > 0:
                self._wait(left)

    def end(self, stop: threading.Event) -> None:
        """Let nobody wait any longer whose run this is."""
        with self._changed:
            stop.set()
            self._changed.notify_all()

    def _wait(self, seconds: float | None) -> None:
        self._changed.wait(seconds)

    def _room(self, server: Server) -> int:
        return self.in_flight if server.checked and not server.failures else 1

    def _none_left(self) -> bool:
        return all(server.lost or server.refuses for server in self.all)

    def _why(self) -> str:
        told = [
            f"{s.url} {'refuses us' if s.refuses else 'does not answer'} ({s.why})"
            for s in self.all
        ]
        again = "run again once one does" if len(self.all) > 1 else "run again once it does"
        return f"{self.name}: {'; '.join(told)}; what was finished is kept: {again}"
