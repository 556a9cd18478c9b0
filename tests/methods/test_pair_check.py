"""The check of the pair classifier: which pairs it asks, and what its answer tells."""

from __future__ import annotations

import pytest

from rag_repro.methods import base
from rag_repro.methods.drrag.probes import pair_check
from rag_repro.schema import Gold, Question
from tests.methods.scripted import Tables, answer_of, ids

QUESTION = Question(
    id="id-q",
    text="q?",
    answers=("x",),
    gold=(Gold("a"), Gold("b"), Gold("c"), Gold("b")),
    candidates=("a", "b", "c", "d", "e", "f", "g"),
)
RANKINGS = {"q?": ["a", "d", "e", "b", "f", "g", "c", "h", "z"]}
CHANCE = {"id-q": ["b", "d", "v", "w", "x", "y", "z", "u", "t", "s"]}
GOLD = {"a", "b", "c"}


class Judge:
    """A pair is positive where its passages' letters are both in `accepted`."""

    def __init__(self, accepted=GOLD):
        self.accepted = accepted
        self.items = []

    def score(self, items):
        import numpy as np

        self.items += items
        said = [0.9 if {a[0], b[0]} <= set(self.accepted) else 0.2 for _, a, b in items]
        return np.array(said, dtype=np.float32)


def asked(question=QUESTION, judge=None, **settings):
    judge = judge or Judge()
    configured = base.get("pair_check").configure(settings)
    searches, chance = Tables(RANKINGS), Tables(CHANCE)
    got = answer_of(
        pair_check,
        question,
        configured,
        retriever=searches,
        random=chance,
        **{configured.classifier: judge},
    )
    return got, judge, searches


def kinds(got):
    return [len(set(event["pair"]) & GOLD) for event in got.trace]


def test_as_many_hard_and_random_negatives_as_positives():
    got, judge, _ = asked(k=4)
    assert kinds(got) == [2, 2, 2, 1, 1, 1, 0, 0, 0]
    pairs = [frozenset(event["pair"]) for event in got.trace]
    assert len(set(pairs)) == 9
    assert set(pairs[:3]) == {frozenset("ab"), frozenset("ac"), frozenset("bc")}
    # Hard: a gold passage beside one of the four best others. Random: one of these, and
    # one by chance that is neither gold nor among them.
    assert all(len(pair & set("defg")) == 1 for pair in pairs[3:])
    assert all(len(pair & set("vwxyzuts")) == 1 for pair in pairs[6:])
    assert got.cost.scored == len(judge.items) == 9
    # The texts alone, without titles.
    assert all(q == "q?" and a == a[0] * 2 and b == b[0] * 2 for q, a, b in judge.items)


def test_pairs_are_asked_in_both_orders_and_the_same_at_every_run():
    pairs = [event["pair"] for event in asked(k=4)[0].trace]
    assert pairs == [event["pair"] for event in asked(k=4)[0].trace]
    assert {a < b for a, b in pairs} == {True, False}


def test_accepted_passages_are_the_hits():
    got, *_ = asked(k=4, judge=Judge(accepted={"a", "b"}))
    assert set(ids(got.hits)) == {"a", "b"}
    assert [event["positive"] for event in got.trace].count(True) == 1
    assert asked(k=4, threshold=0.95)[0].hits == ()


def test_close_passages_are_the_questions_own_where_that_is_wanted():
    got, _, searches = asked(k=9, own_candidates=True)
    close = {name for event in got.trace[3:6] for name in event["pair"]} - GOLD
    assert close <= set("defg")
    assert searches.asked[1][2] == [QUESTION.candidates]
    wide = {name for e in asked(k=9)[0].trace[3:] for name in e["pair"]}
    assert wide - set("abcdefg")


def test_a_question_without_a_positive_pair_is_not_asked():
    single = Question("s", "q?", ("x",), gold=(Gold("a"), Gold("a")))
    got, judge, searches = asked(question=single)
    assert (got.trace, got.hits, judge.items, searches.asked) == ((), (), [], [])


def test_what_it_needs_and_what_makes_no_other_condition():
    settings = base.get("pair_check").configure({"classifier": "c@256", "prompt": "short"})
    assert settings.needs == {"c@256": "scorer", "random": "retriever"}
    assert settings == base.get("pair_check").configure({"classifier": "c@256"})
    with pytest.raises(ValueError, match="threshold is"):
        base.get("pair_check").configure({"threshold": 1.5})
