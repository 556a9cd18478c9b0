from __future__ import annotations

import random
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_repro.retrieval import Dense, RetrievalError, Retriever
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus
from tests.retrieval.conftest import Letters, corpus_of, ids_of


def test_cosines_by_hand(letters):
    # a a b is (2, 1, 0) / sqrt 5; the query a b is (1, 1, 0) / sqrt 2.
    retriever = Dense(corpus_of("a a b", "c", "b", "a b"), letters)
    hits = retriever.search(["a b"], 4)[0]
    assert ids_of(hits) == ["p3", "p0", "p2", "p1"]
    assert [h.score for h in hits] == pytest.approx([1, 3 / sqrt(10), 1 / sqrt(2), 0], abs=1e-6)
    assert [h.rank for h in hits] == [1, 2, 3, 4]
    assert isinstance(retriever, Retriever)


def test_what_the_encoder_is_shown(letters):
    corpus = Corpus("t", (Passage("p0", "ab", "c"),))
    Dense(corpus, letters, query_prefix="query: ", passage_prefix="passage: ").search(["a"], 1)
    Dense(corpus, letters, fields=("text",))
    assert letters.asked == [["passage: ab c"], ["query: a"], ["c"]]


def test_all_queries_are_encoded_at_once(letters):
    retriever = Dense(corpus_of("a", "b"), letters)
    letters.asked.clear()
    retriever.search(["a", "b", "c"], 1, within=[None, ["p0"], None])
    assert letters.asked == [["a", "b", "c"]]
    assert retriever.search([], 1) == []
    assert len(letters.asked) == 1


def test_many_more_ties_than_k_stand_by_id(letters):
    ids = [f"p{i:03}" for i in range(200)]
    random.Random(1).shuffle(ids)
    retriever = Dense(corpus_of(*["a"] * 150, *["a b"] * 50, ids=ids), letters)
    assert ids_of(retriever.search(["a"], 3)[0]) == sorted(ids[:150])[:3]
    assert ids_of(retriever.search(["b"], 55)[0]) == sorted(ids[150:]) + sorted(ids[:150])[:5]


def test_noise_in_the_seventh_digit_does_not_order_equals():
    class Noisy(Letters):
        def encode(self, texts):
            noise = np.random.default_rng(len(texts)).normal(0, 2e-8, (len(texts), 3))
            return (super().encode(texts) + noise).astype(np.float32)

    ids = [f"p{i:02}" for i in range(40)]
    random.Random(2).shuffle(ids)
    assert ids_of(Dense(corpus_of(*["a b c"] * 40, ids=ids), Noisy()).search(["a"], 5)[0]) == [
        "p00",
        "p01",
        "p02",
        "p03",
        "p04",
    ]


def test_within(letters):
    retriever = Dense(corpus_of("a", "a b", "b", "c"), letters)
    whole = {h.passage.id: h.score for h in retriever.search(["a"], 4)[0]}
    hits = retriever.search(["a"] * 3, 2, within=[["p2", "p1", "p3"], None, []])
    assert [ids_of(h) for h in hits] == [["p1", "p2"], ["p0", "p1"], []]
    assert all(h.score == whole[h.passage.id] for found in hits for h in found)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=40),
    queries=st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=25),
    k=st.integers(1, 45),
    seed=st.integers(0, 99),
)
def test_top_k_is_the_sorted_full_scores(texts, queries, k, seed):
    ids = [f"p{i:02}" for i in range(len(texts))]
    random.Random(seed).shuffle(ids)
    encoder = Letters()
    retriever = Dense(corpus_of(*texts, ids=ids), encoder)
    vectors = encoder.encode(texts).astype(np.float64)
    found = retriever.search(queries, k)
    for query, hits in zip(queries, found, strict=True):
        cosines = vectors @ encoder.encode([query])[0].astype(np.float64)
        brute = sorted((-round(float(s), 6), i) for s, i in zip(cosines, ids, strict=True))[:k]
        assert [(-h.score, h.passage.id) for h in hits] == brute
        assert retriever.search([query], k)[0] == hits  # alone or in a batch


def test_fingerprint_changes_with_everything_that_can_change_results(letters):
    corpus, other = corpus_of("a", "b"), Letters()
    other.fingerprint = "letters-2"
    retrievers = [
        Dense(corpus, letters),
        Dense(corpus_of("a", "c"), letters),
        Dense(corpus, other),
        Dense(corpus, letters, fields=("text",)),
        Dense(corpus, letters, query_prefix="a"),
        Dense(corpus, letters, passage_prefix="a"),
    ]
    assert len({r.fingerprint for r in retrievers}) == len(retrievers)


@pytest.mark.parametrize(
    ("vectors", "says"),
    [
        ([[3.0, 4.0]], "vector of length 5.0 for ' a'"),
        ([[0.0, 0.0]], "vector of length 0.0"),
        ([[float("nan"), 1.0]], "vector of length nan"),
        ([[1.0, 0.0], [0.0, 1.0]], r"shape \(2, 2\) for 1 texts"),
        ([1.0], r"shape \(1,\) for 1 texts"),
    ],
)
def test_an_encoder_that_breaks_its_promise_is_refused(letters, vectors, says):
    letters.encode = lambda texts: np.array(vectors, dtype=np.float32)
    with pytest.raises(RetrievalError, match=says):
        Dense(corpus_of("a"), letters)
