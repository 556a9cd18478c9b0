"""What a record keeps of a check of query rules, and its metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro.evaluation import metrics
from rag_repro.methods.dragin.query_check import RULES
from rag_repro.schema import Answer, Gold
from rag_repro.study import lines, queries

from .scripted import DATASET

QUESTION = replace(DATASET.questions[0], gold=(Gold("p0", "static", 1), Gold("p1", "dynamic", 2)))
GOOD = {"id": "a", "cluster": "a", "hits": [], "scores": {}}


def moment(taken, among, **found):
    return {
        "stage": "queries",
        **{"taken": taken, "among": among},
        "asked": dict.fromkeys(RULES, "secret"),
        "found": {rule: found.get(rule, []) for rule in RULES},
    }


TRACE = (
    moment(3, 4, qfs=["p1", "p9"], question=["p0", "p1"]),
    moment(1, 4, qfs=["p0"], first_few=["p1"]),
)


def line(trace=TRACE, gold=True):
    asked = QUESTION if gold else replace(QUESTION, gold=())
    told = [["static", 1, None], ["dynamic", 2, None]] if gold else []
    return {**GOOD, "gold": told, **queries.of(asked, Answer(trace=trace))}


def test_of_each_moment_what_each_rule_finds_and_no_words():
    held = line()
    first, second = held["queries"]
    assert first[:4] == [3, 4, [1], [0, 1]]
    assert second[:2] == [1, 4]
    assert (second[2], second[-1]) == ([0], [1])
    assert "secret" not in str(held)
    assert "p1" not in str(held)
    lines.line_bytes(held)


def test_a_trace_without_moments_has_no_field():
    assert queries.of(QUESTION, Answer(trace=({"stage": "decide"},))) == {}


def test_the_metrics_are_means_over_the_moments():
    got = {name: metrics.of_line(f"finds_{name}", line()) for name in RULES}
    assert got["qfs"] == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert got["question"] == pytest.approx((1 + 0) / 2)
    assert got["first_few"] == pytest.approx((0 + 1 / 2) / 2)
    assert {name for name, value in got.items() if value} == {"qfs", "question", "first_few"}
    assert metrics.of_line("words_taken", line()) == pytest.approx((3 / 4 + 1 / 4) / 2)


def test_without_a_moment_or_gold_there_is_no_recall():
    for held in (line(trace=()), line(gold=False)):
        assert metrics.of_line("finds_qfs", held) is None
    assert metrics.of_line("words_taken", line(trace=())) is None
    assert metrics.of_line("words_taken", line(gold=False)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "entry",
    [
        3,
        [1, 2],
        [-1, 2, *([],) * len(RULES)],
        [1, True, *([],) * len(RULES)],
        [1, 2, *([],) * (len(RULES) - 1), ["p0"]],
        [1, 2, *([],) * (len(RULES) - 1), [-1]],
        [1, 2, *([],) * (len(RULES) - 1), 4],
    ],
)
def test_another_field_is_refused(entry):
    with pytest.raises(lines.RecordError, match="queries"):
        lines.line_bytes({**GOOD, "queries": [entry]})
