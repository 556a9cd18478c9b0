"""Exemplars: ours in the paper's form, and the paper's where the data folder holds them."""

from __future__ import annotations

import json

import pytest

from rag_repro.data import ENVIRONMENT, synthworld
from rag_repro.data.synthworld.invented_names import WORLDS
from rag_repro.methods.reading import EXEMPLARS, PROMPTS, extract, with_exemplars
from rag_repro.schema import Hit, Passage, Prefix, Question

QUESTION = Question("q", "Who wrote it?", ("Ann",))


def test_without_a_name_the_template_stays_as_it_is():
    assert with_exemplars(PROMPTS["dragin"], None) is PROMPTS["dragin"]


def test_ours_are_shared_text_before_the_question_and_answer_in_the_asked_form():
    template = with_exemplars(PROMPTS["dragin"], "own")
    prefix, body = template.fill(
        QUESTION, [Hit(Passage("p", "T", "Ann wrote it."), 1.0, 1)]
    ).segments
    assert isinstance(prefix, Prefix)
    assert body == (
        "Context:\n[1] Ann wrote it.\nAnswer in the same format as before.\n"
        "Question: Who wrote it?\nAnswer:"
    )
    answers = [part.split("\n\n")[0] for part in prefix.text.split("Answer: ")[1:]]
    assert len(answers) == prefix.text.count("Question: ") == 4
    assert all(extract(f" {answer}", template) for answer in answers)


def test_none_of_our_names_occurs_in_a_world():
    text = with_exemplars(PROMPTS["dragin"], "own").exemplars
    for name in WORLDS:
        assert not [e.title for e in synthworld.world(name).entities if e.title in text]


def test_the_papers_are_read_from_the_data_folder(tmp_path, monkeypatch):
    rows = [{"dataset": d, "question": f"{d}?", "answer": "So the answer is x."} for d in "ab"]
    (tmp_path / EXEMPLARS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    template = with_exemplars(PROMPTS["dragin_steps"], "b")
    assert template.exemplars == "Question: b?\nAnswer: So the answer is x.\n\n"
    with pytest.raises(ValueError, match="there are: a, b, own"):
        with_exemplars(PROMPTS["dragin"], "c")
    (tmp_path / EXEMPLARS).write_text('{"dataset": "a"}\n')
    monkeypatch.setenv(ENVIRONMENT, f"{tmp_path}/.")
    with pytest.raises(ValueError, match="not a file of exemplars"):
        with_exemplars(PROMPTS["dragin"], "a")
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="no such file; take exemplars: own"):
        with_exemplars(PROMPTS["dragin"], "a")
    monkeypatch.delenv(ENVIRONMENT)
    with pytest.raises(ValueError, match=f"set {ENVIRONMENT}"):
        with_exemplars(PROMPTS["dragin"], "a")


def test_the_real_file_has_those_that_the_paper_prints(data_dir, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, str(data_dir))
    counts = {"2wikimultihopqa": 6, "hotpotqa": 8, "strategyqa": 6, "iirc": 8}
    for name, n in counts.items():
        assert with_exemplars(PROMPTS["dragin"], name).exemplars.count("Question: ") == n
