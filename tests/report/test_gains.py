"""Whose difference is clear, in words, for all of them together."""

from __future__ import annotations

import numpy as np

from rag_repro.evaluation.resampling import fresh
from rag_repro.evaluation.statistics import resample
from rag_repro.report import gains
from rag_repro.report.exhibits import Row
from rag_repro.study import papers

EXHIBIT = papers.load("together").exhibit("head")


def row(method, values, dataset="world-B", metric="em", baseline="single"):
    keys = {"dataset": dataset, "method": method}
    found = Row("head", "testbed", "primary", keys, metric, baseline=baseline)
    if values is None:
        return found
    drawn = resample(np.array(values, dtype=float), rng=fresh())
    return Row("head", "testbed", "primary", keys, metric, baseline=baseline,
               diff=drawn.interval(), drawn=drawn)  # fmt: skip


UP, DOWN, OPEN = [100, 100, 0, 0] * 20, [-100, -100, 0, 0] * 20, [100, -100, 0, 0] * 20
NEARLY = [100] * 8 + [-100] + [0] * 71  # above zero alone, and not among five


def said(*rows):
    return repr(gains.told(EXHIBIT, rows, "em"))


def test_each_side_is_named_and_the_others_with_what_would_have_shown():
    text = said(
        *(row("none", DOWN), row("multi", UP), row("drrag", OPEN)),
        *(row("multi", UP, metric="f1"), row("single", None)),
    )
    assert "beside one search, higher: IRCoT (+50.0 [" in text
    assert "; lower: no retrieval (-50.0 [" in text
    assert "; open: DR-RAG (detectable " in text
    assert text.count("detectable") == 1
    assert text.count("n 80") == 2


def test_they_are_corrected_for_their_number():
    assert "higher: IRCoT" in said(row("multi", NEARLY))
    many = said(row("multi", NEARLY), *(row(m, OPEN) for m in ("none", "drrag", "erm4", "dragin")))
    assert "higher" not in many


def test_one_sentence_a_data_set_and_baseline():
    text = said(
        row("multi", OPEN), row("multi", UP, "hotpotqa"), row("single", UP, baseline="none")
    )
    assert text.count("beside one search") == 2
    assert "beside no retrieval, higher: one search" in text
    assert "HotpotQA, EM beside one search, higher" in text


def test_without_a_difference_it_says_so():
    assert said(row("single", None)) == "No row with a baseline has been run yet."
