"""Recall at several depths from the ranks of one retrieval, worked by hand."""

from __future__ import annotations

import pytest

from rag_repro.report import depth
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results


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
    made = depth.recall_at(LINES, k, **options)
    assert made.estimate == pytest.approx(100 * expected)
    assert made.n == (2 if options.get("role") == "dynamic" else 3)
    assert made.lo <= made.estimate <= made.hi


def test_without_such_gold_there_is_no_recall():
    assert depth.recall_at(LINES[2:], 3, role="dynamic") is None
    assert depth.recall_at(LINES[3:], 3) is None
    assert depth.recall_at([], 3) is None


def test_the_same_lines_give_the_same_interval():
    assert depth.recall_at(LINES, 3) == depth.recall_at(LINES, 3)


def test_rows_go_no_deeper_than_was_retrieved(tmp_path):
    exhibit = Exhibit(
        "mini.depth",
        "Depth",
        "",
        ("recall",),
        {
            "bm25": ExhibitMethod("BM25", "single_step", "bm25"),
            "sm": ExhibitMethod("Dense", "single_step", "minilm"),
        },
        (Grid("testbed", ("world-B",), ("bm25", "sm"), {"k": (4,)}),),
    )
    lexical, _ = exhibit.cells()
    with open_record(tmp_path, lexical.condition, {}) as record:
        for one in LINES:
            record.append(one)
    made = depth.rows(exhibit, Results(tmp_path), "testbed", (3, 4, 5), ("dynamic",))
    # The other method has no record, and nothing is known below rank 4.
    assert {row.keys["method"] for row in made} == {"bm25"}
    assert {(row.keys["k"], row.metric): round(row.ours.estimate, 1) for row in made} == {
        (3, "recall"): 66.7, (3, "all_gold"): 33.3, (3, "recall_dynamic"): 0.0,
        (4, "recall"): 83.3, (4, "all_gold"): 66.7, (4, "recall_dynamic"): 50.0,
    }  # fmt: skip
    assert depth.rows(exhibit, Results(tmp_path), "public", (3,)) == []
