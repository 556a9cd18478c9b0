"""Figures of one metric against another."""

from __future__ import annotations

from rag_repro.evaluation.statistics import Interval
from rag_repro.report import scatter
from rag_repro.report.exhibits import Row

LABELS = {"rag": "RAG", "r2ag": "R²AG"}


def row(dataset, k, method="rag", metric="acc_line", value=50.0):
    keys = {"dataset": dataset, "method": method, "k": k}
    span = None if value is None else Interval(value, value - 1, value + 1, 8, 95.0)
    return Row("mini.fig3", "public", "primary", keys, metric, ours=span)


def test_points_are_rows_that_have_both_metrics():
    rows = [
        row("nq10", 10, "rag", "acc_line", 40.0),
        row("nq10", 10, "rag", "map", 90.0),
        row("nq10", 10, "r2ag", "acc_line", 60.0),
    ]
    look = {
        "xlabel": "MAP, %", "ylabel": "Acc, %", "told": "{y:.0f} at {x:.0f}", "alt": "By MAP.",
        "named": lambda r: LABELS[r.keys["method"]],
    }  # fmt: skip
    assert scatter.against(rows, "map", "acc_line", **look).alt == "By MAP. NQ-10, RAG: 40 at 90."
    assert "no such condition" in repr(scatter.against([], "map", "acc_line", **look))
    rows.append(row("nq10", 10, "r2ag", "map", 90.0))
    alike = repr(scatter.against(rows, "map", "acc_line", **look, caption="Acc by MAP"))
    assert alike == "Acc by MAP: not drawn, since MAP, % is 90 in every row."
