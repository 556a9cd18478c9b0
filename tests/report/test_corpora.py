"""Which of two corpora a printed level is nearer to, on values made by hand."""

from __future__ import annotations

import pytest

from rag_repro.evaluation.statistics import Interval
from rag_repro.report import corpora
from rag_repro.report.exhibits import Row
from rag_repro.report.picture import Note
from tests.study import mini

GAIN = "- {metric: recall, more: {method: qdc}, less: {method: sm}, delta: 2.0}"
TABLE = """dataset,k,method,metric,value,note
hotpotqa,3,sm,recall,70,
musique,3,sm,recall,40,
hotpotqa,4,sm,recall,99,
hotpotqa,3,qdc,recall,80,
hotpotqa,3,qdc,passages,3,
"""


@pytest.fixture
def paper(tmp_path):
    return mini.paper(tmp_path, GAIN, TABLE)


def row(method, dataset, own, value, k=3, metric="recall"):
    keys = {"dataset": dataset, "method": method, "k": k, "own_candidates": own}
    ours = None if value is None else Interval(value, value - 1, value + 1, 100)
    return Row("mini.table1", "public", "primary", keys, metric, ours=ours)


ROWS = [
    *(row("sm", "hotpotqa", own, value) for own, value in ((False, 68), (True, 90))),
    *(row("sm", "musique", own, value) for own, value in ((False, 46), (True, 50))),
    row("sm", "hotpotqa", False, 10, k=4),  # there is none beside it
    row("sm", "hotpotqa", True, None, k=4),
    *(row("qdc", "hotpotqa", own, value) for own, value in ((False, 60), (True, 85))),
    *(row("qdc", "hotpotqa", own, 3, metric="passages") for own in (False, True)),
]


def test_levels_distances_and_the_nearer_corpus(paper):
    made = corpora.table(paper, "table1", ROWS, ["sm", "qdc"])
    assert made.head[3:] == ["pooled", "apart", "own candidates", "apart", "nearer"]
    # SM: 70 and 40 printed; 68 and 46 pooled, 2 and 6 apart; 90 and 50, 20 and 10 apart.
    assert made.body == [
        ["Similarity", 2, "55.0", "57.0", "4.0", "70.0", "15.0", "pooled"],
        ["Concatenation", 1, "80.0", "60.0", "20.0", "85.0", "5.0", "own candidates"],
    ]


def test_a_corpus_without_records_tells_nothing(paper):
    pooled = [r for r in ROWS if not r.keys["own_candidates"]]
    assert isinstance(corpora.table(paper, "table1", pooled, ["sm"]), Note)
