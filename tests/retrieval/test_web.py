"""Searching over HTTP: the same hits as without, and every way in which a service can fail."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from rag_repro import engine
from rag_repro.methods.base import Settings
from rag_repro.methods.baselines.controls import single_step
from rag_repro.retrieval import BM25, RetrievalError
from rag_repro.retrieval.served import LARGEST, SearchServer
from rag_repro.retrieval.web import (
    QueryError,
    Served,
    ServiceUnusable,
    WebSearch,
    best_sentences,
    parsed,
)
from rag_repro.schema import Passage, Question
from tests.lm import loopback
from tests.retrieval.conftest import corpus_of, ids_of

CORPUS = corpus_of("red apples", "green apples and pears", "blue plums", "red plums, red pears")
QUERIES = ["red apples", "plums", "nothing of it"]
QUICK = {"backoff": 0.001, "timeout": 5.0, "retries": 2}


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def ours():
    server = SearchServer(BM25(CORPUS)).started()
    yield server
    server.stop()


@pytest.fixture
def odd():
    """A service that says what a test tells it to."""
    with loopback.serving() as made:
        made.default = reply()
        yield made


def reply(*ids, **more):
    rows = [{"id": i, "title": f"T {i}", "snippet": f"S {i}"} for i in ids or ("x", "y")]
    return json.dumps({"results": rows, **more})


def web(server, **settings):
    url = server.url.removesuffix("/v1")
    return WebSearch(url, settings.pop("corpus", CORPUS), **{**QUICK, **settings})


def told(hits):
    return [(h.passage, h.score, h.rank) for h in hits]


# ------------------------------------------------------------------ sound service


def test_a_round_trip_changes_nothing(ours):
    direct, found = BM25(CORPUS), web(ours)
    for k in (1, 3, 9):
        assert list(map(told, found.search(QUERIES, k))) == list(
            map(told, direct.search(QUERIES, k))
        )
    assert found.search([], 3) == []
    assert found.card["corpus"]["sha256"] == CORPUS.sha256


def test_latency_changes_time_and_nothing_else(ours, monkeypatch):
    waited, plain = [], asyncio.sleep

    def sleep(seconds):
        if seconds != 0.1:  # how often the server looks whether it shall end
            waited.append(seconds)
        return plain(min(seconds, 0.1))

    monkeypatch.setattr(asyncio, "sleep", sleep)
    slow = Served(BM25(CORPUS), latency=1.5, **QUICK)
    try:
        assert slow.fingerprint == web(ours).fingerprint
        assert 1.5 not in waited  # what it tells of itself is not delayed
        assert list(map(told, slow.search(QUERIES, 3))) == list(
            map(told, web(ours).search(QUERIES, 3))
        )
        assert waited.count(1.5) == len(QUERIES)
    finally:
        slow.close()


def test_requests_of_a_batch_are_on_their_way_together():
    slow = Served(BM25(CORPUS), latency=0.25, **QUICK)
    try:
        start = time.monotonic()
        slow.search([f"red {i}" for i in range(8)], 2)
        # One after another they would have waited for two seconds.
        assert time.monotonic() - start < 1.9
    finally:
        slow.close()


def test_the_fingerprint_is_that_of_what_is_searched_and_how_it_is_read(ours):
    other = SearchServer(BM25(CORPUS, k1=0.9)).started()
    try:
        made = {web(ours).fingerprint, web(other).fingerprint, web(ours, sentences=2).fingerprint}
        assert len(made) == 3
    finally:
        other.stop()


def test_what_no_retriever_can_be_asked_is_refused_before_anything_is_sent(odd):
    found = web(odd)
    for queries, k in (("red", 1), (["red"], 0), ([" "], 1)):
        with pytest.raises(RetrievalError):
            found.search(queries, k)
    with pytest.raises(RetrievalError, match="cannot be limited to some passages"):
        found.search(["red"], 1, [("p0",)])
    assert odd.seen == []
    for settings in ({"sentences": 0}, {"latency": -1.0}, {"latency": float("nan")}):
        with pytest.raises(RetrievalError):
            Served(BM25(CORPUS), **settings)
    with pytest.raises(RetrievalError, match="no address of a search service"):
        WebSearch("ftp://x", CORPUS)


def test_names_that_are_addresses():
    assert parsed("http://h:1/") == {"url": "http://h:1", "sentences": None}
    assert parsed("https://h/at#pages=12") == {"url": "https://h/at", "sentences": 12}
    for name in ("http://", "http://h#page=5", "http://h#pages=0", "http://h?q=1", "https:///x"):
        with pytest.raises(RetrievalError, match="no address of a search service"):
            parsed(name)


# ------------------------------------------------------------------- troubled one


def test_nothing_found_is_an_answer(odd):
    odd.default = json.dumps({"results": []})
    assert web(odd).search(["a", "b"], 3) == [[], []]


def test_more_than_asked_and_the_same_twice_are_left_out(odd):
    odd.default = reply("a", "b", "a", "c", "d")
    [hits] = web(odd).search(["q"], 3)
    assert [(h.passage.id, h.rank) for h in hits] == [("a", 1), ("b", 2), ("c", 3)]
    assert hits[0].passage == Passage("a", "T a", "S a")
    assert hits[0].score > hits[1].score > hits[2].score


@pytest.mark.parametrize(
    "trouble",
    [
        *("stall", "drip", "cut", "cut_without_a_length", "close", "gibberish", "cut_in_an_error"),
        *("no JSON", '{"results": [', "[[[[", "\x00"),
        *((500, {}, "oh"), (503, {}, ""), (429, {"Retry-After": "1"}, "slow down")),
    ],
)
def test_what_may_pass_is_tried_again(odd, trouble):
    odd.plan = [reply(), trouble, trouble]  # the first is what it tells of itself
    made = web(odd, timeout=0.4)
    assert made.about
    [hits] = made.search(["q"], 2)
    assert ids_of(hits) == ["x", "y"]
    assert len(odd.seen) == 4


def test_a_query_that_keeps_failing_fails_alone(odd):

    odd.plan = [reply(), *["no JSON"] * 3]  # all tries of the one query, then a plain word
    made = web(odd, at_once=1)
    assert made.about
    first, second = made.search(["bad", "good"], 2)
    assert isinstance(first, QueryError)
    assert "gave up after 3 tries: a reply that is no JSON" in str(first)
    assert ids_of(second) == ["x", "y"]
    words = [body.get("query") for _, body, _ in odd.seen[1:]]
    assert words == ["bad", "bad", "bad", "hello", "good"]


@pytest.mark.parametrize(
    "said",
    [
        *("[]", "3", "null", "{}", '{"results": {}}', '{"results": [1]}'),
        '{"results": [{"id": "", "title": "", "snippet": ""}]}',
        '{"results": [{"id": "a", "title": "t"}]}',
        '{"results": [{"id": 7, "title": "t", "snippet": "s"}]}',
        '{"results": [{"id": "a", "title": "t", "snippet": "s", "score": "1"}]}',
        '{"results": [{"id": "a", "title": "t", "snippet": "s", "score": 1e999}]}',
        f'{{"results": [{{"id": "a", "title": "t", "snippet": "s", "score": 1{"0" * 400}}}]}}',
        '{"results": [{"id": "a\\u001b", "title": "t", "snippet": "s"}]}',
    ],
)
def test_a_reply_of_another_form_is_no_result(odd, said):
    odd.plan = [reply(), said]
    made = web(odd)
    assert made.about
    first, second = made.search(["bad", "good"][:1], 2), made.search(["good"], 2)
    assert isinstance(first[0], QueryError)
    assert "another form" in str(first[0])
    assert ids_of(second[0]) == ["x", "y"]
    assert len(odd.seen) == 3  # not tried again: it would say the same


def test_half_characters_become_whole(odd):
    odd.default = '{"results": [{"id": "a\\ud800", "title": "\\udc00", "snippet": "ok"}]}'
    [[hit]] = web(odd).search(["q"], 1)
    assert hit.passage == Passage("a\ufffd", "\ufffd", "ok")


def test_a_refused_query_fails_alone_and_a_wrong_address_ends_the_run(odd):
    odd.plan = [reply(), (400, {}, "too long")]
    made = web(odd)
    assert made.about
    [refused] = made.search(["q"], 2)
    assert isinstance(refused, QueryError)
    assert "too long" in str(refused)
    for status in (301, 403, 404):
        odd.plan = [(status, {"Location": "http://elsewhere"}, "no")]
        with pytest.raises(ServiceUnusable, match=f"status {status}.*address of a search"):
            made.search(["q"], 2)


def test_a_service_that_is_gone_ends_the_run_and_says_what_to_do():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    made = WebSearch(f"http://127.0.0.1:{port}", CORPUS, **QUICK)
    with pytest.raises(ServiceUnusable, match=r"does not answer \(after 3 tries.*run again"):
        made.search(["q"], 1)
    with pytest.raises(ServiceUnusable, match="does not answer"):
        made.fingerprint  # noqa: B018


def test_a_service_of_another_corpus_or_another_retriever_is_refused(ours, odd):
    wrong = web(ours, corpus=corpus_of("other", name="other"))
    with pytest.raises(ServiceUnusable, match=r"another corpus .*small.* than other"):
        wrong.search(["q"], 1)
    odd.plan = [reply(fingerprint="old"), reply(fingerprint="old"), reply(fingerprint="new")]
    made = web(odd)
    assert made.about["fingerprint"] == "old"
    assert made.search(["q"], 1)
    with pytest.raises(ServiceUnusable, match="not what it was when the run began"):
        made.search(["q"], 1)


def test_a_service_that_tells_nothing_of_itself_can_be_searched(odd):
    odd.plan = [(404, {}, "no such address")]
    made = web(odd)
    assert made.about == {}
    assert ids_of(made.search(["q"], 1)[0]) == ["x"]


# -------------------------------------------------------------------- in the engine


def questions(*texts):
    settings = Settings(k=2)
    return [engine.Task(Question(t, t, ("a",)), single_step, settings) for t in texts]


def test_a_failing_query_is_its_questions_failure(odd):
    odd.plan = [reply(), (400, {}, "too long")]
    made = web(odd, at_once=1)
    assert made.about
    done = {t.question.id: a for t, a in engine.run(questions("bad", "good"), {"retriever": made})}
    assert "QueryError" in done["bad"].error
    assert done["good"].error is None
    assert [h.passage.id for h in done["good"].hits] == ["x", "y"]


def test_a_service_killed_in_mid_run_stops_it_and_a_new_one_goes_on():
    first = SearchServer(BM25(CORPUS)).started()
    port = int(first.url.rpartition(":")[2])
    made = web(first)
    run = engine.run(questions("red", "plums", "pears"), {"retriever": made}, batch_size=1)
    task, answer = next(run)
    assert (task.question.id, answer.error) == ("red", None)
    first.stop()
    with pytest.raises(ServiceUnusable, match="what was finished is kept"):
        list(run)
    again = SearchServer(BM25(CORPUS), port=port).started()
    try:
        rest = engine.run(questions("plums", "pears"), {"retriever": made}, batch_size=1)
        assert [a.error for _, a in rest] == [None, None]
    finally:
        again.stop()


# ------------------------------------------------------------------------- pages


def test_a_page_is_all_passages_of_its_title_and_its_best_sentences_stay():
    parts = ("It opened in May. Trains stop there.", "Its roof is green. Nobody lives there.")
    passages = (
        Passage("s1", "Station", parts[0]),
        Passage("o", "Other", "The roof of another house."),
        Passage("s2", "Station", parts[1]),
    )
    corpus = type(CORPUS)("pages", passages)
    made = Served(BM25(corpus), sentences=2, **QUICK)
    try:
        [hits] = made.search(["station trains roof"], 3)
        by_id = {h.passage.id: h.passage for h in hits}
        kept = "Trains stop there. Its roof is green."
        assert by_id["s1"].text == by_id["s2"].text == kept
        assert by_id["o"].text == passages[1].text
        assert [h.rank for h in hits] == [1, 2, 3]
    finally:
        made.close()


def test_best_sentences_stand_in_the_order_of_the_page():
    page = "One cat. Two dogs. Three cats and dogs. Four birds."
    assert best_sentences(page, "dogs", 2) == "Two dogs. Three cats and dogs."
    assert best_sentences(page, "fish", 2) == "One cat. Two dogs."
    assert best_sentences(page, "dogs", 9) == page
    assert best_sentences("", "dogs", 2) == ""
    assert best_sentences("... !!! ... !!! ???", "dogs", 1)


@pytest.mark.parametrize("page", [(404, {}, "no"), '{"text": 7}', "[]"])
def test_a_page_that_cannot_be_had_leaves_the_snippet(odd, page, caplog):
    odd.plan = [reply(), reply("a", "b"), page, json.dumps({"text": "Whole page."})]
    made = web(odd, sentences=3, at_once=1)
    assert made.about
    [hits] = made.search(["q"], 2)
    assert [h.passage.text for h in hits] == ["S a", "Whole page."]
    assert "the page of 'a' is not read" in caplog.text


def test_pages_that_end_with_the_service_end_the_run(odd):
    odd.plan = [reply(), reply("a")]
    odd.default = "close"
    made = web(odd, sentences=3)
    assert made.about
    with pytest.raises(ServiceUnusable, match="does not answer"):
        made.search(["q"], 1)


# ------------------------------------------------------------------- the server's side


def post(server, path, data, **headers):
    request = urllib.request.Request(server.url + path, data, headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.parametrize(
    ("path", "data", "status", "why"),
    [
        ("/search", b"no JSON", 400, "the request is"),
        ("/search", b"[]", 400, "no JSON object"),
        ("/search", b"\xff", 400, "the request is"),
        ("/search", b'{"query": " ", "count": 1}', 400, "query must be some text"),
        ("/search", b'{"query": "a"}', 400, "count must be"),
        ("/search", b'{"query": "a", "count": true}', 400, "count must be"),
        ("/search", b'{"query": "a", "count": 1001}', 400, "count must be"),
        ("/page", b'{"id": "p99"}', 404, "no such page"),
        ("/page", b'{"id": ["p1"]}', 404, "no such page"),
        ("/other", b"{}", 404, "there are /about, /search, /page"),
    ],
)
def test_what_a_client_says_wrong_is_told(ours, path, data, status, why):
    got, said = post(ours, path, data)
    assert got == status
    assert why in said["error"]
    assert post(ours, "/search", b'{"query": "red", "count": 1}')[0] == 200


def test_requests_without_end_and_by_get_are_refused(ours):
    host, port = ours.url.removeprefix("http://").split(":")
    for head, status in (
        (f"POST /search HTTP/1.1\r\nContent-Length: {LARGEST + 1}\r\n\r\n", b"413"),
        ("POST /search HTTP/1.1\r\n\r\n", b"411"),
        ("POST /search HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        ("POST /search HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"400"),
        ("GET /search HTTP/1.1\r\n\r\n", b"405"),
        ("POST /search HTTP/1.1\r\nX: " + "x" * 100_000, b"400"),
    ):
        with socket.create_connection((host, port), timeout=5) as client:
            client.sendall(head.replace("\r\n", f"\r\nHost: {host}\r\n", 1).encode())
            assert client.recv(1000).split(b" ")[1] == status


def test_a_retriever_that_raises_is_told_and_the_service_goes_on():
    class Broken(BM25):
        def search(self, queries, k, within=None):
            if queries == ["boom"]:
                raise RuntimeError("no disk")
            return super().search(queries, k, within)

    server = SearchServer(Broken(CORPUS)).started()
    try:
        status, said = post(server, "/search", b'{"query": "boom", "count": 1}')
        assert (status, said) == (500, {"error": "RuntimeError: no disk"})
        [failed], [found] = (web(server).search([q], 1) for q in ("boom", "red"))
        assert isinstance(failed, QueryError)
        assert "no disk" in str(failed)
        assert len(found) == 1
    finally:
        server.stop()


def test_the_loopback_alone_is_served_and_a_taken_port_is_told(ours):
    assert ours.url.startswith("http://127.0.0.1:")
    port = int(ours.url.rpartition(":")[2])
    with pytest.raises(RetrievalError, match=f"port {port} .*name another"):
        SearchServer(BM25(CORPUS), port=port)
    with pytest.raises(RetrievalError, match="name another"):
        SearchServer(BM25(CORPUS), port=70_000)


def test_many_clients_at_once_get_what_is_theirs(ours):
    made = web(ours)
    direct = [told(hits) for hits in BM25(CORPUS).search(QUERIES, 2)]
    results = []

    def ask():
        results.append([told(hits) for hits in made.search(QUERIES, 2)])

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [direct] * 6


@pytest.mark.parametrize("clients", [50, 200])
def test_a_crowd_is_answered_whole_and_at_once(ours, clients):
    """A queue of five connections had some of them reset, and others wait for a second."""
    body = b'{"query": "red", "count": 1}'
    ready = threading.Barrier(clients)

    def ask(i):
        ready.wait(30)
        return post(ours, "/search", body)[0]

    with ThreadPoolExecutor(clients) as pool:
        assert set(pool.map(ask, range(clients))) == {200}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),
        ("localhost", 200),
        *((host, 400) for host in ("evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil", "")),
    ],
)
def test_a_web_page_reaches_no_loopback_by_a_name_of_its_own(ours, host, status):
    where = ours.url.removeprefix("http://").split(":")
    body = '{"query": "red", "count": 1}'
    head = f"POST /search HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(where, timeout=5) as client:
        client.sendall((head + body).encode())
        assert client.recv(1000).split(b" ")[1] == str(status).encode()


def test_a_process_ends_though_its_service_does_not():
    code = (
        "from tests.retrieval.test_web import BM25, CORPUS, QUICK, Served;"
        "print(len(Served(BM25(CORPUS), **QUICK).search(['red'], 1)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("1\n", "")


def test_a_key_from_the_environment_is_sent_and_told_to_nobody(odd, monkeypatch):
    key = "sk-search-0123456789"
    monkeypatch.setenv("RAG_REPRO_SEARCH_KEY", key)
    made = web(odd)
    odd.plan = [reply(), (400, {}, f"wrong key {key}")]
    assert made.about
    [refused] = made.search(["q"], 1)
    assert odd.seen[-1][2]["Authorization"] == f"Bearer {key}"
    assert "[key]" in str(refused)
    assert key not in f"{refused} {made!r} {vars(made)} {made.card}"


def test_a_page_is_read_by_the_analyzer_of_its_corpus():
    page = "One cat. 北港灯塔 stands."
    assert best_sentences(page, "灯塔", 1) == "北港灯塔 stands."
    filler = [Passage(f"f{i}", "Filler", "Some words of English. " * 20) for i in range(5)]
    corpus = type(CORPUS)("pages", (Passage("p", "Cat", page), *filler))
    made = Served(BM25(corpus), sentences=1, **QUICK)
    try:
        [[best]] = made.search(["灯塔 cat stands"], 1)
        assert best.passage.text == "One cat."  # "灯塔" is no term here: a tie, and the first stays
    finally:
        made.close()
