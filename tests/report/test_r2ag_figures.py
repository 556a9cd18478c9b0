"""Rows moved along passages, gains by gold's place, points of two metrics, what is left."""

from __future__ import annotations

import pytest

from rag_repro.evaluation.statistics import Interval
from rag_repro.report import figures, soft_prompts
from rag_repro.report.exhibits import Row
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

METHODS = {
    "rag": ExhibitMethod("RAG", "single_step", "bm25"),
    "r2ag": ExhibitMethod("R²AG", "single_step", "bm25", {"max_new_tokens": 9}, baseline="rag"),
}
ALONE = Grid("public", ("nq",), ("rag", "r2ag"), {"k": (10,)}, reader="smollm2-135m")
MORE = Grid("public", ("nq20",), ("rag", "r2ag"), {"k": (5, 20)}, reader="smollm2-135m")
EXHIBIT = Exhibit("mini.fig3", "More", "", ("acc_line",), METHODS, (ALONE, MORE))


@pytest.fixture
def results(tmp_path):
    """Gold is first in half of the questions; there R²AG is right, else neither is."""
    root = tmp_path / "records"
    root.mkdir()
    for cell in EXHIBIT.cells():
        with open_record(root, cell.condition, {}) as record:
            for i in range(8):
                gold = [["", None, 1 if i % 2 else 3]] * (1 + i % 2)
                right = float(cell.keys["method"] == "r2ag" and i % 2)
                line = {"id": f"q{i}", "cluster": f"q{i}", "hits": ["a", "b", "c"], "gold": gold}
                record.append(line | {"scores": {"acc_line": right}})
    return Results(root)


def row(dataset, k, method="rag", metric="acc_line", value=50.0):
    keys = {"dataset": dataset, "method": method, "k": k}
    span = None if value is None else Interval(value, value - 1, value + 1, 8, 95.0)
    return Row("mini.fig3", "public", "primary", keys, metric, ours=span)


def test_gold_alone_stands_at_its_own_number_of_passages(results):
    rows = [row("nq", 10), row("nq20", 5), row("nq20", 20)]
    made = soft_prompts.by_passages(EXHIBIT, results, rows, {"nq": "nq20"})
    assert [(r.keys["dataset"], r.keys["passages"]) for r in made] == [
        ("nq20", 1.5), ("nq20", 5), ("nq20", 20),
    ]  # fmt: skip
    picture = figures.against_k(
        made, metrics={"acc_line": "Acc"}, methods={"rag": "RAG"}, along="passages", ylabel="%"
    )
    assert "passages 1.5: Acc 50" in picture.alt


def test_without_records_gold_alone_is_left_out(tmp_path):
    rows = [row("nq", 10, value=None), row("nq20", 5, value=None)]
    made = soft_prompts.by_passages(EXHIBIT, Results(tmp_path), rows, {"nq": "nq20"})
    assert [r.keys["passages"] for r in made] == [5]


class Letters:
    """An encoder that knows how often each letter occurs."""

    fingerprint = "letters"

    def encode(self, texts):
        import numpy as np

        rows = np.array([[t.lower().count(c) for c in "abcdefghijklmnopqrst"] for t in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
