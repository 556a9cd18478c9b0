"""Retrievers of a user's own: what is taken, what comes of its replies, and what is refused."""

from __future__ import annotations

import functools
import logging
from types import SimpleNamespace

import bm25s
import faiss
import numpy as np
import pytest

from rag_repro import engine
from rag_repro.methods.base import Settings
from rag_repro.methods.baselines.controls import single_step
from rag_repro.retrieval import BM25, Custom, RetrievalError, adapt
from rag_repro.retrieval.dense import LatentSemantics
from rag_repro.schema import Hit, Passage, Question
from rag_repro.schema.dataset import Corpus

CORPUS = Corpus(
    "town",
    (
        Passage("mill", "The mill", "The mill was built by Jo Penn."),
        Passage("weir", "The weir", "The weir was drawn by Ash Kole, as all know."),
        Passage("inn", "The inn", "The inn has nine rooms."),
    ),
)
TEXTS = [(p.title, p.text) for p in CORPUS.passages]
FOREIGN = ("The quay", "The quay is of oak.")


def bound(given, corpus=CORPUS, **more):
    return adapt(given, **more).over(corpus, lambda name: LatentSemantics(corpus))


def ids(given, query="who built the mill", k=3, **more):
    [hits] = bound(given, **more).search([query], k)
    if isinstance(hits, RetrievalError):
        raise hits
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [hit.passage.id for hit in hits]


def mill_first(query, k):
    return TEXTS[:k]


class Engine:
    def __init__(self, texts=TEXTS):
        self.texts = texts

    def search(self, query, top_k=10):
        return self.texts[:top_k]


class Chain:
    """As LangChain's BaseRetriever: k may come as a word, which many ignore."""

    def _get_relevant_documents(self, query):
        raise AssertionError("not asked")

    def invoke(self, text, config=None, **words):
        pages = [SimpleNamespace(page_content=t, metadata={"title": n}, id=None) for n, t in TEXTS]
        return pages[: words.get("k", 2)]


class Runnable:
    """As LangChain's chains: what a word reaches is not known."""

    def invoke(self, text, config=None, **words):
        assert not words
        return Chain().invoke(text, k=3)


class Vectors:
    """As LangChain's vector stores, whose `search` wants another argument."""

    def search(self, query, search_type):
        raise AssertionError("not asked")

    def as_retriever(self):
        return Chain()


class WithField(Chain):
    """As LangChain's BM25Retriever: k is a field."""

    model_fields = ("k",)
    k = 1

    def model_copy(self, update):
        made = WithField()
        made.k = update["k"]
        return made

    def invoke(self, text, config=None, **words):
        return super().invoke(text, k=self.k)


def of_faiss(corpus=CORPUS):
    texts = [p.text for p in corpus.passages]
    vectors = LatentSemantics(corpus).encode(texts)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return index


def of_bm25s(texts=TEXTS, **more):
    index = bm25s.BM25(**more)
    index.index(bm25s.tokenize([t for _, t in texts], show_progress=False), show_progress=False)
    return index


# ------------------------------------------------------------------ what is taken


@pytest.mark.parametrize(
    "given",
    [
        mill_first,
        lambda query, k: iter(TEXTS),
        functools.partial(lambda texts, query, k: texts, TEXTS),
        Engine(),
        Engine().search,
        Chain(),
        Runnable(),
        Vectors(),
        WithField(),
        adapt(mill_first),
    ],
)
def test_functions_and_objects_are_asked_in_their_own_way(given):
    assert ids(given) == ["mill", "weir", "inn"]
    assert ids(given, k=1) == ["mill"]


def lsa(texts):
    return LatentSemantics(CORPUS).encode(texts)


@pytest.mark.parametrize(
    "given",
    [
        BM25(CORPUS),
        (of_faiss(), TEXTS, lsa),
        (of_faiss(), None, "lsa"),
        (of_faiss(), CORPUS, SimpleNamespace(encode=lsa)),
        (of_bm25s(), TEXTS),
        (of_bm25s(), [text for _, text in TEXTS]),
        (of_bm25s(corpus=[text for _, text in TEXTS]),),
        of_bm25s(),
    ],
)
def test_indexes_find_what_they_hold(given):
    assert ids(given)[0] == "mill"
    assert ids(given, "nine rooms of the inn", 1) == ["inn"]
    found = bound(given)
    assert found.search(["the mill", "the inn"], 2) == [
        *found.search(["the mill"], 2),
        *found.search(["the inn"], 2),
    ]


