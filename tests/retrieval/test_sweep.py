from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rag_repro.data.dataset import Dataset
from rag_repro.retrieval import BM25, RankBM25, RetrievalError
from rag_repro.retrieval.sweep import bm25_settings, per_question, sweep
from rag_repro.schema import Gold, Question

from .conftest import corpus_of


def question(name, text, *gold, candidates=()):
    return Question(name, text, ("x",), gold=tuple(map(Gold, gold)), candidates=candidates)


@pytest.fixture
def dataset():
    # "red" finds p1, p0 (p3 and p2 score 0 and follow by id); "cat" finds p2, then p0, p1, p3.
    corpus = corpus_of("red fox", "red red dog", "blue dog cat bird", "owl")
    questions = (
        question("q0", "red", "p0", "p3", candidates=("p0", "p2", "p3")),
        question("q1", "cat", "p2", candidates=("p2", "p3")),
        question("q2", "owl"),  # no gold: cannot be scored
    )
    return Dataset("small", questions, corpus)


def test_rows_by_hand(dataset):
    rows = sweep(dataset, {"default": BM25(dataset.corpus)}, ks=(1, 2, 4))
    assert rows == [
        {"dataset": "small", "setting": "default", "pool": "corpus", "k": k, "n": 2}
        | {"recall": r, "all_found": a}
        for k, r, a in [(1, 0.5, 0.5), (2, 0.75, 0.5), (4, 1.0, 1.0)]
    ]


def test_own_candidates(dataset):
    rows = sweep(dataset, {"default": BM25}, ks=(1, 2), candidates=True)
    # red within p0, p2, p3: p0, then p2 by id
    assert [(r["pool"], r["k"], r["recall"]) for r in rows] == [
        ("candidates", 1, 0.75),
        ("candidates", 2, 0.75),
    ]


def test_values_of_each_question(dataset):
    values = per_question(dataset, BM25(dataset.corpus), [2])
    np.testing.assert_array_equal(values["recall"][2], [0.5, 1])
    np.testing.assert_array_equal(values["all_found"][2], [0, 1])


def test_metrics_of_ones_own_and_all_kinds_of_source(dataset):
    rows = sweep(
        dataset,
        {"made": BM25(dataset.corpus), "to make": RankBM25, "settings": {"variant": "atire"}},
        ks=(1,),
        metrics={"first is gold": lambda hits, gold: float(hits[0] in gold)},
    )
    assert [(r["setting"], r["first is gold"]) for r in rows] == [
        ("made", 0.5),
        ("to make", 1.0),  # red is in half of the passages: weight 0, and p0 comes first by id
        ("settings", 0.5),
    ]


def test_settings_are_spelled_out():
    settings = bm25_settings(
        variant=["lucene", "atire"], fields=[("text",), ("title", "text")], stemmer=["english"]
    )
    assert list(settings) == [
        "variant=lucene fields=text stemmer=english",
        "variant=lucene fields=title+text stemmer=english",
        "variant=atire fields=text stemmer=english",
        "variant=atire fields=title+text stemmer=english",
    ]
    made = BM25(corpus_of("red"), **settings["variant=atire fields=text stemmer=english"])
    assert (made.variant, made.fields, made.analyzer.stemmer) == ("atire", ("text",), "english")
    assert list(bm25_settings()) == ["default"]


def test_a_setting_can_move_recall():
    corpus = corpus_of("ants", "an owl", "a fox")
    dataset = Dataset("d", (question("q", "ant", "p0"), question("q2", "foxes", "p2")), corpus)
    rows = sweep(dataset, bm25_settings(stemmer=[None, "english"]), ks=(1,))
    assert [row["recall"] for row in rows] == [0.5, 1.0]  # unstemmed, p0 comes by id alone


def test_refusals(dataset):
    other = BM25(corpus_of("red"))
    with pytest.raises(RetrievalError, match="over corpus 'small' was given for 'small'"):
        sweep(dataset, {"x": other})
    bare = Dataset("bare", dataset.questions[2:], dataset.corpus)
    with pytest.raises(RetrievalError, match="'bare' has no question with gold passages;"):
        sweep(bare, {"x": BM25})
    with pytest.raises(RetrievalError, match="gold passages and candidates"):
        sweep(bare, {"x": BM25}, candidates=True)


def test_importing_the_room_imports_no_heavy_library():
    code = (
        "import sys, rag_repro.retrieval, rag_repro.retrieval.sweep;"
        "print(*{'bm25s', 'rank_bm25', 'faiss', 'Stemmer', 'torch', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
