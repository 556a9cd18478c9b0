"""AUC and accuracy of a question's judged pairs, worked by hand."""

from __future__ import annotations

import pytest

from rag_repro.evaluation import metrics
from rag_repro.evaluation.pair_metrics import auc

# Positives 0.9, 0.4; hard negatives 0.4, 0.1; random ones 0.6, 0.0.
JUDGED = [
    ["a", "b", 0.9, 2],
    ["a", "c", 0.4, 2],
    ["a", "x", 0.4, 1],
    ["y", "b", 0.1, 1],
    ["x", "z", 0.6, 0],
    ["z", "y", 0.0, 0],
]


def told(name, judged=JUDGED):
    return metrics.of_line(name, {"hits": [], "scores": {}, "judged": judged})


def test_auc_is_the_share_of_comparisons_won():
    assert auc([0.9, 0.4], [0.4]) == 0.75
    assert auc([0.1], [0.9]) == 0
    assert auc([], [0.1]) is auc([0.1], []) is None


def test_metrics_of_a_line_by_hand():
    # Against hard: 2 wins of 0.9, then a tie and a win of 0.4: 3.5 of 4.
    assert told("pair_auc_hard") == pytest.approx(3.5 / 4)
    # Against random: 2 wins, then a loss and a win.
    assert told("pair_auc_random") == pytest.approx(3 / 4)
    assert told("pair_auc") == pytest.approx(6.5 / 8)
    assert told("pair_swapped_hard") == pytest.approx(0.5 / 4)
    assert told("pair_swapped_random") == pytest.approx(1 / 4)
    # One positive of two is found, three negatives of four are refused.
    assert told("pair_accuracy") == pytest.approx((1 / 2 + 3 / 4) / 2)


def test_half_is_positive():
    assert told("pair_accuracy", [["a", "b", 0.5, 2], ["a", "x", 0.5, 1]]) == 0.5


@pytest.mark.parametrize(
    "judged", [[], JUDGED[:2], JUDGED[2:], [["a", "b", 0.3, None], ["a", "x", 0.1, None]]]
)
def test_without_both_kinds_there_is_nothing_to_tell(judged):
    names = [name for name in metrics.METRICS if name.startswith("pair_")]
    assert len(names) == 6
    assert {told(name, judged) for name in names} == {None}
    assert metrics.of_line("pair_auc", {"hits": [], "scores": {}}) is None