def test_distances_of_faiss_are_scores_that_fall():
    index = faiss.IndexFlatL2(2)
    index.add(np.array([[0, 0], [3, 0], [1, 0]], dtype=np.float32))
    given = (index, TEXTS, lambda texts: np.zeros((len(texts), 2)))
    [hits] = bound(given).search(["x"], 3)
    assert [(hit.passage.id, hit.score) for hit in hits] == [("mill", 0), ("inn", -1), ("weir", -9)]


def test_a_stemming_tokenizer_of_bm25s_is_used():
    import Stemmer

    tokenizer = bm25s.tokenization.Tokenizer(stemmer=Stemmer.Stemmer("english"))
    index = bm25s.BM25()
    index.index(
        tokenizer.tokenize([t for _, t in TEXTS], return_as="tuple", show_progress=False),
        show_progress=False,
    )
    assert ids((index, TEXTS, tokenizer), "a room", 1) == ["inn"]


# ------------------------------------------------------------------ passages and their ids


@pytest.mark.parametrize(
    ("item", "known"),
    [
        (TEXTS[0], "mill"),
        (["the MILL", "The  mill\nwas built by Jo Penn."], "mill"),
        ("The mill was built by Jo Penn.", "mill"),
        ({"text": TEXTS[0][1]}, "mill"),
        (Passage("7", *TEXTS[0]), "mill"),
        (Hit(CORPUS.passages[0], 2.0, 1), "mill"),
        (("The weir", "The weir was drawn by Ash Kole"), "weir"),  # cut
        (("The weir", TEXTS[1][1] + " It leaks."), "weir"),  # goes on
        (("The weir", "The weir: " + TEXTS[1][1]), "weir"),  # after its title
        ({"id": "weir", "title": "The weir", "text": "A dam."}, "weir"),
        (("Another title", TEXTS[0][1]), None),
        (("The weir", "A dam."), None),
        ({"id": "weir", "title": "Dams", "text": "A dam."}, None),
        (FOREIGN, None),
        (("", "A text without a title."), None),
    ],
)
def test_a_passage_has_the_id_of_the_corpus_where_it_is_in_it(item, known):
    [[hit]] = bound(lambda query, k: [item]).search(["x"], 1)
    if known is None:
        assert hit.passage.id not in CORPUS.by_id
        assert [hit.passage.id] == ids(lambda query, k: [item], "another query")
    else:
        assert hit.passage.id == known
    assert hit.passage.text.split() == str(_text(item)).split()


def _text(item):
    if isinstance(item, Hit):
        return item.passage.text
    if isinstance(item, dict):
        return item["text"]
    return getattr(item, "text", None) or (item if isinstance(item, str) else item[1])


def test_ids_differ_with_the_text_and_can_be_recorded():
    made = ids(lambda query, k: [("A\ntitle \ud800", "one"), ("A\ntitle \ud800", "two"), "three"])
    assert len(set(made)) == 3
    assert all(name.isprintable() and " " not in name for name in made)
    assert made[0].startswith("A_title")


def test_scores_are_kept_or_made_of_ranks():
    given = lambda query, k: [(*TEXTS[0], np.float32(0.5)), TEXTS[1]]  # noqa: E731
    [hits] = bound(given).search(["x"], 5)
    assert [hit.score for hit in hits] == [0.5, 0.5]
    page = SimpleNamespace(page_content=TEXTS[2][1], metadata=None)
    [[hit]] = bound(lambda query, k: [(page, 0.25)]).search(["x"], 5)
    assert (hit.passage.id, hit.score) == ("inn", 0.25)


def test_many_queries_are_asked_each_once_and_one_after_another():
    asked = []

    def search(query, k):
        asked.append((query, k))
        return [TEXTS[len(query) % 3]]

    found = bound(search).search(["a", "bb", "a"], 2)
    assert [[hit.passage.id for hit in hits] for hits in found] == [["weir"], ["inn"], ["weir"]]
    assert asked == [("a", 2), ("bb", 2)]


def test_too_many_are_cut_equal_ones_come_once_and_fewer_are_fewer():
    found = bound(lambda query, k: [TEXTS[0], TEXTS[0], TEXTS[1], FOREIGN, TEXTS[2]])
    assert [hit.passage.id for hit in found.search(["x"], 2)[0]] == ["mill", "weir"]
    assert len(found.search(["x"], 9)[0]) == 4
    assert bound(lambda query, k: []).search(["x"], 3) == [[]]


