"""BM25 against scores worked out by hand, and the promise of `search`."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from math import log
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_repro.retrieval import BM25, Analyzer, RetrievalError, Retriever, build
from rag_repro.retrieval.web import best_sentences
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus
from tests.retrieval.conftest import corpus_of, ids_of

# N = 3, lengths 2, 3, 4, mean 3. With k1 = 1 and b = 1/2 the length factors
# B = 1/2 + length / 6 are 5/6, 1 and 7/6.
THREE = ("red fox", "red red dog", "blue dog cat bird")


def scores_of(retriever, query):
    hits = retriever.search([query], len(retriever.corpus))[0]
    return {hit.passage.id: hit.score for hit in hits}


@pytest.mark.parametrize(
    ("variant", "query", "expected"),
    [
        # red stands in 2 of 3: lucene log(1 + 1.5/2.5), robertson log(1.5/2.5) < 0, so 0
        ("lucene", "red", [log(1.6) * 6 / 11, log(1.6) * 2 / 3, 0]),
        ("robertson", "red", [0, 0, 0]),
        ("atire", "red", [log(3 / 2) * 12 / 11, log(3 / 2) * 4 / 3, 0]),
        # fox stands in 1 of 3: lucene log(1 + 2.5/1.5), robertson log(2.5/1.5), atire log 3
        ("lucene", "fox", [log(8 / 3) * 6 / 11, 0, 0]),
        ("robertson", "fox", [log(5 / 3) * 6 / 11, 0, 0]),
        ("atire", "fox", [log(3) * 12 / 11, 0, 0]),
        # sums over terms; cat and fox weigh the same, cat's passage is longer
        ("robertson", "fox cat", [log(5 / 3) * 6 / 11, 0, log(5 / 3) * 6 / 13]),
        # a term asked twice counts twice; an unknown one not at all
        ("lucene", "Fox fox unicorn", [2 * log(8 / 3) * 6 / 11, 0, 0]),
    ],
)
def test_scores_by_hand(variant, query, expected):
    retriever = BM25(corpus_of(*THREE), variant=variant, k1=1, b=0.5, fields=("text",))
    found = scores_of(retriever, query)
    assert [found[f"p{i}"] for i in range(3)] == pytest.approx(expected, abs=1e-9)


def test_hits_best_first_with_ranks():
    hits = BM25(corpus_of(*THREE), k1=1, b=0.5).search(["red", "cat"], 2)
    assert [ids_of(h) for h in hits] == [["p1", "p0"], ["p2", "p0"]]
    assert [h.rank for h in hits[0]] == [1, 2]
    assert hits[0][0].passage.text == "red red dog"


def test_title_is_searched_unless_left_out():
    corpus = Corpus("t", (Passage("p0", "Fox", "an animal"), Passage("p1", "Dog", "a fox's fear")))
    both, text = BM25(corpus), BM25(corpus, fields=("text",))
    assert scores_of(both, "fox")["p0"] > 0
    assert scores_of(text, "fox")["p0"] == 0
    # In "Fox Fox an animal" the term stands twice: log(1.2), tf 2, length 3 of mean 3.5.
    twice = BM25(corpus, fields=("title", "title", "text"), k1=1, b=0)
    assert scores_of(twice, "fox")["p0"] == pytest.approx(log(1.2) * 2 / 3)


def test_ties_stand_by_id_also_at_the_cut():
    ids = ["p9", "p3", "p7", "p1", "p5"]
    corpus = corpus_of("red", "red", "red fox", "red", "red", ids=ids)
    retriever = BM25(corpus)
    assert ids_of(retriever.search(["red"], 3)[0]) == ["p1", "p3", "p5"]
    assert ids_of(retriever.search(["fox"], 3)[0]) == ["p7", "p1", "p3"]
    assert ids_of(retriever.search(["red"], 9)[0]) == ["p1", "p3", "p5", "p9", "p7"]


def test_ids_are_compared_as_text():
    corpus = corpus_of("red", "red", "red", ids=["p2", "p10", "P3"])
    assert ids_of(BM25(corpus).search(["red"], 3)[0]) == ["P3", "p10", "p2"]


def test_passages_without_the_terms_fill_up_with_score_zero():
    retriever = BM25(corpus_of(*THREE))
    for query in ("unicorn", "the of and"):  # unknown; stop words only
        hits = retriever.search([query], 2)[0]
        assert ids_of(hits) == ["p0", "p1"]
        assert [h.score for h in hits] == [0, 0]


def test_k_beyond_the_corpus_gives_all():
    assert len(BM25(corpus_of(*THREE)).search(["red"], 50)[0]) == 3


def test_within_restricts_and_keeps_the_pools_scores():
    retriever = BM25(corpus_of(*THREE))
    whole = scores_of(retriever, "red dog cat")
    hits = retriever.search(["red dog cat"] * 4, 2, within=[["p2", "p0", "p2"], None, (), ["p1"]])
    assert [ids_of(h) for h in hits] == [
        ["p2", "p0"],
        sorted(whole, key=lambda i: -whole[i])[:2],
        [],
        ["p1"],
    ]
    assert all(h.score == whole[h.passage.id] for found in hits for h in found)
    assert [h.rank for h in hits[0]] == [1, 2]


def test_the_order_of_the_corpus_does_not_matter():
    texts = ["red fox", "red dog", "dog red", "fox fox", "red", "fox red", "dog", "cat red dog"]
    passages = list(corpus_of(*texts).passages)
    expected = None
    for seed in range(6):
        random.Random(seed).shuffle(passages)
        hits = BM25(Corpus("c", tuple(passages))).search(["red fox", "dog", "cat"], 4)
        found = [[(h.passage.id, h.score, h.rank) for h in one] for one in hits]
        expected = expected or found
        assert found == expected


WORDS = st.sampled_from(["red", "fox", "dog", "cat", "ant", "owl"])
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(TEXTS, min_size=2, max_size=12),
    query=st.lists(WORDS, min_size=1, max_size=8),
    k=st.integers(1, 14),
    variant=st.sampled_from(["lucene", "robertson", "atire"]),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_top_k_is_the_sorted_full_scores(texts, query, k, variant, seed, data):
    ids = [f"p{i:02}" for i in range(len(texts))]
    random.Random(seed).shuffle(ids)
    retriever = BM25(corpus_of(*texts, ids=ids), variant=variant)
    full = by_formula(texts, query, variant)
    pool = data.draw(st.none() | st.lists(st.sampled_from(ids), max_size=len(ids)))
    allowed = set(ids if pool is None else pool)
    brute = sorted((-round(s, 9), i) for s, i in zip(full, ids, strict=True) if i in allowed)[:k]
    hits = retriever.search([" ".join(query)], k, within=[pool])[0]
    assert ids_of(hits) == [i for _, i in brute]
    assert [h.score for h in hits] == pytest.approx([-s for s, _ in brute], abs=2e-9)
    # Nor does the order of the query's words matter, or company in the batch.
    random.Random(seed).shuffle(query)
    again = retriever.search(["owl", " ".join(query)], k, within=[None, pool])[1]
    assert again == hits


def by_formula(texts, query, variant, k1=1.5, b=0.75):
    """Scores from the formulas of Kamphuis et al., passage by passage."""
    passages = [text.split() for text in texts]
    n, mean = len(passages), np.mean([len(p) for p in passages])
    scores = []
    for passage in passages:
        total = 0.0
        for term in query:
            df, tf = sum(term in p for p in passages), passage.count(term)
            if not tf:
                continue
            norm = k1 * (1 - b + b * len(passage) / mean)
            odds = (n - df + 0.5) / (df + 0.5)
            total += {
                "lucene": log(1 + odds) * tf / (tf + norm),
                "robertson": max(0.0, log(odds)) * tf / (tf + norm),
                "atire": log(n / df) * tf * (k1 + 1) / (tf + norm),
            }[variant]
        scores.append(total)
    return scores


def test_it_is_a_retriever_and_says_what_it_is():
    corpus = corpus_of(*THREE)
    retriever = BM25(corpus, variant="atire", k1=1.2)
    assert isinstance(retriever, Retriever)
    card = retriever.card
    assert card["kind"] == "bm25"
    assert card["corpus"] == {"name": "small", "sha256": corpus.sha256, "passages": 3}
    assert card["settings"]["variant"] == "atire"
    assert card["settings"]["k1"] == 1.2
    assert set(card["versions"]) == {"bm25s"}
    stemmed = BM25(corpus, analyzer=Analyzer(stemmer="english"))
    assert set(stemmed.card["versions"]) == {"bm25s", "pystemmer"}


def test_fingerprint_changes_with_everything_that_can_change_results():
    corpus, other = corpus_of(*THREE), corpus_of("red", *THREE[1:])
    retrievers = [
        BM25(corpus),
        BM25(other),
        BM25(corpus, variant="atire"),
        BM25(corpus, k1=1),
        BM25(corpus, b=0.5),
        BM25(corpus, fields=("text",)),
        BM25(corpus, analyzer=Analyzer(stemmer="english")),
    ]
    assert len({r.fingerprint for r in retrievers}) == len(retrievers)
    renamed = corpus_of(*THREE, name="other name")
    assert BM25(renamed).fingerprint == BM25(corpus).fingerprint


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("red", 3), "one string"),
        ((["red"], 0), "whole number from 1"),
        ((["red"], True), "whole number from 1"),
        ((["red"], 2.0), "whole number from 1"),
        ((["red", "  "], 3), "query 1 of 2 is '  '"),
        ((["red", None], 3), "query 1 of 2 is None"),
        ((["red"], 3, [["p0", "p7"]]), "'p7', which is not in corpus 'small'"),
        ((["red"], 3, ["p0"]), "a list of passage ids"),
        ((["red"], 3, [None, None]), "2 entries for 1 queries"),
    ],
)
def test_refused_searches(arguments, says):
    with pytest.raises(RetrievalError, match=says):
        BM25(corpus_of(*THREE)).search(*arguments)


def test_no_queries_no_hits():
    assert BM25(corpus_of(*THREE)).search([], 3) == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"variant": "lucine"}, "did you mean 'lucene'"),
        ({"variant": "bm25l"}, "there are: lucene, robertson, atire"),
        ({"k1": -1}, "k1 is -1"),
        ({"k1": float("nan")}, "k1 is nan"),
        ({"b": 1.5}, "b is 1.5"),
        ({"fields": ("text", "body")}, "give a tuple of 'title' and 'text'"),
        ({"fields": "text"}, "give a tuple"),
        ({"fields": ()}, "give a tuple"),
    ],
)
def test_refused_settings(settings, says):
    with pytest.raises(RetrievalError, match=says):
        BM25(corpus_of(*THREE), **settings)


def test_refused_corpora():
    with pytest.raises(RetrievalError, match="holds no passage"):
        BM25(Corpus("empty", ()))
    with pytest.raises(RetrievalError, match="has no term"):
        BM25(corpus_of("the of", "..."))


def test_some_passages_may_be_without_terms():
    hits = BM25(corpus_of("...", "red", "the")).search(["red"], 3)[0]
    assert ids_of(hits) == ["p1", "p0", "p2"]


def test_why_bm25l_and_bm25plus_are_not_offered():
    """In bm25s their lower bound goes to passages without the term too: no order comes of it."""
    import bm25s

    passages = [text.split() for text in (*THREE, "red cat", "fox cat dog dog", "ant owl")]
    query = ["red", "dog", "cat"]

    def order(method, **settings):
        index = bm25s.BM25(method=method, dtype="float64", **settings)
        index.index(passages, show_progress=False)
        scores = index.get_scores(query)
        return [round(float(s - scores[-1]), 9) for s in scores]  # the last holds no term

    # tf part of BM25L less its constant: (k1 + 1) k1 / (k1 + delta) * tf / (tf + (k1 + delta) B)
    lower = order("bm25l", k1=1.5, delta=0.5)
    plain = order("lucene", k1=2.0, idf_method="bm25l")
    assert lower == pytest.approx([s * 2.5 * 1.5 / 2.0 for s in plain], abs=1e-8)
    assert order("bm25+", delta=0.5) == order("atire", idf_method="bm25+")
    assert any(lower)


@pytest.mark.parametrize("earlier", [False, True])
def test_bm25s_starts_no_jax(tmp_path, earlier):
    # JAX takes three quarters of a GPU's memory at bm25s's first call of it. A ValueError, for
    # bm25s itself goes on without JAX after an ImportError or a RuntimeError.
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").touch()
    (tmp_path / "jax" / "lax.py").write_text(
        "def top_k(*given):\n    raise ValueError('JAX was started')\n"
    )
    program = (
        ("import jax.lax\n" if earlier else "import sys\n")
        + "from rag_repro.without_jax import bm25s\n"
        "library = bm25s()\n"
        "assert not library.selection.JAX_IS_AVAILABLE\n"
        "assert bm25s() is library\n"
        "import jax.lax\n"  # found again by whoever asks for it
        "try:\n    jax.lax.top_k()\nexcept ValueError as error:\n    print(error)\n"
    )
    found = [str(tmp_path), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "JAX was started"


LIGHTHOUSE = (
    "博物馆收藏了许多旧船的模型。",
    "渡轮每天往返于北港和小岛之间。",
    "北港灯塔由工程师林海于1874年建造。",
)


@pytest.mark.parametrize("kind", ["bm25", "rank_bm25"])
@pytest.mark.parametrize("analyzer", [None, {"stop_words": None}, {"stemmer": "english"}])
def test_a_corpus_without_blanks_is_found_in(kind, analyzer):
    chosen = {} if analyzer is None else {"analyzer": analyzer}
    made = build(kind, corpus_of(*LIGHTHOUSE), **chosen)
    assert made.card["settings"]["analyzer"]["grams"] == 2
    [[best]] = made.search(["北港灯塔是谁建造的？"], 1)
    assert best.passage.id == "p2"
    assert best.score > 0


def test_an_analyzer_that_is_handed_over_stays():
    kept = BM25(corpus_of(*LIGHTHOUSE), analyzer=Analyzer())
    assert kept.card["settings"]["analyzer"] == Analyzer().card
    assert (
        BM25(corpus_of(*THREE)).fingerprint
        == BM25(corpus_of(*THREE), analyzer=Analyzer()).fingerprint
    )


def test_a_mixed_corpus_finds_either_script():
    made = BM25(corpus_of(*LIGHTHOUSE, "The lighthouse of Sarnby was built in 1902."))
    for query, wanted in (("who built the lighthouse", "p3"), ("灯塔", "p2"), ("1874", "p2")):
        [[best]] = made.search([query], 1)
        assert (best.passage.id, best.score > 0) == (wanted, True)


@pytest.mark.parametrize("passage", ["NFC", "NFD"])
def test_normal_forms_of_query_and_passage_find_each_other(passage):
    text = "Zoé Märtén spent her childhood in Sarnby."
    made = BM25(corpus_of("Nobody was born where the river ends.", normalize(passage, text)))
    found = [
        scores_of(made, normalize(form, "Where did Zoé Märtén spend her youth?"))
        for form in ("NFC", "NFD")
    ]
    assert found[0] == found[1]
    assert found[0]["p1"] > found[0]["p0"]


def warnings(caplog):
    return [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]


@pytest.mark.parametrize("kind", ["bm25", "rank_bm25"])
def test_a_query_without_any_term_of_the_index_is_told_once(kind, caplog):
    made = build(kind, corpus_of(*THREE))
    made.search(["red"], 1)  # in more than half of the passages
    made.search(["cat"], 1, within=[["p0"]])
    assert not warnings(caplog)
    made.search(["北港灯塔", "unicorn"], 1)
    made.search(["unicorn"], 1)
    [told] = warnings(caplog)
    assert "'北港灯塔'" in told
    assert "'small'" in told


def test_the_pages_of_a_search_service_tell_nothing(caplog):
    assert best_sentences("One cat. Two dogs.", "unicorn", 1) == "One cat."
    assert not warnings(caplog)
