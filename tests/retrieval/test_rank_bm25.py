"""bm25s' Robertson variant is held to rank_bm25's rankings."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_repro.evaluation.retrieval_metrics import recall
from rag_repro.retrieval import BM25, Analyzer, RankBM25
from tests.retrieval.conftest import corpus_of, ids_of
from tests.retrieval.test_bm25 import TEXTS, THREE, WORDS


def test_scores_by_hand():
    # Weights with N = 3: red and dog log(1.5/2.5), in two of three; fox, blue,
    # cat, bird log(2.5/1.5). Mean (4 - 2) log(5/3) / 6, and red gets a quarter of it.
    retriever = RankBM25(corpus_of(*THREE), k1=1, b=0.5)
    hits = {h.passage.id: h.score for h in retriever.search(["fox red"], 3)[0]}
    red = 0.25 * log(5 / 3) / 3
    assert hits["p0"] == pytest.approx((log(5 / 3) + red) * 12 / 11)
    assert hits["p1"] == pytest.approx(red * 4 / 3)
    assert hits["p2"] == 0


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(TEXTS, min_size=2, max_size=12),
    query=st.lists(WORDS, min_size=1, max_size=8).map(" ".join),
    data=st.data(),
)
def test_without_its_floor_it_ranks_as_robertson_on_any_corpus(texts, query, data):
    corpus = corpus_of(*texts)
    pool = data.draw(st.none() | st.lists(st.sampled_from([p.id for p in corpus.passages])))
    reference = RankBM25(corpus, epsilon=0).search([query], len(texts), within=[pool])[0]
    ours = BM25(corpus, variant="robertson").search([query], len(texts), within=[pool])[0]
    assert ids_of(ours) == ids_of(reference)
    assert [2.5 * h.score for h in ours] == pytest.approx([h.score for h in reference], abs=1e-8)


def test_fingerprint_changes_with_everything_that_can_change_results():
    corpus = corpus_of(*THREE)
    retrievers = [
        RankBM25(corpus),
        RankBM25(corpus, epsilon=0),
        RankBM25(corpus, k1=1),
        RankBM25(corpus, b=0.5),
        RankBM25(corpus, analyzer=Analyzer(stop_words=None)),
        RankBM25(corpus_of("red", *THREE[1:])),
        BM25(corpus, variant="robertson"),
    ]
    assert len({r.fingerprint for r in retrievers}) == len(retrievers)


def test_with_its_floor_it_differs_where_a_term_is_in_most_passages():
    corpus = corpus_of("fox", "red", "red red", "red ant")
    reference, ours = RankBM25(corpus), BM25(corpus, variant="robertson")
    assert ids_of(ours.search(["red"], 4)[0]) == ["p0", "p1", "p2", "p3"]  # all 0
    assert ids_of(reference.search(["red"], 4)[0])[0] == "p2"


def test_equal_on_a_larger_synthetic_corpus_once_stop_words_are_out():
    rng = np.random.default_rng(5)
    words = [f"w{i}" for i in range(400)]
    weights = 1 / np.arange(30, 430)  # flat enough that no word is in half of the passages
    weights /= weights.sum()
    texts = [
        " ".join(["the", *rng.choice(words, rng.integers(5, 60), p=weights)]) for _ in "x" * 300
    ]
    queries = [" ".join(rng.choice(words, rng.integers(2, 80), p=weights)) for _ in "x" * 30]
    corpus = corpus_of(*texts)
    assert rankings(BM25(corpus, variant="robertson"), queries) == rankings(
        RankBM25(corpus), queries
    )
    kept = Analyzer(stop_words=None)  # "the" is everywhere: now the two weigh it differently
    queries = [f"the {query}" for query in queries]
    assert rankings(BM25(corpus, variant="robertson", analyzer=kept), queries) != rankings(
        RankBM25(corpus, analyzer=kept), queries
    )


def rankings(retriever, queries, k=20):
    return [ids_of(hits) for hits in retriever.search(queries, k)]


# Mean share of gold passages in the first three, whole file pooled, in percent.
RECALL_AT_3 = {"hotpotqa": 64.7, "2wikimultihopqa": 61.4, "musique": 40.0}


@pytest.mark.parametrize("name", list(RECALL_AT_3))
def test_equal_top_ten_on_real_questions_and_the_known_recall(pooled, name):
    dataset = pooled(name)
    ours = BM25(dataset.corpus, variant="robertson")
    asked = [q for q in dataset.questions if q.gold]
    found = rankings(ours, [q.text for q in asked], 3)
    shares = [recall(ids, q.gold_ids) for ids, q in zip(found, asked, strict=True)]
    assert round(100 * np.mean(shares), 1) == RECALL_AT_3[name]
    queries = [q.text for q in dataset.questions[:60]]
    # As in a second stage: the question with the text of its best passage.
    queries += [f"{q} {ours.search([q], 1)[0][0].passage.text}" for q in queries[:10]]
    assert rankings(ours, queries, 10) == rankings(RankBM25(dataset.corpus), queries, 10)
