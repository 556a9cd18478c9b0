"""`ask` and `compare` with a retriever of the user's own, or a search service at an address."""

from __future__ import annotations

import json
import re
import textwrap
from types import SimpleNamespace

import pytest

from rag_repro import comparison, quick
from rag_repro.data import own
from rag_repro.retrieval import BM25, RetrievalError, adapt
from rag_repro.retrieval.served import SearchServer
from rag_repro.schema import Gold, Question
from rag_repro.study.services import UnknownService
from tests.lm import loopback
from tests.test_quick import PASSAGES, ROOT, TOWN, Bench

QUAY = ("The quay", "The quay was laid by Una Reed.")


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="module")
def town():
    return own.corpus(ROOT / "notebooks/your_own/town")


def quay(query, k):
    return [QUAY, *((p.title, p.text) for p in PASSAGES.passages)][:k]


def bench():
    return Bench(lambda prompt: "Una Reed" if "laid by Una" in prompt else "nobody")


class Index:
    """Asked as a search engine of some library is."""

    def __init__(self, corpus, asked=None):
        self.bm25, self.asked = BM25(corpus), [] if asked is None else asked

    def search(self, query, k):
        self.asked.append(query)
        [hits] = self.bm25.search([query], k)
        return [(hit.passage.title, hit.passage.text, hit.score) for hit in hits]


# ------------------------------------------------------------------ one question


def test_a_function_is_a_retriever_and_needs_no_corpus():
    for corpus in (None, PASSAGES):
        asked = quick.ask("Who laid the quay?", corpus, retriever=quay, k=2, services=bench())
        assert asked.prediction == "Una Reed"
        first, second = (hit.passage for hit in asked.answer.hits)
        assert (first.title, first.text) == QUAY
        assert (second.id in PASSAGES.by_id) == (corpus is not None)
        assert "The_quay-" in str(asked)


def test_the_example_of_the_docstring_runs_as_written():
    indented = re.findall(r"^ {8}\S.*$|^ {12}.*$", quick.ask.__doc__, re.M)
    made = []

    def ask(*given, **more):
        made.append(quick.ask(*given, services=bench(), **more))

    page = SimpleNamespace(title="A", text="Tobias Fenn built it.")
    names = {"my_index": SimpleNamespace(lookup=lambda query: [page]), "ask": ask}
    exec(textwrap.dedent("\n".join(indented)), names)
    assert 3 <= len(indented) <= 5
    assert [hit.passage.text for hit in made[0].answer.hits] == ["Tobias Fenn built it."]


@pytest.mark.parametrize("method", ["single_step", "qdc", "erm4", "ircot"])
def test_methods_search_with_it(method, town):
    """Any number of searches, of which some are asked together; passages are the corpus's."""
    settings = {"rewriter": "smollm2-135m"} if method == "erm4" else {}
    index = Index(town)
    given = {"method": method, "retriever": index, "services": bench(), **settings}
    asked = quick.ask("Who built the lighthouse of Marrowick?", town, **given)
    assert len(index.asked) >= 1
    assert {hit.passage.id for hit in asked.answer.hits} <= set(town.by_id)


def test_what_a_retriever_of_ones_own_cannot_do_is_refused_before_it_is_asked():
    index, made = Index(PASSAGES), bench()
    question = Question("q", "Who?", (), gold=(Gold("mill"),), candidates=("mill",))
    for given in ({"own_candidates": True}, {"method": "gold_passages"}):
        with pytest.raises(UnknownService, match="searches given passages alone"):
            quick.ask(question, PASSAGES, retriever=index, services=made, **given)
    assert index.asked == []
    assert made.scripted.calls == []
    # One of ours can do it all.
    given = {"method": "gold_passages", "retriever": index.bm25, "services": made}
    asked = quick.ask(question, PASSAGES, **given)
    assert [hit.passage.id for hit in asked.answer.hits] == ["mill"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"retriever": "bm25"}, "'bm25' searches a corpus, and none is given"),
        ({"retriever": 7}, "an int cannot be a retriever"),
        ({"retriever": lambda query, k: None}, "returned None; it must return a list of"),
        (
            {"retriever": "own:quay", "corpus": PASSAGES},
            "not in this session: give its function or object again",
        ),
    ],
)
def test_what_cannot_be_asked_without_a_corpus_is_told(given, told):
    with pytest.raises(ValueError, match=told):
        quick.ask("Who?", services=bench(), **given)


def test_without_a_retriever_no_corpus_is_needed():
    asked = quick.ask("Who?", method="no_retrieval", retriever=None, services=bench())
    assert asked.prediction == "nobody"


# ------------------------------------------------------------------ services over HTTP


def test_a_service_at_an_address_is_asked_with_and_without_its_corpus():
    server = SearchServer(BM25(PASSAGES)).started()
    try:
        for corpus in (PASSAGES, None):
            asked = quick.ask("Who built the mill?", corpus, retriever=server.url, services=Bench())
            assert asked.prediction == "Jo Penn"
            assert asked.answer.hits[0].passage.id == "mill"
        with pytest.raises(UnknownService, match="searches given passages alone"):
            quick.ask("Who?", PASSAGES, retriever=server.url, own_candidates=True, services=Bench())
    finally:
        server.stop()


