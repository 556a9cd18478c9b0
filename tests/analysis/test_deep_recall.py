"""Recall at several depths from the ranks of one retrieval, worked by hand."""

from __future__ import annotations

import pytest

from rag_repro.analysis.deep_recall import recall_at


def line(name, *gold):
    return {"id": name, "cluster": name, "hits": [], "scores": {}, "gold": [list(g) for g in gold]}


LINES = [
    line("q0", ("static", 1, 1), ("dynamic", 2, 4)),
    line("q1", ("static", 1, 2), ("dynamic", 2, None)),
    line("q2", ("static", 1, 3)),
    line("q3"),  # no gold passage: it has no recall
]


@pytest.mark.parametrize(
    ("k", "options", "expected"),
    [
        # shares of q0, q1, q2
        (1, {}, (1 / 2 + 0 + 0) / 3),
        (2, {}, (1 / 2 + 1 / 2 + 0) / 3),
        (3, {}, (1 / 2 + 1 / 2 + 1) / 3),
        (4, {}, (1 + 1 / 2 + 1) / 3),
        (3, {"whole": True}, 1 / 3),
        (4, {"whole": True}, 2 / 3),
        (2, {"role": "static"}, 2 / 3),
        (9, {"role": "static"}, 1),
        # q2 has no dynamic passage
        (3, {"role": "dynamic"}, 0),
        (4, {"role": "dynamic"}, 1 / 2),
    ],
)
def test_recall_at_by_hand(k, options, expected):
    made = recall_at(LINES, k, **options)
    assert made.estimate == pytest.approx(100 * expected)
    assert made.n == (2 if options.get("role") == "dynamic" else 3)
    assert made.lo <= made.estimate <= made.hi


def test_without_such_gold_there_is_no_recall():
    assert recall_at(LINES[2:], 3, role="dynamic") is None
    assert recall_at(LINES[3:], 3) is None
    assert recall_at([], 3) is None


def test_the_same_lines_give_the_same_interval():
    assert recall_at(LINES, 3) == recall_at(LINES, 3)
