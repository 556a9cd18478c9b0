"""Passages handed to the reader: what is in them, and that conditions differ by what they say."""

from __future__ import annotations

import pytest

from rag_repro.methods import base
from rag_repro.schema import Gold, Question
from tests.lm.scripted_reader import Said, ScriptedReader
from tests.methods.scripted import Says, Tables, answer_of, ids

QUESTION = Question(
    id="q7",
    text="q?",
    answers=("x",),
    gold=(Gold("c"), Gold("b"), Gold("f")),
    candidates=("b", "e", "c", "d"),
)
NEAR = ["a", "b", "c", "d", "e", "f", "g", "h"]
RANKING = Tables({"q?": NEAR})
CHANCE = Tables({"q7": ["f", "h", "c", "g", "b", "e", "d", "a"]})


def given(reader=None, question=QUESTION, **settings):
    spec = base.get("given_passages")
    services = {"retriever": RANKING, "random": CHANCE, "reader": reader}
    return answer_of(spec.run, question, spec.configure(settings), **services)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"others": 0}, "bcf"),
        ({"others": 2}, "bcfad"),  # the best two for the question that are not gold
        ({"others": 2, "kind": "random"}, "bcfhg"),
        ({"k": 4}, "bcfa"),
        ({"k": 2}, "bcf"),  # gold is never cut
        ({"gold": "none", "others": 2}, "ad"),
        ({"gold": "none", "k": 4, "kind": "random"}, "hged"),
        ({"gold": "none", "k": 3, "own_candidates": True}, "ed"),
    ],
)
def test_what_is_given(settings, wanted):
    assert sorted(ids(given(**settings).hits)) == sorted(wanted)


def test_of_some_gold_one_is_missing_and_the_place_is_filled():
    found = ids(given(gold="some", k=5).hits)
    assert len(set("bcf") & set(found)) == 2
    assert sorted(set(found) - set("bcf")) == ["a", "d", "e"]
    questions = [Question(f"q{i}", "q?", ("x",), gold=QUESTION.gold) for i in range(30)]
    left = [set(ids(given(question=q, gold="some", others=0).hits)) for q in questions]
    assert {min(set("bcf") - some) for some in left} == {"b", "c", "f"}
    single = Question("s", "q?", ("x",), gold=(Gold("c"),))
    assert given(question=single, gold="some", others=0).hits == ()


def test_the_order_is_drawn_by_the_question_and_the_same_each_time():
    first = ids(given(others=5).hits)
    assert first == ids(given(others=5).hits)
    questions = [Question(f"q{i}", "q?", ("x",), gold=QUESTION.gold) for i in range(8)]
    orders = {tuple(ids(given(question=q, others=5).hits)) for q in questions}
    assert len(orders) == 8


def test_more_others_are_those_of_before_and_further_ones():
    fewer, more = (set(ids(given(others=n).hits)) for n in (1, 4))
    assert fewer < more


def test_without_any_passage_the_question_is_asked_bare_and_nothing_retrieved():
    reader = Says("so. Answer: x")
    answer = given(reader, gold="none", others=0, prompt="drrag")
    assert (answer.calls, answer.prediction) == (("Generate",), "x")
    assert "Document 1" not in reader.prompts[0]


def test_a_traced_reader_tells_its_highest_entropy():
    said = Said("so. Answer: x", entropy=[0.25, 1.5, 0.5])
    answer = given(ScriptedReader([said]), others=0, prompt="drrag", trace=True)
    assert answer.trace == ({"stage": "read", "entropy": 1.5},)
    assert given(ScriptedReader([said]), others=0, prompt="drrag").trace == ()
    silent = ScriptedReader([""])
    assert given(silent, others=0, prompt="drrag", trace=True).trace == ()


def test_a_question_without_gold_is_refused_by_name():
    with pytest.raises(AssertionError, match="'q9' names no gold passages"):
        given(question=Question("q9", "q?", ("x",)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gold": "al"}, "gold is 'al', did you mean 'all'"),
        ({"kind": "far"}, "kind is 'far'"),
        ({"others": -1}, "others is -1; it must be at least 0"),
        ({"others": 2, "k": 4}, "k 4 would do nothing beside others 2"),
        ({"trace": True}, "trace would do nothing without a prompt"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        base.get("given_passages").configure(settings)


def test_where_no_others_are_given_their_kind_makes_no_other_condition():
    configure = base.get("given_passages").configure
    assert configure({"others": 0, "kind": "random"}) == configure({"others": 0})
    assert configure({"others": 1, "kind": "random"}) != configure({"others": 1})


@pytest.mark.parametrize(
    ("text", "settings", "wanted"),
    [
        ("Is Oslo in Norway?", {}, "yes"),
        ("Is Oslo in Norway?", {"closed": "no"}, "no"),
        ("Who is older, Ann Lee or Bo Ray?", {"closed": "no"}, "Ann Lee"),
        ("Who wrote it?", {}, ""),
        ("Who wrote it?", {"rule": "majority", "closed": "no"}, "no"),
    ],
)
def test_guesses(text, settings, wanted):
    spec = base.get("guess")
    answer = answer_of(spec.run, Question("q", text, ("x",)), spec.configure(settings))
    assert (answer.prediction, answer.calls, answer.hits) == (wanted, (), ())


def test_guesses_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="rule is 'pick', did you mean 'pick_one'"):
        base.get("guess").configure({"rule": "pick"})
    with pytest.raises(ValueError, match="closed is empty"):
        base.get("guess").configure({"closed": " "})
