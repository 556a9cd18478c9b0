"""Likelihood of the right answers: by hand, as lessons have them, and by a real reader."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rag_repro.methods import base
from rag_repro.methods.r2ag.checks import likelihood_check
from rag_repro.methods.reading import PROMPTS
from rag_repro.schema import Generation, Gold, Question, Read, Soft, Trace
from tests.lm import tiny
from tests.methods.scripted import Tables, answer_of, ids

QUESTION = Question("id-q", "q?", ("one two", "three"), gold=(Gold("c"),), candidates=("a", "c"))
RANKINGS = {"q?": ["a", "b", "c"]}


class Halving:
    """Holds each word half as likely as the one before it; "never" not at all."""

    def __init__(self):
        self.calls = []

    def read(self, calls):
        self.calls += calls
        return [self.one(call) for call in calls]

    def one(self, call):
        words = call.text.split()
        p = [0.0 if w == "never" else 0.5 ** (i + 1) for i, w in enumerate(words)]
        trace = Trace(np.array(p, np.float32), np.zeros(len(p), np.float32))
        return Generation(call.text, (0,) * len(p), (0,) * len(p), "given", 9, 9, trace)


class Encoder:
    def encode(self, texts):
        return np.eye(4, dtype=np.float32)[[len(t) % 4 for t in texts]]


def asked(question=QUESTION, **given):
    settings = base.get("likelihood_check").configure({"k": 2, **given})
    reader = Halving()
    services = dict.fromkeys(settings.needs, Encoder())
    answer = answer_of(
        likelihood_check, question, settings, retriever=Tables(RANKINGS), reader=reader, **services
    )
    return answer, reader.calls


def test_every_accepted_answer_by_hand():
    answer, calls = asked()
    assert [call.text for call in calls] == ["one two", "three"]
    assert all(call == Read(call.prompt, call.text) for call in calls)
    soft = [[s.index for s in c.prompt.segments if isinstance(s, Soft)] for c in calls]
    assert soft == [[0, 1], [0, 1]]
    features, event = answer.trace
    assert features["stage"] == "features"
    assert event["stage"] == "likelihood"
    assert event["nats"] == pytest.approx([np.log(0.5 * 0.25), np.log(0.5)])
    assert ids(answer.hits) == ["a", "b"]
    assert (answer.text, answer.prediction, answer.cost.reader_calls) == ("", None, 0)


def test_an_answer_stands_as_the_lessons_have_it():
    _, calls = asked(prompt="r2ag_plain")
    assert [call.text for call in calls] == [" one two", " three"]
    assert [c.text for c in calls] == [
        PROMPTS["r2ag_plain"].lesson_answer(a) for a in QUESTION.answers
    ]


def test_without_embeddings():
    answer, calls = asked(prompt="r2ag_rag")
    assert [e["stage"] for e in answer.trace] == ["likelihood"]
    assert not any(isinstance(s, Soft) for c in calls for s in c.prompt.segments)
    assert answer.calls == ("Retrieve", "Read", "Read")


def test_the_first_answers_alone_and_none():
    _, calls = asked(answers=1)
    assert [call.text for call in calls] == ["one two"]
    with pytest.raises(AssertionError, match="has no answer whose likelihood"):
        asked(replace(QUESTION, answers=()))
    with pytest.raises(ValueError, match="answers is 0"):
        base.get("likelihood_check").configure({"answers": 0})


def test_what_is_ruled_out_is_as_likely_as_float32_can_tell():
    answer, _ = asked(replace(QUESTION, answers=("never",)))
    [nats] = answer.trace[-1]["nats"]
    assert nats == pytest.approx(np.log(np.finfo(np.float32).tiny))


def test_by_a_real_reader():
    """The product of what a pass over prompt and answer foretells, whatever stands beside it."""
    import torch

    reader = tiny.reader("llama")
    reader.add_soft("r2ag", torch.nn.Linear(3, reader.model.get_input_embeddings().embedding_dim))
    settings = base.get("likelihood_check").configure({"k": 3})

    def nats(question):
        services = {"retriever": Tables(RANKINGS), "reader": reader, "minilm": Encoder()}
        answer = answer_of(likelihood_check, question, settings, **services)
        return answer.trace[-1]["nats"]

    both = nats(QUESTION)
    assert all(x < 0 for x in both)
    alone = [nats(replace(QUESTION, answers=(a,)))[0] for a in QUESTION.answers]
    assert both == pytest.approx(alone, abs=1e-3)
    # A longer answer that begins alike is no likelier.
    longer = nats(replace(QUESTION, answers=("one", "one two")))
    assert longer[1] <= longer[0]
