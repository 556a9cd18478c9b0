"""ERM4's metrics of a line: by rank, of the filter, of the memory; and none for others' lines."""

from __future__ import annotations

import pytest

from rag_repro.evaluation import metrics
from rag_repro.evaluation.knowledge_metrics import DEPTHS, TABLE

LINE = {
    "id": "q",
    "hits": [f"p{i}" for i in range(1, 13)],
    # Two readings: one is answered at ranks 2 and 7, the other at 7 and 12.
    "held": [[2, 7], [7, 12]],
    "counts": {
        **{"queries": 3, "outputs": 2, "unfollowed": 1, "searches": 2, "fetched": 20},
        **{"memory": 4, "judged": 4, "irrelevant": 3, "shown": 1},
    },
    "filter": [
        ["a", "entailment", 0.9, "static", 0],
        ["b", "neutral", 0.2, "dynamic", 1],
        ["c", "entailment", 0.6, "other", 0],
        ["d", "contradiction", 0.1, "answer", 1],
    ],
    "trigger": [[5, 0, 0, 4, 0, 1], [1, 1, 8, 3, 2, 0]],
}


def of(name, **changed):
    return metrics.of_line(name, {**LINE, **changed})


@pytest.mark.parametrize(
    ("n", "recall", "precision"),
    [(1, 0, 0), (3, 0.5, 1 / 3), (5, 0.5, 1 / 5), (10, 1, 2 / 10), (30, 1, 3 / 12)],
)
def test_answers_by_rank(n, recall, precision):
    assert of(f"answer_recall_{n}") == pytest.approx(recall)
    # A passage with two answers counts once, and only passages that are there are counted.
    assert of(f"snippet_precision_{n}") == pytest.approx(precision)


def test_gains_are_steps_of_five_that_add_up():
    gains = [of(f"answer_gain_{last}") for last in range(5, 31, 5)]
    assert gains == [0.5, 0.5, 0, 0, 0, 0]
    assert sum(gains) == of("answer_recall_30")
    assert {
        int(n.rsplit("_", 1)[1]) for n in metrics.METRICS if n.startswith("answer_recall_")
    } == (set(DEPTHS))


def test_without_any_passage_there_is_recall_and_no_precision():
    empty = {"hits": [], "held": [[], []]}
    assert of("answer_recall_10", **empty) == 0
    assert of("snippet_precision_10", **empty) is None


def test_counts_and_shares_of_them():
    assert [of(n) for n in ("queries", "searches", "fetched", "memory_items")] == [3, 2, 20, 4]
    assert (of("irrelevant"), of("shown"), of("backed_off")) == (3, 1, 0)
    assert (of("unfollowed"), of("irrelevant_share"), of("unlabelled")) == (0.5, 0.75, 0)
    nothing = {"counts": {"searches": 1}}
    assert of("unfollowed", **nothing) is None
    assert of("irrelevant_share", **nothing) is None
    assert of("irrelevant", **nothing) == 0


def test_a_filter_is_right_by_its_own_hypothesis():
    # a: a step on the way, entailed. b: gold with the answer, not entailed. c, d: not gold.
    assert (of("filter_right"), of("filter_right_strong")) == (0.5, 0.25)  # a and d; d alone
    assert (of("filter_all"), of("filter_all_strong")) == (0.5, 0.25)
    assert of("filter_balanced") == 0.5  # one of two, one of two
    assert of("filter_balanced_strong") == pytest.approx((0 + 1 / 3) / 2)
    # A strong filter that does as it is told: right by its own, and not by the other.
    told = [["a", "neutral", 0.1, "static", 0], ["b", "entailment", 0.9, "dynamic", 1]]
    told.append(["c", "neutral", 0.1, "other", 0])
    assert of("filter_right_strong", filter=told) == of("filter_balanced_strong", filter=told) == 1
    assert of("filter_right", filter=told) == pytest.approx(2 / 3)
    assert of("filter_balanced", filter=told) == 0.75
    # Entailing all, or nothing: right as often as there is such, and balanced a half.
    for label, share in (("entailment", 2 / 3), ("neutral", 1 / 3)):
        flat = [[row[0], label, *row[2:]] for row in told]
        assert of("filter_right", filter=flat) == pytest.approx(share)
        assert of("filter_balanced", filter=flat) == 0.5
    assert of("filter_balanced", filter=told[:2]) is None  # nothing that should go


def test_the_filter_by_what_a_passage_is():
    assert (of("entailed_gold"), of("entailed_static"), of("entailed_dynamic")) == (0.5, 1, 0)
    assert of("entailed_other") == 0.5
    assert of("filter_right") == 0.5  # a and d
    assert of("filter_all") == 0.5
    assert of("filter_agrees") == 0  # each label goes against the answer string
    asked = {"filter": [["a", "yes", 0.9, "gold", 1], ["b", "no", 0.2, "other", 0]]}
    assert (of("entailed_gold", **asked), of("filter_right", **asked)) == (1, 1)
    assert of("entailed_static", **asked) is None


def test_where_nobody_knows_what_is_gold_only_the_agreement_is_told():
    unknown = {"filter": [["a", "entailment", None, None, 1], ["b", "neutral", None, None, 1]]}
    assert of("filter_agrees", **unknown) == 0.5
    for name in ("entailed_gold", "entailed_other", "filter_right", "filter_all"):
        assert of(name, **unknown) is None
    closed = {"filter": [["a", "entailment", 0.9, "gold", None]]}
    assert of("filter_agrees", **closed) is None
    assert of("filter_right", **closed) == 1


def test_the_memory():
    assert (of("within"), of("popularity")) == (0.5, 3)
    assert of("fetched_again") == 2 / 8
    assert of("memory_holds_gold") == 1
    inside = {"trigger": [[5, 0, 0, 4, 0, None]]}
    assert of("fetched_again", **inside) is None
    assert of("memory_holds_gold", **inside) is None
    assert of("memory_holds_gold", trigger=[[0, 1, 5, 0, 0, 0]]) == 0


def test_lines_of_other_methods_have_none_of_it():
    other = {"id": "q", "hits": ["p"], "gold": [], "cost": {}, "scores": {}}
    assert [metric.name for metric in TABLE if metric.fn(other) is not None] == []
