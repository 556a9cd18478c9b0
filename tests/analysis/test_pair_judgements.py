"""Judged pairs at thresholds, by hand."""

from __future__ import annotations

import pytest

from rag_repro.analysis.pair_judgements import at_threshold, best_threshold, judgements

# Eight pairs of two questions; both of q0's e and q1's a are gold beside their partner.
LINES = [
    {
        "id": "q0",
        "hits": ["a", "b"],
        "judged": [["a", "c", 0.9, 1], ["a", "e", 0.8, 2], ["b", "c", 0.6, 0], ["b", "e", 0.1, 1]],
    },
    {"id": "q1", "hits": [], "judged": [["a", "b", 0.4, 2], ["b", "c", 0.3, 1]]},
    {"id": "q2", "hits": [], "judged": [["a", "b", 0.99, None]]},
    {"id": "q3", "hits": []},
]


def test_pairs_at_a_threshold_by_hand():
    got = at_threshold(LINES, 0.5)
    # Positive: 0.9, 0.8, 0.6 of six labelled ones; gold: 0.8 and 0.4; both: 0.8.
    assert (got.pairs, got.gold) == (6, 2 / 6)
    assert (got.precision, got.recall, got.right) == (1 / 3, 1 / 2, 3 / 6)
    assert got.f1 == pytest.approx(2 / 5)
    assert at_threshold(LINES, 0.8).recall == 1 / 2  # the threshold is positive
    none = at_threshold(LINES, 0.95)
    assert (none.precision, none.recall, none.f1) == (None, 0, 0)
    assert at_threshold(LINES[2:], 0.5) is None


def test_a_pair_that_is_asked_twice_counts_once():
    assert at_threshold([*LINES, LINES[0]], 0.5).pairs == 6


def test_the_best_threshold_is_the_one_nearest_to_a_half_of_equal_ones():
    by_f1 = best_threshold(LINES)
    # From 0.31 to 0.40: both gold pairs among four positive ones, F1 2/3.
    assert by_f1.threshold == 0.40
    assert by_f1.f1 == pytest.approx(2 / 3)
    # From 0.61 to 0.80 as many verdicts are right, 4 of 6; 0.40 is the nearer to 0.5.
    by_right = best_threshold(LINES, "right")
    assert by_right.threshold == 0.40
    assert by_right.right == pytest.approx(4 / 6)
    assert best_threshold(LINES[2:]) is None


def test_judgements_need_both_kinds():
    lines = [{**line, "cluster": line["id"]} for line in LINES]
    held = judgements(lines)
    assert held.y.sum() == 2
    assert judgements(lines, against=()) is None
