"""A search engine of one's own: a small HTTP service in front of any retriever.

Three addresses, JSON in and out, by POST; whoever puts another engine behind them can search
with it (`web.WebSearch` is the other end):

    /about   {}                              -> {"fingerprint", "corpus": its sha256, "passages"}
    /search  {"query": text, "count": n}     -> {"fingerprint", "results": [{"id", "title",
                                                "snippet", "score"}, ...]}, best first
    /page    {"id": of a result}             -> {"id", "title", "text"}

`/about` may be missing, and so may the fingerprint, the corpus and a score. A snippet is the
passage itself; its page is all passages of its title, in the corpus's order. What is wrong in a
request is told with status 400 or 404 and {"error": why}.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..plain import PlainError, from_json
from ..schema import Passage
from .base import RetrievalError, Retriever

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
LARGEST = 1 << 20
"""Bytes of a request."""
MOST = 1_000
"""Results of a search."""
IDLE = 30.0
"""Seconds that a client may be silent within a request."""


class SearchServer(ThreadingHTTPServer):
    """Serves a retriever at `url` once `serve_forever` runs, or in a thread (`started`).

    host: the loopback alone by default; anybody who reaches the address can search.
    port: 0 takes any that is free. latency: seconds that each search and each page wait before
    they are answered, as an engine far away would have it; nothing else depends on it.

    Raises RetrievalError for an address that cannot be had or a latency below 0.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self,
        retriever: Retriever,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        latency: float = 0.0,
    ):
        if not 0 <= latency < float("inf"):
            raise RetrievalError(f"latency is {latency}; it must be a number of seconds from 0")
        self.retriever, self.latency = retriever, float(latency)
        self._pages: dict[str, list[Passage]] = defaultdict(list)
        for passage in retriever.corpus.passages:
            self._pages[passage.title].append(passage)
        self._one_at_a_time = threading.Lock()  # retrievers promise nothing about threads
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise RetrievalError(
                f"no search service at {host}, port {port} ({error}); name another host or port"
            ) from error

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host}:{port}"

    def started(self) -> SearchServer:
        """Serving in a thread that ends with the process, or with `stop`."""
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Nobody is answered any more."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""
        log.debug("a search was not answered to its end", exc_info=True)

    # --------------------------------------------------------------- answers

    def about(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        corpus = self.retriever.corpus
        told = {"corpus": corpus.sha256, "name": corpus.name, "passages": len(corpus)}
        return {"fingerprint": self.retriever.fingerprint, **told}

    def search(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        query, count = asked.get("query"), asked.get("count")
        if not isinstance(query, str) or not query.strip():
            raise _Refused(400, "query must be some text")
        if type(count) is not int or not 1 <= count <= MOST:
            raise _Refused(400, f"count must be a whole number from 1 to {MOST}")
        time.sleep(self.latency)
        with self._one_at_a_time:
            [hits] = self.retriever.search([query], count)
        rows = [
            {"id": h.passage.id, "title": h.passage.title, "snippet": h.passage.text}
            | {"score": h.score}
            for h in hits
        ]
        return {"fingerprint": self.retriever.fingerprint, "results": rows}

    def page(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        name, known = asked.get("id"), self.retriever.corpus.by_id
        found = known.get(name) if isinstance(name, str) else None
        if found is None:
            raise _Refused(404, "there is no such page")
        time.sleep(self.latency)
        text = "\n".join(passage.text for passage in self._pages[found.title])
        return {"id": found.id, "title": found.title, "text": text}


class _Refused(Exception):
    """A request that cannot be answered: the status, and why."""

    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: SearchServer
    protocol_version = "HTTP/1.1"
    timeout = IDLE

    def log_message(self, *arguments: Any) -> None:
        log.debug(*arguments)

    def do_POST(self) -> None:
        # One request a connection: a body that is not read would be taken for the next.
        self.close_connection = True
        served: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "/about": self.server.about,
            "/search": self.server.search,
            "/page": self.server.page,
        }
        try:
            if self.path not in served:
                raise _Refused(404, f"there are {', '.join(served)}")
            status, reply = 200, served[self.path](self._asked())
        except _Refused as refused:
            status, reply = refused.status, {"error": str(refused)}
        except Exception as error:  # the service goes on; who asked is told, and may ask again
            log.warning("a search failed: %s", error, exc_info=True)
            status, reply = 500, {"error": f"{type(error).__name__}: {error}"}
        self._reply(status, reply)

    def do_GET(self) -> None:
        self.close_connection = True
        self._reply(405, {"error": "ask by POST, with JSON"})

    def _asked(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _Refused(411, "the length of the request is not told")
        if int(length) > LARGEST:
            raise _Refused(413, f"a request has at most {LARGEST} bytes")
        try:
            asked = from_json(self.rfile.read(int(length)))
        except PlainError as error:
            raise _Refused(400, f"the request is {error}") from error
        if not isinstance(asked, dict):
            raise _Refused(400, "the request is no JSON object")
        return asked

    def _reply(self, status: int, reply: Mapping[str, Any]) -> None:
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
