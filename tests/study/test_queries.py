"""What a record keeps of a check of query rules, and its metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro.evaluation import metrics
from rag_repro.evaluation.dynamic_metrics import LATER, NEXT
from rag_repro.methods.dragin.draft_checks import RULES
from rag_repro.schema import Answer, Gold
from rag_repro.study import line_fields, lines
from tests.study.scripted import DATASET

QUESTION = replace(DATASET.questions[0], gold=(Gold("p0", "static", 1), Gold("p1", "dynamic", 2)))
GOOD = {"id": "a", "cluster": "a", "hits": [], "scores": {}}


def moment(taken, among, sentence, **found):
    return {
        "stage": "queries",
        **{"taken": taken, "among": among, "sentence": sentence},
        "asked": dict.fromkeys(RULES, "secret"),
        "found": {rule: found.get(rule, []) for rule in RULES},
    }


TRACE = (
    moment(3, 4, 1, qfs=["p1", "p9"], question=["p0", "p1"]),
    moment(1, 4, 2, qfs=["p0"], first_few=["p1"]),
)


def line(trace=TRACE, gold=True):
    asked = QUESTION if gold else replace(QUESTION, gold=())
    told = [["static", 1, None], ["dynamic", 2, None]] if gold else []
    return {**GOOD, "gold": told, **line_fields.of_queries(asked, Answer(trace=trace))}


def test_of_each_moment_what_each_rule_finds_and_no_words():
    held = line()
    first, second = held["queries"]
    assert first[:5] == [3, 4, 1, [1], [0, 1]]
    assert second[:3] == [1, 4, 2]
    assert (second[3], second[3 + RULES.index("first_few")]) == ([0], [1])
    assert "secret" not in str(held)
    assert "p1" not in str(held)
    lines.line_bytes(held)


def test_a_trace_without_moments_has_no_field():
    assert line_fields.of_queries(QUESTION, Answer(trace=({"stage": "decide"},))) == {}


def test_the_metrics_are_means_over_the_moments():
    got = {name: metrics.of_line(f"finds_{name}", line()) for name in RULES}
    assert got["qfs"] == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert got["question"] == pytest.approx((1 + 0) / 2)
    assert got["first_few"] == pytest.approx((0 + 1 / 2) / 2)
    assert {name for name, value in got.items() if value} == {"qfs", "question", "first_few"}
    assert metrics.of_line("words_taken", line()) == pytest.approx((3 / 4 + 1 / 4) / 2)


def test_what_the_sentence_in_hand_needs_is_the_passage_of_its_own_step():
    """Sentence 2 needs p1; p0 is past. In sentence 1 there is no last one: it is left out."""
    held = (moment(1, 2, 1, question=["p0"]), moment(1, 2, 2, qfs=["p1"], last_sentence=["p0"]))
    got = {name: metrics.of_line(f"finds_next_{name}", line(held)) for name in NEXT}
    assert got == {**dict.fromkeys(NEXT, 0.0), "qfs": 1.0}
    assert metrics.of_line("finds_next_question", line(held[:1])) is None
    # Behind the last step, and where nobody knows the steps, nothing is needed.
    late = (moment(3, 4, 3, qfs=["p0", "p1"]),)
    assert metrics.of_line("finds_next_qfs", line(late)) is None
    assert metrics.of_line("finds_next_qfs", line((*late, moment(1, 2, 2, qfs=["p1"])))) == 1.0
    unknown = {**line(), "gold": [["static", None, None], ["dynamic", 2, None]]}
    assert metrics.of_line("finds_next_question", unknown) is None
    assert metrics.of_line("finds_next_qfs", line(gold=False)) is None


def test_what_is_needed_is_all_gold_where_gold_has_no_order():
    held = (moment(1, 2, 1, qfs=["p0", "p1"]), moment(1, 2, 2, qfs=["p0"], last_sentence=["p1"]))
    needed = {n: metrics.of_line(f"finds_needed_{n}", line(held)) for n in ("qfs", "last_sentence")}
    assert needed == {"qfs": 0.0, "last_sentence": 1.0}  # p1 is the second step's
    plain = {**line(held), "gold": [["p0", None, None], ["p1", None, None]]}
    of_all = {n: metrics.of_line(f"finds_needed_{n}", plain) for n in ("qfs", "last_sentence")}
    assert of_all == {"qfs": 0.5, "last_sentence": 0.5}
    partly = {**line(held), "gold": [["p0", 1, None], ["p1", 1, None]]}  # two of one step
    assert metrics.of_line("finds_needed_qfs", partly) is None


def test_behind_the_first_sentence_the_last_one_is_no_question():
    got = {name: metrics.of_line(f"finds_later_{name}", line()) for name in LATER}
    assert got == {**dict.fromkeys(LATER, 0.0), "qfs": 0.5}
    assert metrics.of_line("finds_later_qfs", line(TRACE[:1])) is None


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
        [-1, 2, 1, *([],) * len(RULES)],
        [1, True, 1, *([],) * len(RULES)],
        [1, 2, 1, *([],) * (len(RULES) - 1), ["p0"]],
        [1, 2, 1, *([],) * (len(RULES) - 1), [-1]],
        [1, 2, 1, *([],) * (len(RULES) - 1), 4],
        [1, 2, "1", *([],) * len(RULES)],
    ],
)
def test_another_field_is_refused(entry):
    with pytest.raises(lines.RecordError, match="queries"):
        lines.line_bytes({**GOOD, "queries": [entry]})
