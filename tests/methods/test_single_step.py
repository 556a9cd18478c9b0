"""Single-step reading, its frames, and the extraction of answers."""

from __future__ import annotations

import pytest

from rag_repro.methods import base
from rag_repro.methods.reading import PROMPTS, extract
from rag_repro.schema import Gold, Question
from tests.methods.scripted import Says, Tables, answer_of

QUESTION = Question(
    id="q", text="q {x}?", answers=("x",), gold=(Gold("c"), Gold("b")), candidates=("b",)
)
RANKING = Tables({"q {x}?": ["a", "b", "c", "d"]})


def run_method(name, reader, **settings):
    spec = base.get(name)
    return answer_of(spec.run, QUESTION, spec.configure(settings), retriever=RANKING, reader=reader)


def test_single_step_reads_the_k_best_in_order():
    reader = Says("a film")
    answer = run_method("single_step", reader, k=2, prompt="short")
    assert answer.prediction == "a film"
    [prompt] = reader.prompts
    assert prompt.endswith("Passage: aa\nPassage: bb\nQuestion: q {x}?\nAnswer:")
    assert answer.calls == ("Retrieve", "Generate")


def test_gold_passages_reads_exactly_the_gold_ones():
    answer = run_method("gold_passages", Says("x"), prompt="short")
    assert [h.passage.id for h in answer.hits] == ["b", "c"]


def test_no_retrieval_shows_no_passage():
    reader = Says("x")
    answer = run_method("no_retrieval", reader, prompt="drrag")
    assert answer.calls == ("Generate",)
    assert "Document 1" not in reader.prompts[0]


def test_without_prompt_no_reader_is_called():
    answer = run_method("single_step", Says("x"), k=3)
    assert answer.calls == ("Retrieve",)
    assert (answer.text, answer.prediction, len(answer.hits)) == ("", None, 3)


def test_own_candidates_leave_only_the_questions_own():
    answer = run_method("single_step", Says("x"), k=3, own_candidates=True)
    assert [h.passage.id for h in answer.hits] == ["b"]


@pytest.mark.parametrize(
    ("text", "prediction"),
    [
        ("First this, then that.\nAnswer: Old Perrin", "Old Perrin"),
        ("Answer: <Old Perrin>; as the passage says", "Old Perrin"),
        ("Answer: <Old Perrin>;\nmore", "Old Perrin"),
        ("Answer: wrong\nAnswer: right.", "right"),
        ("the answer is Old Perrin", None),
        ("Answer:   ", None),
        ("It is Paris.\nAnswer: Paris\n\nAnswer:", "Paris"),
        ("Answer: Paris\nAnswer: .\nAnswer: <>", "<>"),
    ],
)
def test_extraction_after_the_marker(text, prediction):
    assert extract(text, PROMPTS["drrag"]) == prediction


def test_extraction_without_marker_takes_the_whole_text():
    assert extract("  12 May 1907 \n", PROMPTS["short"]) == "12 May 1907"
    assert extract("  ", PROMPTS["short"]) is None
