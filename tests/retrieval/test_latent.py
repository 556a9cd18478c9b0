"""Latent semantics: words that stand together, the corpus in its name, texts without a word."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.retrieval import Dense
from rag_repro.retrieval.dense import LatentSemantics
from rag_repro.retrieval.interface import RetrievalError
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus

TEXTS = (
    "the ship sailed on the sea",
    "a boat sailed on the sea, the dark sea, at night",
    "the captain of the boat and the ship",
    "bread is baked from flour",
    "a cake is baked from flour and sugar",
    "the baker sold bread and cake",
)


def corpus(texts=TEXTS, name="two subjects"):
    return Corpus(name, tuple(Passage(f"p{i}", "", text) for i, text in enumerate(texts)))


@pytest.fixture(scope="module")
def lsa():
    return LatentSemantics(corpus(), width=2)


def test_texts_of_one_subject_are_alike_without_a_common_word(lsa):
    ship, boat, bread = lsa.encode(["ship", "boat", "bread"])
    assert ship @ boat > 0.9
    assert abs(ship @ bread) < 0.2


def test_a_corpus_without_blanks_is_read_by_characters():
    texts = ("北港灯塔由林海建造。", "渡轮往返于小岛之间。", "博物馆收藏旧船。")
    made = LatentSemantics(Corpus("zh", tuple(Passage(t, "", t) for t in texts)), width=3)
    query, *passages = made.encode(["灯塔是谁建造的？", *texts])
    assert np.argmax(passages @ query) == 0
    assert passages[0] @ query > 0.5


def test_by_hand():
    """The dot products are those of the tf-idf table, projected on its first four directions."""
    lsa = LatentSemantics(corpus(), width=4)
    terms = sorted({t for text in TEXTS for t in lsa.analyzer(text)})
    counts = np.array([[lsa.analyzer(text).count(t) for t in terms] for text in TEXTS])
    weights = np.where(counts, 1 + np.log(np.maximum(counts, 1)), 0)
    idf = np.log((1 + len(TEXTS)) / (1 + (counts > 0).sum(0))) + 1
    table = weights * idf
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    directions = np.linalg.svd(table)[2][:4]
    wanted = table @ directions.T
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    made = lsa.encode([f" {text}" for text in TEXTS])  # as titles and texts are joined
    np.testing.assert_allclose(made @ made.T, wanted @ wanted.T, atol=1e-5)


def test_vectors_are_of_length_one_and_of_no_batch(lsa):
    texts = [*TEXTS, "ship", "nothing known", ""]
    made = lsa.encode(texts)
    assert (made.shape, made.dtype) == ((9, 3), np.float32)
    assert lsa.width == 3
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    for text, row in zip(texts, made, strict=True):
        np.testing.assert_array_equal(lsa.encode([text])[0], row)
    assert lsa.encode([]).shape == (0, 3)
    again = LatentSemantics(corpus(), width=2)
    np.testing.assert_allclose(again.encode(texts), made, atol=1e-6)


def test_a_text_without_a_known_word_is_like_no_passage(lsa):
    unknown, other, ship = lsa.encode(["zeppelin", "the", "ship"])
    assert unknown @ ship == 0
    assert unknown @ other == 1


def test_another_corpus_is_another_encoder(lsa):
    same = LatentSemantics(corpus(name="another name"), width=2)
    assert same.fingerprint == lsa.fingerprint
    for other in (
        LatentSemantics(corpus(TEXTS[:-1]), width=2),
        LatentSemantics(corpus(), width=3),
        LatentSemantics(corpus(), width=2, fields=("text",)),
    ):
        assert other.fingerprint != lsa.fingerprint


def test_fitted_twice_it_is_the_same():
    # More directions vary here than are kept, so that the search for them has a choice.
    rng = np.random.default_rng(3)
    texts = [" ".join(f"word{i}" for i in rng.integers(0, 90, 12)) for _ in range(60)]
    first, second = (LatentSemantics(corpus(texts), width=4).encode(texts) for _ in range(2))
    assert np.array_equal(first, second)


def test_it_searches(lsa):
    index = Dense(corpus(), lsa)
    found = [h.passage.id for h in index.search(["boat"], 3)[0]]
    assert set(found) == {"p0", "p1", "p2"}
    # Wider than there are passages: as many directions as there are.
    assert LatentSemantics(corpus()).width == len(TEXTS) + 1


def test_what_cannot_be():
    with pytest.raises(RetrievalError, match="width is 0"):
        LatentSemantics(corpus(), width=0)
    with pytest.raises(RetrievalError, match="'empty' has no term"):
        LatentSemantics(corpus(("the", "of"), "empty")).encode(["x"])
