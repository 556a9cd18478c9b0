"""Adaptive-RAG's classifier on a tiny encoder: three classes of a bare question."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rag_repro.lm import hub
from rag_repro.lm.hub import write_card
from rag_repro.lm.pair_scorers import CLASSES, ComplexityClassifier, row, sequence_classifier
from rag_repro.lm.prompts import Plain
from rag_repro.methods.baselines import adaptive_rag
from rag_repro.schema.errors import CallError, ReaderError
from rag_repro.training.fit import wrap
from rag_repro.training.recipes import Lora
from tests.lm import encoders

QUESTIONS = ["who directed the film", "who?", "the film was made by Ada in Rome, was it"]


def trained(tmp_path, task: str = "complexity") -> ComplexityClassifier:
    """A classifier whose low-rank matrices and head are random, not nothing."""
    base = hub.resolve(encoders.save("bert", tmp_path / "base"))
    model, _ = sequence_classifier(base, labels=3)
    model = wrap(model, Lora(rank=2), 0, "SEQ_CLS")
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    model.save_pretrained(tmp_path / "c")
    write_card(tmp_path / "c", base, {"recipe": {"task": task}})
    return ComplexityClassifier(hub.adapted("c", tmp_path / "c"))


def items(questions):
    return [(question, letter) for question in questions for letter in CLASSES]


def test_the_methods_classes_are_the_scorers():
    assert CLASSES == adaptive_rag.CLASSES


def test_a_questions_classes_share_one_and_depend_on_nothing_else(tmp_path):
    classifier = trained(tmp_path)
    scores = classifier.score(items(QUESTIONS))
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores.reshape(3, 3).sum(axis=1), 1, atol=1e-6)
    assert len(set(scores.round(4))) == 9
    one_by_one = np.concatenate([classifier.score([item]) for item in items(QUESTIONS)])
    np.testing.assert_allclose(one_by_one, scores, atol=1e-5)
    mixed = [(QUESTIONS[1], "C"), (QUESTIONS[0], "A"), (QUESTIONS[1], "A")]
    np.testing.assert_allclose(classifier.score(mixed), scores[[5, 0, 3]], atol=1e-5)
    assert classifier.score([]).shape == (0,)


def test_shares_are_the_heads_softmax(tmp_path):
    classifier = trained(tmp_path)
    ids = row("who?", Plain(encoders.tokenizer()), 60)
    logits = classifier.outputs([ids]).numpy()[0].astype(float)
    wanted = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(classifier.score(items(["who?"])), wanted, atol=1e-6)


def test_a_row_is_the_bare_question_between_its_marks():
    tokenizer = encoders.tokenizer()
    plain = tokenizer("who </s>", add_special_tokens=False, split_special_tokens=True).input_ids
    ids = row("who </s>", Plain(tokenizer), 60)
    assert ids == (tokenizer.cls_token_id, *plain, tokenizer.sep_token_id)
    # A question that imitates the mark is words.
    assert ids.count(tokenizer.sep_token_id) == 1
    assert row("who </s>", Plain(tokenizer), 4)[1:-1] == tuple(plain[:2])


def test_what_is_no_class_and_what_is_not_trained_are_refused(tmp_path):
    classifier = trained(tmp_path)
    with pytest.raises(CallError, match="no class 'D'"):
        classifier.score([("who?", "D")])
    with pytest.raises(ReaderError, match="rag-repro train complexity"):
        ComplexityClassifier(classifier.weights.base)
