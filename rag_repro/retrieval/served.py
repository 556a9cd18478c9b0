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

import asyncio
import logging
import socket
import threading
from collections import defaultdict
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from rag_repro.plain import PlainError, from_json
from rag_repro.retrieval.interface import RetrievalError, Retriever
from rag_repro.schema import Passage

log = logging.getLogger(__name__)

LARGEST = 1 << 20  # bytes of a request
MOST = 1_000  # results of a search
CLIENTS = 512  # connections at once; those beyond get status 503 and may ask again
ONCE = {"Connection": "close"}  # a body that is not read would be taken for the next request


class SearchServer:
    """Serves a retriever at `url` once `serve_forever` runs, or in a thread (`started`).

    host: the loopback alone by default; anybody who reaches the address can search. On the
    loopback a request must name it as its Host, so that no web page reaches it by a name of its
    own. port: 0 takes any that is free. latency: seconds that each search and each page take
    longer, as an engine far away would; nothing else depends on it.

    Raises RetrievalError for an address that cannot be had or a latency below 0.
    """

    def __init__(
        self, retriever: Retriever, *, host: str = "127.0.0.1", port: int = 0, latency: float = 0
    ):
        if not 0 <= latency < float("inf"):
            raise RetrievalError(f"latency is {latency}; it must be a number of seconds from 0")
        self.retriever, self.latency = retriever, float(latency)
        self._pages: dict[str, list[Passage]] = defaultdict(list)
        for passage in retriever.corpus.passages:
            self._pages[passage.title].append(passage)
        self._one_at_a_time = threading.Lock()  # retrievers promise nothing about threads
        try:
            self._socket = socket.create_server((host, port), backlog=2_048)
        except (OSError, OverflowError) as error:
            raise RetrievalError(
                f"no search service at {host}, port {port} ({error}); name another host or port"
            ) from error
        address, port = self._socket.getsockname()
        self.url = f"http://{address}:{port}"
        hosts = [host, address, "localhost"] if ip_address(address).is_loopback else ["*"]
        app = Starlette(
            routes=[Route("/{what}", self._answered, methods=["POST"])],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)],
            exception_handlers={HTTPException: _told, Exception: _told},
        )
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",  # it logs clients that went away, with a stack
                limit_concurrency=CLIENTS,
                timeout_graceful_shutdown=3,
            )
        )
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    def serve_forever(self) -> None:
        """Until `stop`, or an interrupt, which is raised once the last answers are out."""
        self._server.run(sockets=[self._socket])

    def started(self) -> SearchServer:
        """Serving in a thread that ends with the process, or with `stop`."""
        self._thread.start()
        return self

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    async def _answered(self, request: Request) -> JSONResponse:
        served = {"about": self.about, "search": self.search, "page": self.page}
        if (what := request.path_params["what"]) not in served:
            raise HTTPException(404, f"there are /{', /'.join(served)}")
        reply = await asyncio.to_thread(served[what], await _asked(request))  # others are heard
        await asyncio.sleep(self.latency if what != "about" else 0)
        return JSONResponse(reply, headers=ONCE)

    # --------------------------------------------------------------- answers

    def about(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        corpus = self.retriever.corpus
        told = {"corpus": corpus.sha256, "name": corpus.name, "passages": len(corpus)}
        return {"fingerprint": self.retriever.fingerprint, **told}

    def search(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        query, count = asked.get("query"), asked.get("count")
        if not isinstance(query, str) or not query.strip():
            raise HTTPException(400, "query must be some text")
        if type(count) is not int or not 1 <= count <= MOST:
            raise HTTPException(400, f"count must be a whole number from 1 to {MOST}")
        with self._one_at_a_time:
            [hits] = self.retriever.search([query], count)
        rows = [
            {"id": p.id, "title": p.title, "snippet": p.text, "score": score}
            for p, score in ((hit.passage, hit.score) for hit in hits)
        ]
        return {"fingerprint": self.retriever.fingerprint, "results": rows}

    def page(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        name, known = asked.get("id"), self.retriever.corpus.by_id
        found = known.get(name) if isinstance(name, str) else None
        if found is None:
            raise HTTPException(404, "there is no such page")
        text = "\n".join(passage.text for passage in self._pages[found.title])
        return {"id": found.id, "title": found.title, "text": text}


async def _asked(request: Request) -> dict[str, Any]:
    length = request.headers.get("Content-Length")
    if length is None or "Transfer-Encoding" in request.headers:
        raise HTTPException(411, "the length of the request is not told")
    if int(length) > LARGEST:
        raise HTTPException(413, f"a request has at most {LARGEST} bytes")
    try:
        asked = from_json(await request.body())
    except PlainError as error:
        raise HTTPException(400, f"the request is {error}") from error
    if not isinstance(asked, dict):
        raise HTTPException(400, "the request is no JSON object")
    return asked


async def _told(request: Request, error: Exception) -> JSONResponse:
    """What is wrong. The service goes on, and who asked may ask again."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code, ONCE)
    log.warning("a search failed: %s", error, exc_info=error)
    return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 500, ONCE)
