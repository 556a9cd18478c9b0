"""The pair classifier on tiny encoders of the papers' kinds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rag_repro.lm import hub
from rag_repro.lm.hub import write_card
from rag_repro.lm.pair_scorers import (
    Cutter,
    PairClassifier,
    RelevanceClassifier,
    sequence_classifier,
)
from rag_repro.lm.prompts import Plain
from rag_repro.schema.errors import CallError, ReaderError
from rag_repro.training.fit import wrap
from rag_repro.training.recipes import Lora
from tests.lm import encoders

ITEMS = [
    ("who directed the film", "the film was made by Ada", "Ada was born in Rome"),
    ("who directed the film", "a lake", "the film was made by Ada, in a long year of rain"),
    ("who?", "the film was made by Ada", "Ada was born in Rome"),
]


def trained(kind: str, tmp_path, task: str = "pairs") -> PairClassifier:
    """A classifier whose low-rank matrices and head are random, not nothing."""
    base = hub.resolve(encoders.save(kind, tmp_path / "base"))
    model, _ = sequence_classifier(base)
    model = wrap(model, Lora(rank=2), 0, "SEQ_CLS")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    model.save_pretrained(tmp_path / "c")
    write_card(tmp_path / "c", base, {"recipe": {"task": task}})
    return PairClassifier(hub.adapted("c", tmp_path / "c"))


@pytest.mark.parametrize("kind", ["bert", "big_bird", "longformer"])
def test_scores_do_not_depend_on_neighbours(kind, tmp_path):
    classifier = trained(kind, tmp_path)
    scores = classifier.score(ITEMS)
    assert scores.dtype == np.float32
    assert scores.shape == (3,)
    assert ((scores > 0) & (scores < 1)).all()
    assert len(set(scores.round(4))) == 3
    alone = np.concatenate([classifier.score([item]) for item in ITEMS])
    np.testing.assert_allclose(alone, scores, atol=1e-5)
    tight = PairClassifier(classifier.weights, batch_tokens=1)
    np.testing.assert_allclose(tight.score(ITEMS), scores, atol=1e-5)
    assert classifier.score([]).shape == (0,)


def test_a_row_is_question_passage_passage_between_marks():
    tokenizer = encoders.tokenizer()
    ids = Cutter(Plain(tokenizer), 60)("who", "a </s> b", "film")
    plain = [tokenizer(t, add_special_tokens=False).input_ids for t in ("who", "film")]
    assert ids[0] == tokenizer.cls_token_id
    assert ids[1 : 1 + len(plain[0])] == tuple(plain[0])
    assert ids[-1 - len(plain[1]) : -1] == tuple(plain[1])
    # A passage that imitates the mark is words: three marks, whatever it says.
    assert ids.count(tokenizer.sep_token_id) == 3


def test_the_longer_passage_gives_way_first():
    tokenizer = encoders.tokenizer()

    def room(a: str, b: str) -> tuple[int, int]:
        ids = Cutter(Plain(tokenizer), 24)("who", a, b)
        assert len(ids) == 24
        _, first, second, _ = np.flatnonzero(
            np.isin(ids, [tokenizer.cls_token_id, tokenizer.sep_token_id])
        )
        return second - first - 1, len(ids) - second - 2

    short = "zq"
    n = len(tokenizer(short, add_special_tokens=False).input_ids)
    left, right = room("zq " * 40, short)
    assert right == n
    assert room(short, "zq " * 40) == (n, left)
    assert abs(np.subtract(*room("zq " * 40, "zq " * 40))) <= 1


def test_room_stays_below_the_encoders_positions(tmp_path):
    model, tokenizer = sequence_classifier(hub.resolve(encoders.save("longformer", tmp_path)))
    assert Cutter.for_model(tokenizer, model).room == 128


def test_packed_layers_give_the_same_logits(tmp_path):
    classifier = trained("bert", tmp_path)
    assert classifier._linears.layers
    rows = [classifier._cutter(*item) for item in ITEMS]
    packed = classifier.logits(rows)
    classifier._linears.layers = []
    torch.testing.assert_close(packed, classifier.logits(rows), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("room", [15, 129])
def test_room_that_the_encoder_lacks_is_refused(room, tmp_path):
    weights = trained("bert", tmp_path).weights
    with pytest.raises(ReaderError, match="from 16 to 128"):
        PairClassifier(weights, room=room)


def test_only_a_trained_classifier_judges(tmp_path):
    base = hub.resolve(encoders.save("bert", tmp_path / "base"))
    with pytest.raises(ReaderError, match="rag-repro train"):
        PairClassifier(base)


def test_a_single_passage_is_a_row_of_two_texts():
    tokenizer = encoders.tokenizer()
    ids = Cutter(Plain(tokenizer), 60)("who", "film")
    plain = [tokenizer(t, add_special_tokens=False).input_ids for t in ("who", "film")]
    first, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    assert ids == (first, *plain[0], sep, *plain[1], sep)
    ids = Cutter(Plain(tokenizer), 24)("who", "zq " * 40)
    assert len(ids) == 24
    assert ids.count(sep) == 2
    # A question takes half of the room at most.
    ids = Cutter(Plain(tokenizer), 24)("zq " * 40, "zq " * 40)
    assert (len(ids), ids.index(sep)) == (24, 1 + 12)


def test_a_relevance_classifier_judges_passages_one_by_one(tmp_path):
    classifier = RelevanceClassifier(trained("bert", tmp_path).weights)
    items = [(q, a) for q, a, _ in ITEMS]
    scores = classifier.score(items)
    assert scores.shape == (3,)
    assert ((scores > 0) & (scores < 1)).all()
    alone = np.concatenate([classifier.score([item]) for item in items])
    np.testing.assert_allclose(alone, scores, atol=1e-5)
    assert classifier.fingerprint != PairClassifier(classifier.weights).fingerprint


def test_items_with_another_number_of_passages_are_refused(tmp_path):
    pairs = trained("bert", tmp_path)
    with pytest.raises(CallError, match=r"c judges a question with 2 passage.*given 2 texts"):
        pairs.score([ITEMS[0], ITEMS[0][:2]])
    with pytest.raises(CallError, match=r"with 1 passage.*given 3 texts"):
        RelevanceClassifier(pairs.weights).score(ITEMS)
