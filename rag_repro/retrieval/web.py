"""Searching with a service outside: title, snippet and, if wished, the page, over HTTP.

The other end is `served.SearchServer`, or any engine that answers as its head says. What is
found are passages all the same, so that nothing else needs to know; but a service outside may
be slow, gone, or say what nobody understands, and each of these is told apart:

- what may pass (no connection, no reply in time, a reply cut short, status 429 or 5xx) is
  tried again, with longer and longer waits;
- a query that still fails, or that is refused, has a `QueryError` in its place, and its
  question fails alone;
- where not even a plain word is answered any more the run stops with a `ServiceUnusable`; what is
  finished is kept, and running again goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, ClassVar

from rag_repro.plain import UNSEEN, PlainError, from_json, shortened
from rag_repro.post import Key, post
from rag_repro.retrieval.analyzer import Analyzer, suited
from rag_repro.retrieval.bm25 import BM25
from rag_repro.retrieval.interface import (
    RetrievalError,
    Retriever,
    Within,
    card_of,
    check_address,
    check_search,
)
from rag_repro.schema import Hit, Passage
from rag_repro.schema.dataset import Corpus
from rag_repro.splitter import english
from rag_repro.words import whole


def best_sentences(text: str, query: str, n: int, analyzer: Analyzer | None = None) -> str:
    """A page's n best sentences for the query by BM25, joined by blanks, in the page's order.

    ERM4 reads the pages that a search finds and leaves out "irrelevant information using the BM25
    algorithm" (section 6), without saying how; statistics here are the page's. Of equal ones
    the first of the page, so that a page without any word of the query gives how it begins.
    analyzer: of the corpus that the page is from; None: as suits the page.
    """
    sentences = [" ".join(s.split()) for s in english()(text) if s.strip()]
    if len(sentences) <= n:
        return " ".join(sentences)
    # Ids sort as the page is read: ties go to what stands first.
    parts = tuple(Passage(f"{i:06}", "", s) for i, s in enumerate(sentences))
    try:
        ranked = BM25(Corpus("page", parts), analyzer=analyzer, fields=("text",))
    except RetrievalError:  # a page of dots and dashes has no term
        return " ".join(sentences[:n])
    ranked.warns = False
    [hits] = ranked.search([query], n)
    return " ".join(sentences[i] for i in sorted(int(hit.passage.id) for hit in hits))


log = logging.getLogger(__name__)

KEY_VARIABLE = "RAG_REPRO_SEARCH_KEY"
"""Environment variable with the key of a service that asks for one."""
_HOW = (
    "a search service",
    "http://127.0.0.1:8765, or http://127.0.0.1:8765#pages=5 to read the best 5 sentences of each "
    "page",
    KEY_VARIABLE,
)
PLAIN_WORD = "hello"
_PAGES = re.compile(r"pages=([1-9]\d{0,2})")
_TEMPORARY = {408, 425, 429, 500, 502, 503, 504}
_ELSEWHERE = {301, 302, 303, 307, 308, 401, 403, 404, 405, 410}


class ServiceUnusable(RetrievalError):
    """The service cannot be used: no query would fare better."""


class QueryError(RetrievalError):
    """This one query cannot be answered; its neighbours can."""


class _Down(Exception):
    """A request was tried as often as it may be."""


def parsed(name: str) -> dict[str, Any]:
    """A retriever's name that is an address -> url and sentences.

    As "http://127.0.0.1:8765", or "http://127.0.0.1:8765#pages=5": each result's page is
    read, and its best five sentences are its text. Raises RetrievalError.
    """
    address, _, wish = name.partition("#")
    found = _PAGES.fullmatch(wish)
    url = check_address(address if found or not wish else "", *_HOW)
    return {"url": url, "sentences": int(found[1]) if found else None}


class WebSearch:
    """A retriever whose searches are round trips to a service at `url`.

    corpus: what the questions are of; an empty one where nothing is known of that. A service that
    tells of another one is refused; what one finds that tells of none need not be in it.
    sentences: read each result's page, and keep its so many best sentences for the query in
    place of the snippet; a page that cannot be had leaves the snippet, with a warning.
    at_once: requests on their way together. timeout: seconds for a request with its reply.
    retries: further tries of what may pass, after `backoff` seconds, then twice that, and so
    on.

    Raises RetrievalError for an address or number that cannot be.
    """

    kind: ClassVar[str] = "web"
    version: ClassVar[int] = 1
    takes_within: ClassVar[bool] = False

    def __init__(
        self,
        url: str,
        corpus: Corpus,
        *,
        sentences: int | None = None,
        at_once: int = 8,
        retries: int = 4,
        timeout: float = 30.0,
        backoff: float = 0.5,
    ):
        if sentences is not None and sentences < 1:
            raise RetrievalError(f"sentences is {sentences}; it must be at least 1, or none")
        self.url, self.corpus, self.sentences = check_address(url, *_HOW), corpus, sentences
        self._key = Key(KEY_VARIABLE if os.environ.get(KEY_VARIABLE) else None)
        self._key.check()
        self._at_once, self._retries = at_once, retries
        self._timeout, self._backoff = timeout, backoff
        self._jitter = random.Random()  # of waiting times, which change no result

    def __repr__(self) -> str:
        return f"WebSearch({self.url})"

    # -------------------------------------------------------------- identity

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the service tells of itself: {} where it does not. Raises ServiceUnusable."""
        try:
            told = self._asked("/about", {}, self._retries)
        except QueryError as error:
            log.info("%s tells nothing of itself (%s)", self.url, error)
            return {}
        except _Down as down:
            raise self._gone(str(down)) from None
        theirs = told.get("corpus") if len(self.corpus) else None
        if theirs not in (None, self.corpus.sha256):
            raise ServiceUnusable(
                f"{self.url} searches another corpus ({shortened(str(told.get('name', theirs)))}) "
                f"than {self.corpus.name}, which the questions are of: serve that one"
            )
        return told

    @property
    def card(self) -> dict[str, Any]:
        return card_of(self, {"of": self._of, "sentences": self.sentences})

    @property
    def fingerprint(self) -> str:
        """Changes with what the service says of itself; without that, with its address."""
        facts = [self.kind, self.version, self._of, self.sentences, self.corpus.sha256]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    @property
    def _of(self) -> str:
        return str(self.about.get("fingerprint", self.url))

    # ---------------------------------------------------------------- search

    def search(
        self, queries: Sequence[str], k: int, within: Within = None
    ) -> list[list[Hit] | QueryError]:
        """At most k hits for each query in the service's order, or why it was not answered.

        A service may find less than there is, or nothing: then the list is short or empty.
        Raises RetrievalError as all retrievers do, and for `within`, which no engine
        outside knows; ServiceUnusable where the service cannot be used.
        """
        check_search(queries, k, within)
        if within is not None and any(pool is not None for pool in within):
            raise RetrievalError(
                f"{self.url} cannot be limited to some passages; leave own_candidates out"
            )
        with ThreadPoolExecutor(self._at_once) as pool:
            found = list(pool.map(lambda query: self._one(query, int(k)), queries))
            if self.sentences is None:
                return found
            # All pages of all queries together, since each is a round trip.
            answered = [(hits, q) for hits, q in zip(found, queries, strict=True) if _is(hits)]
            reading = [[pool.submit(self._read, hit, q) for hit in hits] for hits, q in answered]
            read = iter([[one.result() for one in row] for row in reading])
            return [next(read) if _is(hits) else hits for hits in found]

    def _one(self, query: str, k: int) -> list[Hit] | QueryError:
        try:
            reply = self._tried("/search", {"query": query, "count": k})
            if (theirs := reply.get("fingerprint")) not in (None, self._of):
                raise ServiceUnusable(
                    f"{self.url} is not what it was when the run began (it tells {theirs!r}, not "
                    f"{self._of!r}); serve the same retriever again"
                )
            return self._hits(reply)[:k]
        except QueryError as error:
            return error

    def _hits(self, reply: Mapping[str, Any]) -> list[Hit]:
        """Every result once. Raises QueryError where one is not of the agreed form."""
        rows = reply.get("results")
        if not isinstance(rows, list):
            raise self._of_another_form(reply)
        hits: dict[str, Hit] = {}
        for row in rows:
            told = row if isinstance(row, dict) else {}
            texts = [told.get(name) for name in ("id", "title", "snippet")]
            score = told.get("score", 1 / (len(hits) + 1))
            if not all(isinstance(text, str) for text in texts) or not texts[0]:
                raise self._of_another_form(row)
            if type(score) not in (int, float) or not abs(score) < 1e300:  # integers have no end
                raise self._of_another_form(row)
            passage = Passage(*map(whole, texts))
            if UNSEEN.search(passage.id):  # a record has no place for it
                raise self._of_another_form(row)
            if self.sentences is None and passage.id not in self.corpus.by_id:  # its ids are others
                passage = self.corpus.match(passage.title, passage.text) or passage
            hits.setdefault(passage.id, Hit(passage, float(score), len(hits) + 1))
        return list(hits.values())

    @cached_property
    def _analyzer(self) -> Analyzer:
        return Analyzer(**suited(self.corpus))

    def _read(self, hit: Hit, query: str) -> Hit:
        """The hit with the best sentences of its page."""
        passage = hit.passage
        try:
            reply = self._tried("/page", {"id": passage.id})
            text = reply.get("text")
            if not isinstance(text, str):
                raise self._of_another_form(reply)
        except QueryError as error:
            log.warning("the page of %r is not read: %s", passage.id, error)
            return hit
        best = best_sentences(whole(text), query, self.sentences, self._analyzer)
        return Hit(Passage(passage.id, passage.title, best), hit.score, hit.rank)

    # -------------------------------------------------------------- requests

    def _tried(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The reply. QueryError: this request is at fault; ServiceUnusable: the service is."""
        try:
            return self._asked(path, body, self._retries)
        except _Down as down:
            why = str(down)
        try:
            self._asked("/search", {"query": PLAIN_WORD, "count": 1}, 0)
        except _Down:
            raise self._gone(why) from None
        raise QueryError(f"{self.url}{path}: gave up after {self._retries + 1} tries: {why}")

    def _gone(self, why: str) -> ServiceUnusable:
        return ServiceUnusable(
            f"{self.url} does not answer (after {self._retries + 1} tries: {why}); what was "
            "finished is kept: start it (rag-repro serve-search) and run again"
        )

    def _of_another_form(self, said: Any) -> QueryError:
        return QueryError(f"{self.url}: a reply of another form: {shortened(repr(said), 120)}")

    def _asked(self, path: str, body: Mapping[str, Any], retries: int) -> dict[str, Any]:
        """The service's reply. QueryError: it refused; _Down: it kept failing."""
        data = json.dumps(body).encode()
        why = ""
        for attempt in range(retries + 1):
            if attempt:
                log.info("%s%s: %s; trying again", self.url, path, why)
                wait = self._backoff * 2 ** (attempt - 1)
                time.sleep(wait * self._jitter.uniform(0.75, 1.25))
            try:
                status, _, text = post(self.url + path, data, self._key, self._timeout)
            except ConnectionError as error:
                why = shortened(str(error), 300)
                continue
            if status == 200:
                try:
                    reply = from_json(text.encode())
                except (PlainError, UnicodeEncodeError):
                    why = f"a reply that is no JSON: {shortened(repr(text), 120)}"
                    continue
                if isinstance(reply, dict):
                    return reply
                raise self._of_another_form(reply)
            why = f"status {status}: {shortened(repr(text), 120)}"
            if status in _ELSEWHERE and path == "/search":
                raise ServiceUnusable(f"{self.url}{path}: {why}; is this the address of a search?")
            if status not in _TEMPORARY:
                raise QueryError(f"{self.url}{path}: {why}")
        raise _Down(why)


def _is(hits: Any) -> bool:
    """Whether these are hits, and no reason why there are none."""
    return isinstance(hits, list)


class Served(WebSearch):
    """A retriever behind a service of its own in this process: every search a round trip.

    latency: seconds that the service waits before each answer. The results, and the
    fingerprint, are those of `WebSearch` before a service without it. settings: its others.
    """

    def __init__(self, retriever: Retriever, *, latency: float = 0.0, **settings: Any):
        from rag_repro.retrieval.served import SearchServer  # a web server takes time to import

        self._server = SearchServer(retriever, latency=latency).started()
        super().__init__(self._server.url, retriever.corpus, **settings)

    def close(self) -> None:
        self._server.stop()