def test_another_services_passages_are_known_by_their_texts():
    mill = PASSAGES.passages[0]
    rows = [{"id": "17", "title": mill.title, "snippet": mill.text}]
    rows += [{"id": "18", "title": QUAY[0], "snippet": QUAY[1]}]
    with loopback.serving() as server:
        server.default = json.dumps({"results": rows})
        url = server.url.removesuffix("/v1")
        asked = quick.ask("Who?", PASSAGES, retriever=url, services=Bench())
        assert [hit.passage.id for hit in asked.answer.hits] == ["mill", "18"]
        pages = quick.ask("Who?", PASSAGES, retriever=f"{url}#pages=2", services=Bench())
        assert [hit.passage.id for hit in pages.answer.hits] == ["17", "18"]  # to be read by


def test_an_address_is_compared(tmp_path, town):
    server = SearchServer(BM25(town)).started()
    try:
        made = comparison.compare(
            ["single_step"], TOWN, tmp_path, retriever=server.url, n=3, services=Bench()
        )
    finally:
        server.stop()
    assert made.cells["single_step"].condition.identity["retriever"] == "web"
    assert len(made.lines("single_step")) == 3


# ------------------------------------------------------------------ many questions


def recorded(folder):
    return sorted(path.name.partition("-k3")[0] for path in folder.rglob("*.jsonl"))


def test_a_function_is_compared_and_recalls_what_the_corpus_holds(tmp_path, town):
    ours = comparison.compare(
        ["single_step", "qdc"], TOWN, tmp_path, n=6, reader=None, services=Bench()
    )
    index = adapt(Index(town), name="my-index")
    made = comparison.compare(
        ["single_step", "qdc"],
        TOWN,
        tmp_path,
        retriever=index,
        n=6,
        reader=None,
        services=Bench(),
        metrics=["recall"],
    )
    for method in ("single_step", "qdc"):
        for line, same in zip(made.lines(method), ours.lines(method), strict=True):
            assert line["hits"] == same["hits"]
            assert line["scores"]["recall"] == same["scores"]["recall"]
    assert made.cells["qdc"].condition.identity["retriever"] == "own:my-index"
    assert recorded(tmp_path) == [
        *("qdc-bm25", "qdc-own_my-index", "single_step-bm25", "single_step-own_my-index")
    ]


def test_what_it_found_is_recorded_once_and_anew_when_it_is_another(tmp_path, town):
    asked: list[str] = []
    bench = Bench()

    def compared(retriever):
        return comparison.compare(
            ["single_step"], TOWN, tmp_path, retriever=retriever, n=3, reader=None, services=bench
        )

    def search(query, k, asked=None):
        return [("The quay", f"The quay of {query}")]

    name = f"own:{adapt(search).name}"
    assert compared(search).cells["single_step"].condition.identity["retriever"] == name
    for line in compared(search).lines("single_step"):
        assert line["hits"][0].startswith("The_quay-")
        assert line["scores"]["recall"] == 0
    compared(adapt(Index(town, asked), name="x"))
    compared(adapt(Index(town, asked), name="x"))
    assert len(asked) == 3
    compared(adapt(Index(town, asked), name="y"))
    assert len(asked) == 6
    compared(adapt(search, name="y"))  # another function under the same name
    assert len(list(tmp_path.rglob("*.stale"))) == 1


def test_a_question_whose_search_fails_fails_alone(tmp_path, town):
    def search(query, k):
        if "tower" in query:
            raise TimeoutError("the index is away")
        return Index(town).search(query, k)

    made = comparison.compare(
        ["single_step"],
        TOWN,
        tmp_path,
        retriever=adapt(search, name="at-times"),
        n=3,
        reader=None,
        services=Bench(),
    )
    errors = [line.get("error") for line in made.lines("single_step")]
    assert [error is None for error in errors] == [True, False, True]
    assert "raised TimeoutError: the index is away" in errors[1]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"retriever": lambda query, k: []}, "name it, as retriever=adapt"),
        ({"retriever": Index(PASSAGES)}, "name it, as retriever=adapt"),
        ({"retriever": BM25(PASSAGES)}, "searches the corpus 'small', and the questions are of"),
        ({"retriever": quay, "methods": ["gold_passages"]}, "searches given passages alone"),
        ({"retriever": quay, "own_candidates": True}, "searches given passages alone"),
    ],
)
def test_retrievers_that_cannot_be_compared_are_refused_before_a_question(tmp_path, given, told):
    given = {"methods": ["single_step"], "dataset": TOWN, "results": tmp_path, **given}
    made = Bench()
    if "name it" in told:
        with pytest.raises(RetrievalError, match=told):
            comparison.compare(**given, services=made)
    else:
        [why] = comparison.compare(**given, services=made).failures.values()
        assert told in why
    assert list(tmp_path.iterdir()) == []
    assert made.scripted.calls == []
