"""What an answer took, on lines written by hand."""

from __future__ import annotations

import pytest

from rag_repro.evaluation import metrics
from rag_repro.evaluation.cost_metrics import TABLE

# Two searches, the first of one query and the second of two, each with its queries
# encoded first; four pairs judged in two calls; one reading.
TURN = {
    "seconds": 2.0,
    "clock": [
        ["retriever.encoder", 0.02, 1],
        ["retriever", 0.05, 1],
        ["retriever.encoder", 0.1, 2],
        ["retriever", 0.15, 2],
        ["scorer", 0.09, 3],
        ["scorer", 0.03, 1],
        ["reader", 1.6, 1],
    ],
}
LINE = {
    "hits": [],
    "scores": {},
    "cost": {
        **{"reader_calls": 1, "prompt_tokens": 350, "prefilled_tokens": 300},
        **{"new_tokens": 20, "retrievals": 3, "reads": 4},
    },
    "turns": [TURN],
}
NAMES = [metric.name for metric in TABLE]


def told(line, *names):
    return {name: metrics.of_line(name, line) for name in names or NAMES}


def test_every_cost_by_hand():
    assert told(LINE) == pytest.approx(
        {
            "reader_calls": 1,
            "passes": 5,
            "prompt_tokens": 350,
            "prefilled_tokens": 300,
            "new_tokens": 20,
            "retrievals": 3,
            "seconds": 2.0,
            "seconds_reader": 1.6,
            "seconds_retriever": 0.2,
            "seconds_lookup": 0.08,
            "seconds_encoder": 0.12,
            "seconds_scorer": 0.12,
            "seconds_memory": 0.0,
            "seconds_rest": 2.0 - 1.6 - 0.2 - 0.12,
            "seconds_first": 0.05,
            "seconds_later": 0.15 + 0.12,
            "ms": 2000,
            "ms_scored": 30.0,
        }
    )


def test_services_and_the_rest_are_the_whole():
    parts = told(LINE, "seconds_reader", "seconds_retriever", "seconds_scorer", "seconds_rest")
    assert sum(parts.values()) == pytest.approx(LINE["turns"][0]["seconds"])


def test_several_turns_are_averaged_and_pairs_are_pooled():
    slow = {"seconds": 6.0, "clock": [["retriever", 1.0, 1], ["scorer", 0.6, 2]]}
    got = told(LINE | {"turns": [TURN, slow]}, "seconds", "seconds_first", "ms_scored")
    assert got == pytest.approx(
        {"seconds": 4.0, "seconds_first": 0.525, "ms_scored": 1000 * 0.72 / 6}
    )


def test_a_question_that_failed_is_no_fast_answer():
    failed = LINE | {"error": "too long", "turns": [{"seconds": 0.001, "clock": []}]}
    assert told(failed, "seconds", "seconds_reader") == {"seconds": None, "seconds_reader": None}


def test_an_answer_that_was_not_timed_has_counts_alone():
    plain = {key: value for key, value in LINE.items() if key != "turns"}
    got = told(plain)
    assert {name for name, value in got.items() if value is not None} == {
        "reader_calls",
        "passes",
        "prompt_tokens",
        "new_tokens",
        "retrievals",
    }
    assert told({"hits": [], "scores": {}}) == dict.fromkeys(NAMES)


def test_a_count_that_the_record_leaves_out_is_zero():
    assert told(LINE | {"cost": {}}, "reader_calls", "retrievals") == {
        "reader_calls": 0,
        "retrievals": 0,
    }


def test_without_a_search_or_a_classifier_their_own_measures_are_absent_and_sums_zero():
    alone = LINE | {"turns": [{"seconds": 1.0, "clock": [["reader", 0.9, 1]]}]}
    got = told(alone)
    assert [got[n] for n in ("seconds_first", "seconds_later", "ms_scored")] == [None] * 3
    assert [got[n] for n in ("seconds_retriever", "seconds_scorer", "seconds_encoder")] == [0] * 3


def test_a_method_that_encodes_by_itself_is_counted_as_a_service_of_its_own():
    own = LINE | {"turns": [{"seconds": 1.0, "clock": [["encoder", 0.25, 4]]}]}
    assert told(own, "seconds_encoder", "seconds_rest") == {
        "seconds_encoder": 0.25,
        "seconds_rest": 0.75,
    }
