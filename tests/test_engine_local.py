"""The engine over a real reader: batches and order change no token and no trace."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro.engine import Task, run
from rag_repro.retrieval import BM25
from rag_repro.schema import Answer, Generate, Kept, Passage, Prompt, Question, Retrieve
from rag_repro.schema.dataset import Corpus
from tests.lm import tiny

TEXTS = (
    "Xawery Zulawski directed the film Polish-Russian War.",
    "The capital of France is Paris.",
    "The capital of Italy is Rome, a city.",
    "She was born in 1960 and is a director of film.",
    "Zürich is a city; so is Łódź.",
)
CORPUS = Corpus("little", tuple(Passage(f"p{i}", "", text) for i, text in enumerate(TEXTS)))
ASKED = (
    "Who directed the film?", "Which capital has Italy?", "When was she born?", "Is Zürich a city?",
    "Paris", "Who is the director of the film of 1960, and where was she born?", "Rome or Paris?",
    "War", "Is the capital of France a city?", "Łódź", "What is it?", "Was he born in Rome?",
)  # fmt: skip
QUESTIONS = tuple(Question(f"q{i}", text, ("x",)) for i, text in enumerate(ASKED))


def until_sure(question: Question, written: dict) -> Answer:
    """Write; where a token is unlikely keep what precedes it, search anew and go on.

    The trace decides how often: one question takes one reading, another four.
    """
    hits = yield Retrieve(question.text, k=1)
    kept, pieces = (), []
    for _ in range(4):
        passages = " ".join(hit.passage.text for hit in hits)
        out = yield Generate(Prompt.from_segments(passages, question.text, *kept), 6, trace=True)
        pieces.append(out)
        unsure = np.flatnonzero(out.trace.probability[1:] < 0.08) + 1
        if len(unsure) == 0:
            break
        first = int(unsure[0])
        kept = (*kept, Kept(out, first))
        hits = yield Retrieve(f"{question.text} {out.text[: out.offsets[first]]}", k=2)
    written[question.id] = pieces
    return Answer(text="".join(p.text for p in pieces), prediction=pieces[-1].text, hits=hits)


def answered(batch_size: int, order, tie_margin: float = 1e-4) -> SimpleNamespace:
    """All questions in this order -> answers and generations by question, ties met."""
    reader = tiny.reader("llama", batch_size=batch_size, tie_margin=tie_margin)
    written: dict[str, list] = {}
    tasks = [Task(QUESTIONS[i], until_sure, written) for i in order]
    services = {"reader": reader, "retriever": BM25(CORPUS)}
    answers = {t.question.id: a for t, a in run(tasks, services, batch_size=batch_size)}
    return SimpleNamespace(answers=answers, written=written, ties=reader.ties)


@pytest.fixture(scope="module")
def alone():
    return answered(1, range(len(QUESTIONS)))


def test_the_method_is_dynamic(alone):
    """Otherwise the comparison below would be of equal steps."""
    assert all(answer.error is None for answer in alone.answers.values())
    steps = {len(pieces) for pieces in alone.written.values()}
    assert len(steps) >= 3
    assert alone.ties == 0


@pytest.mark.parametrize("batch_size", [1, 5, 16])
def test_batches_and_order_change_no_token_and_no_trace(alone, batch_size):
    order = np.random.default_rng(batch_size).permutation(len(QUESTIONS))
    made = answered(batch_size, order)
    assert made.ties == 0
    assert made.answers.keys() == alone.answers.keys()
    for name, answer in made.answers.items():
        expected = alone.answers[name]
        assert (answer.text, answer.prediction) == (expected.text, expected.prediction)
        assert (answer.hits, answer.calls) == (expected.hits, expected.calls)
        for count in ("reader_calls", "retrievals", "prompt_tokens", "new_tokens"):
            assert getattr(answer.cost, count) == getattr(expected.cost, count)
        for left, right in zip(made.written[name], alone.written[name], strict=True):
            assert left.tokens == right.tokens
            assert (left.offsets, left.finish) == (right.offsets, right.finish)
            for values in ("probability", "entropy"):
                np.testing.assert_allclose(
                    getattr(left.trace, values), getattr(right.trace, values), rtol=0, atol=1e-5
                )
            assert left.trace.attention.keys() == right.trace.attention.keys() == {-1}
            np.testing.assert_allclose(
                left.trace.attention[-1], right.trace.attention[-1], rtol=0, atol=1e-5
            )


def test_close_decisions_are_reported_alike_at_every_batch_size():
    """A margin of half a logit, which some decisions of a random reader are within."""
    counts = {answered(n, range(len(QUESTIONS)), tie_margin=0.5).ties for n in (1, 5)}
    assert len(counts) == 1
    assert counts.pop() > 0