def test_passages_that_are_all_foreign_are_said_once(caplog):
    strange = bound(lambda query, k: [(f"{query} {i}", "Nowhere.") for i in range(k)])
    strange.search([f"query {i}" for i in range(30)], 3)
    [said] = [r.getMessage() for r in caplog.records]
    assert "none of which is in the corpus town by its text" in said
    caplog.clear()
    mixed = bound(lambda query, k: [TEXTS[0], *((f"{query} {i}", "x") for i in range(k - 1))])
    mixed.search([f"query {i}" for i in range(30)], 3)
    assert not caplog.records


# ------------------------------------------------------------------ bad replies


async def later(query, k):
    return TEXTS


def breaks_off(query, k):
    yield TEXTS[0]
    raise KeyError("page")


@pytest.mark.parametrize(
    ("search", "told"),
    [
        (lambda query, k: None, "returned None; it must return a list of"),
        (lambda query, k: "The mill", "returned a str;"),
        (lambda query, k: {"The mill": "It stands."}, "returned a dict;"),
        (lambda query, k: np.array(TEXTS), "returned a ndarray;"),
        (lambda query, k: later(query, k), "returned a coroutine;"),
        (lambda query, k: [3], "returned 3 in place of a passage;"),
        (lambda query, k: [("The mill",)], "returned .'The mill',. in place of a passage;"),
        (lambda query, k: [("a", "b", 1, 2)], "in place of a passage;"),
        (lambda query, k: [("The mill", None)], "'The mill', None.*has no text"),
        (lambda query, k: [("", " ")], "has no text"),
        (lambda query, k: [("a", "b", "c")], "the score 'c', which is no finite number"),
        (lambda query, k: [("a", "b", float("nan"))], "the score nan"),
        (lambda query, k: [("a", "b", True)], "the score True"),
        (lambda query, k: (lambda query: TEXTS)(query, k), "raised TypeError: .*2 were given"),
        (lambda query, k: 1 / 0, "raised ZeroDivisionError: division by zero$"),
        (breaks_off, "raised KeyError: 'page'$"),
    ],
)
def test_a_bad_reply_is_one_sentence_and_fails_its_query_alone(search, told):
    found = bound(lambda query, k: search(query, k) if query == "bad" else TEXTS)
    good, bad = found.search(["good", "bad"], 3)
    assert len(good) == 3
    with pytest.raises(RetrievalError, match=told) as caught:
        raise bad
    assert str(caught.value).startswith("retriever lambda, asked 'bad', ")
    assert "\n" not in str(caught.value)


def test_a_coroutine_that_nobody_awaits_is_closed(recwarn):
    made = []
    bound(lambda query, k: made.append(later(query, k)) or made[0]).search(["x"], 1)
    assert made.pop().cr_frame is None
    assert not recwarn.list


def test_a_refused_search_is_logged_with_the_users_stack_and_without_ours(caplog):
    for search in (lambda query, k: None, lambda query, k: 1 / 0):
        task = engine.Task(Question("q", "?", ()), single_step, Settings())
        [(_, answer)] = engine.run([task], {"retriever": bound(search)})
        assert answer.error.startswith("RetrievalError: retriever lambda, asked '?', ")
    quiet, loud = (logging.Formatter().format(record) for record in caplog.records)
    assert "Traceback" not in quiet
    assert "1 / 0" in loud
    assert "single_step" not in loud


# ------------------------------------------------------------------ what is refused at once


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (7, "an int cannot be a retriever: give a name as 'bm25'"),
        ({"a": "b"}, "a dict cannot be a retriever"),
        (TEXTS, "a list cannot be a retriever"),
        (Engine, "Engine is a class; give an object of it"),
        ((mill_first, TEXTS), "takes neither texts nor an encoder"),
        ((of_faiss(), TEXTS), "needs what its queries are encoded with"),
        ((of_faiss(), TEXTS[:2], lsa), "holds 3 entries, and there are 2 texts"),
        ((of_faiss(), "texts", lsa), "texts cannot be a str"),
        ((of_faiss(), 7, lsa), "texts cannot be an int"),
        ((bm25s.BM25(), TEXTS), "the bm25s index is empty"),
        ((of_bm25s(), [("", "other"), ("", "words"), ("", "here")]), "knows 0% of the words"),
        ((of_bm25s(), TEXTS, lambda texts: [[t] for t in texts]), "a function is no tokenizer"),
    ],
)
def test_what_cannot_be_a_retriever_is_refused_before_a_search(given, told):
    with pytest.raises(RetrievalError, match=told):
        adapt(given)


