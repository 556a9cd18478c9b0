"""What compressors leave, on lines written by hand."""

from __future__ import annotations

import pytest

from rag_repro.evaluation import metrics

LINE = {
    "hits": ["a", "b", "c"],
    "gold": [["static", 1, 1], ["dynamic", 2, 2], ["dynamic", 3, None]],
    "scores": {},
    "compressed": {
        "before": 400,
        "after": 100,
        "gold": [[100, 80], [200, 20], None],
        "answer": [True, False],
    },
}


def told(name, **changes):
    line = {**LINE, "compressed": {**LINE["compressed"], **changes}}
    return metrics.of_line(name, line)


def test_shares_of_what_was_given():
    assert told("compression") == 0.25
    assert told("compression", after=500) == 1.25  # CRAG adds to what it doubts
    assert told("gold_kept") == pytest.approx((0.8 + 0.1) / 2)
    assert told("gold_kept_static") == 0.8
    assert told("gold_kept_dynamic") == 0.1


def test_the_answer_can_only_be_kept_where_it_was_given():
    assert told("answer_kept") == 0
    assert told("answer_kept", answer=[True, True]) == 1
    assert told("answer_kept", answer=[False, False]) is None
    assert told("answer_kept", answer=[False, True]) is None


def test_absent_where_nobody_knows():
    closed = {k: v for k, v in LINE["compressed"].items() if k != "answer"}
    assert metrics.of_line("answer_kept", {**LINE, "compressed": closed}) is None
    summary = [None, None, None]
    for name in ("gold_kept", "gold_kept_static", "gold_kept_dynamic"):
        assert told(name, gold=summary) is None
    assert told("gold_kept_dynamic", gold=[[10, 5], None, None]) is None
    assert told("gold_kept", gold=[[0, 0], [10, 5], None]) == 0.5
    assert told("compression", before=0, after=0) is None
    plain = {k: v for k, v in LINE.items() if k != "compressed"}
    for name in ("compression", "answer_kept", "gold_kept"):
        assert metrics.of_line(name, plain) is None


def test_nothing_left_and_an_answer_from_nowhere():
    assert [told("empty_context", after=n) for n in (0, 1)] == [1.0, 0.0]
    pairs = ([False, True], [False, False], [True, True], [True, False], None)
    assert [told("answer_added", answer=pair) for pair in pairs] == [1.0, 0.0, None, None, None]


def test_crags_decisions():
    decisions = ("correct", "ambiguous", "incorrect", None)
    assert [told("doubted", decision=d) for d in decisions] == [0.0, 1.0, 1.0, None]
    assert [told("rejected", decision=d) for d in decisions] == [0.0, 0.0, 1.0, None]
    other = {key: value for key, value in LINE.items() if key != "compressed"}
    names = ("answer_added", "empty_context", "doubted", "rejected")
    assert {metrics.of_line(name, other) for name in names} == {None}
