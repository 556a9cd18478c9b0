"""DR-RAG equation 1 on rankings written by hand."""

from __future__ import annotations

import pytest

from rag_repro.methods import base
from rag_repro.methods.drrag.concatenation import QDCSettings, concat, qdc, take_in_turns
from rag_repro.schema import Hit, Question
from tests.methods.scripted import Tables, answer_of, passage

QUESTION = Question(id="q", text="q?", answers=("x",), candidates=("a", "c", "e", "f"))


def ids(hits):
    return [hit.passage.id for hit in hits]


def hits(names):
    return [Hit(passage(n), 0.0, i) for i, n in enumerate(names, start=1)]


def test_each_first_stage_passage_adds_its_first_unseen_one():
    # k = 4, k1 = 2: first stage a, b. q*_a finds a, b, c: c is new. q*_b finds c, d: d is new.
    retriever = Tables(
        {
            "q?": ["a", "b", "z"],
            "q? aa": ["a", "b", "c", "d"],
            "q? bb": ["c", "d", "e", "f"],
        }
    )
    answer = answer_of(qdc, QUESTION, QDCSettings(k=4), retriever=retriever)
    assert ids(answer.hits) == ["a", "b", "c", "d"]
    assert answer.cost.retrievals == 3
    assert retriever.asked == [(("q?",), 2, None), (("q? aa", "q? bb"), 4, None)]


def test_odd_k_gives_the_first_stage_the_larger_half():
    # k = 3: k1 = 2, one place left, taken by the first ranking's first new passage.
    retriever = Tables({"q?": ["a", "b"], "q? aa": ["b", "c", "d"], "q? bb": ["e", "f", "g"]})
    answer = answer_of(qdc, QUESTION, QDCSettings(k=3), retriever=retriever)
    assert ids(answer.hits) == ["a", "b", "c"]


def test_a_small_first_stage_goes_round_again():
    # k = 4, k1 = 1: one ranking must give three passages.
    retriever = Tables({"q?": ["a"], "q? aa": ["a", "b", "c", "d"]})
    answer = answer_of(qdc, QUESTION, QDCSettings(k=4, k1=1), retriever=retriever)
    assert ids(answer.hits) == ["a", "b", "c", "d"]


def test_k1_equal_to_k_is_plain_retrieval():
    retriever = Tables(
        {"q?": ["a", "b"], "q? aa": ["c", "d"], "q? bb": ["c", "d"]},
    )
    answer = answer_of(qdc, QUESTION, QDCSettings(k=2, k1=2), retriever=retriever)
    assert ids(answer.hits) == ["a", "b"]


def test_own_candidates_limit_both_stages():
    retriever = Tables({"q?": ["z", "a", "b", "c"], "q? aa": ["b", "c", "e"], "q? cc": ["d", "f"]})
    settings = QDCSettings(k=4, own_candidates=True)
    answer = answer_of(qdc, QUESTION, settings, retriever=retriever)
    assert ids(answer.hits) == ["a", "c", "e", "f"]
    assert all(within == [QUESTION.candidates] * len(w) for w, _, within in retriever.asked)


def test_turns_skip_exhausted_rankings_and_end_when_all_are():
    chosen = take_in_turns(hits("ab"), [hits("a"), hits("bcd")], k=9)
    assert ids(chosen) == ["a", "b", "c", "d"]
    assert ids(take_in_turns([], [], k=3)) == []


def test_concat_is_question_space_passage_text():
    assert concat("Who?", passage("a")) == "Who? aa"


@pytest.mark.parametrize(("k", "k1"), [(3, 0), (3, 4)])
def test_impossible_splits_are_refused(k, k1):
    with pytest.raises(ValueError, match="between 1 and k = 3"):
        QDCSettings(k=k, k1=k1)


def test_unknown_settings_and_methods_are_refused_by_name():
    with pytest.raises(ValueError, match=r"no setting 'k_1', did you mean 'k1'\?"):
        base.get("qdc").configure({"k_1": 2})
    with pytest.raises(ValueError, match=r"no method 'qcd', did you mean 'qdc'\?"):
        base.get("qcd")


def test_every_listed_method_loads_under_its_own_name():
    for name in base.METHODS:
        assert base.get(name).name == name
