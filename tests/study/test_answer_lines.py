"""What a record keeps of an answer beyond its text."""

from __future__ import annotations

import pytest

from rag_repro.evaluation import metrics
from rag_repro.schema import Answer, Cost
from rag_repro.study.runner import line_of
from tests.study.scripted import DATASET, condition

QUESTION = DATASET.questions[0]  # its answer is "says 0"


def line(answer, **changes):
    return line_of(QUESTION, answer, DATASET, condition("single_step", **changes))


def test_a_traced_readers_highest_entropy_is_kept():
    read = {"stage": "read", "entropy": 1.23456789}
    answer = Answer(text="says 0", prediction="says 0", trace=({"stage": "x"}, read))
    made = line(answer)
    assert metrics.of_line("entropy", made) == made["entropy"] == pytest.approx(1.2346)
    assert metrics.of_line("entropy", line(Answer(text="says 0", prediction="says 0"))) is None


def test_a_guess_is_scored_although_no_reader_was_asked():
    made = line(Answer(text="says 0", prediction="says 0"), reader=None)
    assert made["scores"]["em"] == 1.0
    wrong = line(Answer(prediction=""), reader=None)
    assert (wrong["scores"]["em"], wrong["scores"]["unparsed"]) == (0.0, 0.0)


def test_a_prediction_without_a_text_is_kept():
    made = line(Answer(prediction="says 0"), reader=None)
    assert (made["prediction"], made["scores"]["em"]) == ("says 0", 1.0)


def test_hits_alone_are_no_answer():
    assert "em" not in line(Answer(), reader=None)["scores"]
    unparsed = line(Answer(text="so", cost=Cost(reader_calls=1)))
    assert (unparsed["scores"]["em"], unparsed["scores"]["unparsed"]) == (0.0, 1.0)
