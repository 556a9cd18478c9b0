"""Ranking by chance: even, and the same for the same seed."""

from __future__ import annotations

from collections import Counter

import pytest

from rag_repro import retrieval
from rag_repro.retrieval import RetrievalError, Retriever
from rag_repro.schema.dataset import Corpus
from tests.retrieval.conftest import corpus_of, ids_of

CORPUS = corpus_of(*"abcdefgh")


@pytest.fixture
def chance():
    return retrieval.build("random", CORPUS)


def test_a_query_is_a_seed_and_its_batch_does_not_matter(chance):
    [one] = chance.search(["q1"], 3)
    [_, again, other] = chance.search(["q2", "q1", "q3"], 3)
    assert again == one
    assert ids_of(other) != ids_of(one)
    assert ids_of(chance.search(["q1"], 8)[0])[:3] == ids_of(one)


def test_hits_keep_the_promise_of_every_retriever(chance):
    assert isinstance(chance, Retriever)
    [hits] = chance.search(["q"], 20)
    assert sorted(ids_of(hits)) == [f"p{i}" for i in range(8)]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score < 1 for score in scores)
    assert [hit.rank for hit in hits] == list(range(1, 9))
    assert all(hit.passage.text == "abcdefgh"[int(hit.passage.id[1])] for hit in hits)


def test_every_passage_is_first_about_as_often(chance):
    # 4,000 draws of 8: each 500 times, with a standard deviation of 21.
    first = Counter(hits[0].passage.id for hits in chance.search([f"q{i}" for i in range(4000)], 1))
    assert len(first) == 8
    assert all(abs(count - 500) < 105 for count in first.values())


def test_within_leaves_out_the_others_and_keeps_the_order(chance):
    [whole] = chance.search(["q"], 8)
    [some] = chance.search(["q"], 8, [["p1", "p5", "p6"]])
    assert ids_of(some) == [i for i in ids_of(whole) if i in {"p1", "p5", "p6"}]
    scores = {hit.passage.id: hit.score for hit in whole}
    assert [hit.score for hit in some] == [scores[i] for i in ids_of(some)]


def test_the_order_of_the_corpus_does_not_decide(chance):
    turned = retrieval.build("random", Corpus("small", tuple(reversed(CORPUS.passages))))
    assert ids_of(turned.search(["q"], 8)[0]) == ids_of(chance.search(["q"], 8)[0])


def test_an_empty_corpus_and_settings_are_refused():
    with pytest.raises(RetrievalError, match="holds no passage"):
        retrieval.build("random", Corpus("none", ()))
    with pytest.raises(RetrievalError, match="no setting 'seed'"):
        retrieval.build("random", CORPUS, seed=3)
