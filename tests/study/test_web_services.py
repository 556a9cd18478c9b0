"""Search services as conditions name them: by address, or behind one of their own."""

from __future__ import annotations

import pytest

from rag_repro.cli import main
from rag_repro.retrieval import served
from rag_repro.retrieval.interface import RetrievalError
from rag_repro.schema import Answer, Gold, Hit, Passage
from rag_repro.study import names
from rag_repro.study.conditions import Condition
from rag_repro.study.runner import line_of
from rag_repro.study.services import UnknownService, Workshop

WORLD = "world-B@1000"


@pytest.fixture(scope="module")
def workshop():
    return Workshop()


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_addresses_are_names_of_retrievers_and_misspelt_ones_are_not():
    names.check_retriever("http://127.0.0.1:8765#pages=5")
    with pytest.raises(RetrievalError, match="no address of a search service"):
        names.check_retriever("http://127.0.0.1:8765#page=5")
    with pytest.raises(UnknownService, match="did you mean 'web-bm25'"):
        names.check_retriever("web-bm52")
    assert names.is_outside("https://x")
    assert names.is_outside("web-bm25-pages")
    assert not names.is_outside("bm25")


def test_a_served_retriever_finds_what_it_finds_itself(workshop):
    data = workshop.dataset(WORLD, None)
    queries = [q.text for q in data.questions[:5]]
    plain, web, slow, pages = (
        workshop.retriever(name, data.corpus)
        for name in ("bm25", "web-bm25", "web-bm25-pages-2s", "web-bm25-pages")
    )
    assert web.search(queries, 5) == plain.search(queries, 5)
    # How long it takes is no part of what it is; how pages are read is.
    assert slow.fingerprint == pages.fingerprint != web.fingerprint
    assert workshop.retriever("web-bm25", data.corpus) is web


def test_an_address_is_asked(workshop):
    data = workshop.dataset(WORLD, None)
    server = served.SearchServer(workshop.retriever("bm25", data.corpus)).started()
    try:
        found = workshop.retriever(server.url, data.corpus)
        assert found.search(["a film"], 2) == workshop.retriever("bm25", data.corpus).search(
            ["a film"], 2
        )
        other = workshop.dataset("world-C@1000", None).corpus
        with pytest.raises(RetrievalError, match="another corpus"):
            workshop.retriever(server.url, other).search(["a film"], 2)
    finally:
        server.stop()


def line(data, question, passage, retriever):
    condition = Condition(WORLD, "single_step", retriever=retriever)
    return line_of(question, Answer(hits=(Hit(passage, 1.0, 1),)), data, condition)


def test_what_a_page_says_is_scored_and_not_the_passage_of_its_id(workshop):
    data = workshop.dataset(WORLD, None)
    question = next(q for q in data.questions if q.kind == "single_hop")
    [gold] = question.gold_ids
    passage = data.corpus.by_id[gold]
    other = Passage(gold, "", "Nothing of it.")
    assert isinstance(question.gold[0], Gold)
    whole = line(data, question, passage, "web-bm25-pages")["scores"]
    cut = line(data, question, other, "web-bm25-pages")["scores"]
    assert (whole["answer_recall"], cut["answer_recall"]) == (1, 0)
    assert whole["recall"] == cut["recall"] == 1
    # Our own retrievers hand out the corpus's.
    assert line(data, question, other, "bm25")["scores"]["answer_recall"] == 1


def test_a_page_of_another_engine_is_in_no_corpus_and_can_be_scored(workshop):
    data = workshop.dataset(WORLD, None)
    question = next(q for q in data.questions if q.kind == "single_hop")
    page = Passage("https://x/1", "A page", f"It says {question.answers[0]}.")
    made = line(data, question, page, "http://127.0.0.1:1")
    assert made["hits"] == ["https://x/1"]
    assert (made["scores"]["answer_recall"], made["scores"]["recall"]) == (1, 0)
    with pytest.raises(KeyError, match="is not among the given passages"):
        line(data, question, page, "bm25")


# ------------------------------------------------------------------ rag-repro serve-search


def test_serve_search_serves_until_it_is_interrupted(monkeypatch, caplog):
    seen = []

    def until_interrupted(server):
        seen.append((server.url, server.latency, len(server.retriever.corpus)))
        raise KeyboardInterrupt

    monkeypatch.setattr(served.SearchServer, "serve_forever", until_interrupted)
    caplog.set_level("INFO")
    assert main(["serve-search", WORLD, "--port", "0", "--latency", "0.5"]) == 0
    [(url, latency, passages)] = seen
    assert url.startswith("http://127.0.0.1:")
    assert (latency, passages) == (0.5, 1000)
    assert f"1000 passages of world-B@1000 at {url}" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["world-Y"], "no data set 'world-Y'"),
        ([WORLD, "--retriever", "bm52"], "did you mean 'bm25'"),
        ([WORLD, "--port", "0", "--latency", "-1"], "latency is -1.0"),
        ([WORLD, "--host", "192.0.2.1"], "name another host or port"),
    ],
)
def test_what_cannot_be_served_is_one_line(arguments, message, capsys):
    assert main(["serve-search", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_port_is_a_number_below_65536(capsys):
    with pytest.raises(SystemExit):
        main(["serve-search", WORLD, "--port", "65536"])
    assert "is no port" in capsys.readouterr().err
