"""Whose difference is clear, in words."""

from __future__ import annotations

from rag_repro.evaluation.statistics import Interval
from rag_repro.report import gains
from rag_repro.report.exhibits import Row
from rag_repro.study import papers

EXHIBIT = papers.load("together").exhibit("head")


def row(method, lo, hi, dataset="world-B", metric="em", baseline="single"):
    diff = None if lo is None else Interval((lo + hi) / 2, lo, hi, 50)
    keys = {"dataset": dataset, "method": method}
    return Row("head", "testbed", "primary", keys, metric, baseline=baseline, diff=diff)


def said(*rows):
    return repr(gains.told(EXHIBIT, rows, "em"))


def test_each_side_is_named_and_the_others_are_counted():
    text = said(
        *(row("none", -30, -10), row("multi", 2, 8), row("drrag", -4, 4)),
        *(row("drrag", 0, 4), row("multi", 2, 8, metric="f1"), row("single", None, None)),
    )
    assert "beside one search: higher with IRCoT (+5.0 [+2.0, +8.0], n 50" in text
    assert "lower with no retrieval (-20.0 [-30.0, -10.0]" in text
    assert text.endswith("open for the other 2.")


def test_one_sentence_a_data_set():
    text = said(
        row("multi", -1, 1), row("multi", 1, 2, "hotpotqa"), row("drrag", -1, 1, "hotpotqa")
    )
    assert "neither clearly higher nor lower with any method." in text
    assert text.endswith("open for one more.")
    assert text.count("beside one search") == 2


def test_each_row_is_told_beside_its_own_baseline():
    text = said(row("single", 5, 20, baseline="none"), row("multi", 2, 8), row("drrag", -9, -3))
    first, second = text.split(". ")
    assert first.endswith("beside no retrieval: higher with one search (+12.5 [+5.0, +20.0], n 50)")
    assert "beside one search: higher with IRCoT (+5.0" in second
    assert "lower with" in second


def test_without_a_difference_it_says_so():
    assert said(row("single", None, None)) == "No row with a baseline has been run yet."