def test_an_index_and_its_corpus_belong_together():
    other = Corpus("other", CORPUS.passages[:2])
    with pytest.raises(RetrievalError, match="holds 3 entries, and there are 2 texts"):
        bound((of_faiss(), None, lsa), other)
    with pytest.raises(RetrievalError, match="holds no texts"):
        bound((of_faiss(), None, lsa), Corpus("none", ()))
    with pytest.raises(RetrievalError, match="searches the corpus 'town', and the questions are"):
        bound(BM25(CORPUS), other)
    wide = bound((of_faiss(), TEXTS, lambda texts: np.zeros((len(texts), 50))))
    with pytest.raises(RetrievalError, match="must be the encoder that the index was made with"):
        wide.search(["x"], 1)


def test_it_cannot_be_limited_to_some_passages():
    with pytest.raises(RetrievalError, match="cannot be limited to some passages"):
        bound(mill_first).search(["x"], 1, [["mill"]])
    assert bound(mill_first).search(["x"], 1, [None])


# ------------------------------------------------------------------ names


def made_with(value, extra=None):
    def search(query, k):
        return TEXTS[value if isinstance(value, int) else 0 :]

    return search


def test_a_function_is_called_by_its_name_and_what_is_in_it():
    assert adapt(mill_first).name == adapt(mill_first).name
    assert adapt(mill_first).name.startswith("mill_first-")
    assert adapt(made_with(1)).name != adapt(made_with(2)).name
    assert adapt(made_with(1)).name.startswith("search-")
    assert adapt(BM25(CORPUS)).name == f"bm25-{BM25(CORPUS).fingerprint}"


def test_an_index_is_called_by_all_that_it_holds():
    other = [*TEXTS[:2], ("The inn", "The inn has nine rooms, and mice.")]
    made = [
        adapt((of_faiss(), TEXTS, "lsa")),
        adapt((of_faiss(), other, "lsa")),
        adapt((of_faiss(), TEXTS, lsa)),
        adapt((of_bm25s(), TEXTS)),
        adapt((of_bm25s(other), TEXTS)),
        adapt((of_bm25s(k1=0.9), TEXTS)),
    ]
    assert len({own.name for own in made}) == len(made)
    assert adapt((of_faiss(), TEXTS, "lsa")).name == made[0].name
    weights = [SimpleNamespace(encode=lsa, fingerprint=digits) for digits in "ab"]
    over = [adapt((of_faiss(), None, "lsa")).over(CORPUS, lambda name, w=w: w) for w in weights]
    assert over[0].name == over[1].name == adapt((of_faiss(), None, "lsa")).name
    assert over[0].fingerprint != over[1].fingerprint


@pytest.mark.parametrize(
    "given",
    [
        lambda query, k: TEXTS,
        Engine(),
        Engine().search,
        Chain(),
        made_with(object()),
        functools.partial(mill_first),
        (of_faiss(), TEXTS, SimpleNamespace(encode=lsa)),
        (of_faiss(), TEXTS, lambda texts: lsa(texts)),
    ],
)
def test_what_has_no_name_of_its_own_needs_one(given):
    with pytest.raises(RetrievalError, match=r"name it, as retriever=adapt\(..., name='my-search'"):
        adapt(given).name  # noqa: B018
    named = adapt(given, name="my-search")
    assert named.name == adapt(adapt(given), name="my-search").name == "my-search"
    assert isinstance(named, Custom)
    assert bound(given, name="a").fingerprint != bound(given, name="b").fingerprint
    for name in ("my search", "", "../x", 7):
        with pytest.raises(RetrievalError, match="a retriever's name cannot be"):
            adapt(given, name=name)


def test_under_one_name_a_changed_function_has_another_fingerprint():
    one, two = bound(made_with(1), name="x"), bound(made_with(2), name="x")
    assert one.name == two.name
    assert one.fingerprint != two.fingerprint
    assert one.card["settings"]["name"] == "x"
