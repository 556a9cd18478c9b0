"""What a record keeps of an adaptive method's trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro.evaluation import metrics
from rag_repro.methods.dragin.draft_checks import VARIANTS
from rag_repro.methods.dragin.timing_check import SIGNALS
from rag_repro.schema import Answer
from rag_repro.study import line_fields, lines
from tests.study.scripted import DATASET

QUESTION = DATASET.questions[0]  # needs p0
GOOD = {"id": "a", "cluster": "a", "hits": [], "scores": {}}


def of(*trace):
    return line_fields.of_decisions(QUESTION, Answer(trace=trace))


def test_a_decision_is_what_it_went_by_and_whether_it_fetched():
    popular = {"stage": "decide", "by": "testbed", "value": 60.0, "threshold": 60.0}
    assert of({**popular, "retrieve": False}) == {"decided": [60.0, False]}
    token = {"stage": "decide", "by": "adaptive", "probability": 0.123456, "retrieve": True}
    assert of(token, {"stage": "select"}) == {"decided": [0.1235, True]}
    assert of({**token, "probability": None}) == {"decided": [None, True]}
    for letter, fetched in zip("ABC", (False, True, True), strict=True):
        event = {"stage": "classify", "by": "classifier", "class": letter}
        assert of(event, {"stage": "think"}) == {"decided": [letter, fetched]}
    assert of({"stage": "retrieve"}, {"no": "stage"}) == {}


def test_each_passage_is_kept_with_its_relevance_and_whether_it_is_gold():
    seen = [
        {"stage": "segment", "passage": name, "relevant": p, "score": 2.0, "text": "secret"}
        for name, p in (("p1", 0.25), ("p0", 0.987654))
    ]
    assert of(*seen) == {"critique": [["p1", 0.25, 0], ["p0", 0.9877, 1]]}
    nameless = line_fields.of_decisions(replace(QUESTION, gold=()), Answer(trace=tuple(seen)))
    assert [gold for *_, gold in nameless["critique"]] == [None, None]


def test_variants_are_kept_without_the_words_of_their_queries():
    trace = [
        {"stage": "variant", "name": n, "triggered": n != "D9", "keep": i, "query": q}
        for i, (n, q) in enumerate(zip(VARIANTS, ["who?", *["wrote"] * 99], strict=False))
    ]
    trace[9]["query"] = ""
    kept = of(*trace)["variants"]
    assert kept[0][:2] == [1, 0]
    assert len(kept[0][2]) == 8
    assert kept[1][2] == kept[2][2] != kept[0][2]
    assert kept[9] == [0, 9, ""]
    assert not lines._fault({**GOOD, "variants": kept})
    assert "who" not in repr(kept)


@pytest.mark.parametrize(
    "bad",
    [
        {"decided": [0.5]},
        {"decided": [0.5, 1]},
        {"decided": [[0.5], True]},
        {"decided": [float("inf"), True]},
        {"decided": [True, True]},
        {"decided": "A"},
        {"critique": [["p1", 0.5]]},
        {"critique": [[1, 0.5, 0]]},
        {"critique": [["p1", 1.5, 0]]},
        {"critique": [["p1", 0.5, 2]]},
        {"critique": [["p1", 0.5, True]]},
        {"variants": [[1, 3, "ab"]]},
        {"variants": [[1, 3, "ab"]] * (len(VARIANTS) - 1) + [[2, 3, "ab"]]},
        {"variants": [[1, 3, "ab"]] * (len(VARIANTS) - 1) + [[1, -3, "ab"]]},
        {"variants": [[1, 3, "ab"]] * (len(VARIANTS) - 1) + [[1, 3, None]]},
        {"timing": [[0, *[0.5] * 7]]},
        {"timing": [[0, *[0.5] * 9]]},
        {"timing": [[True, *[0.5] * 8]]},
        {"timing": [[2, *[0.5] * 8]]},
        {"timing": [[0, *[0.5] * 7, None]]},
        {"timing": [0.5]},
        {"timing": {}},
    ],
)
def test_other_forms_of_these_fields_are_no_record(bad):
    assert lines._fault({**GOOD, **bad})


def test_the_right_forms_are():
    for decided in (["B", True], [None, True], [0.2, False], [17, False]):
        assert not lines._fault({**GOOD, "decided": decided})
    critique = [["p1", 1, 1], ["p2", 0.5, 0], ["p3", 0.0, None]]
    assert not lines._fault({**GOOD, "critique": critique})


def test_each_hop_is_kept_with_its_signals_in_their_order():
    signals = dict(zip(reversed(SIGNALS), range(8), strict=True))
    hop = {"stage": "hop", "value": "secret", "said": "secret", "wrong": True, "signals": signals}
    made = of(hop, {**hop, "wrong": False})
    assert made == {"timing": [[1, 7, 6, 5, 4, 3, 2, 1, 0], [0, 7, 6, 5, 4, 3, 2, 1, 0]]}
    assert not lines._fault({**GOOD, **made})


def test_searched_is_the_share_of_questions_that_fetched():
    for decided, wanted in ((["A", False], 0.0), ([3.0, True], 1.0)):
        assert metrics.of_line("searched", {**GOOD, "decided": decided}) == wanted
    assert metrics.of_line("searched", GOOD) is None
