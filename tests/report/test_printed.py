"""Arithmetic on printed values, against sums done by hand."""

from __future__ import annotations

import pytest

from rag_repro.report import printed
from rag_repro.study import papers
from rag_repro.study.papers import StudyError

DRRAG = papers.load("drrag")


def test_means_and_gains_of_the_printed_table():
    # Table 5: CFS 66.45, 88.89, 87.81; 73.83, 92.28, 94.13; 83.01, 96.27, 98.04.
    assert printed.mean(DRRAG, "table5", metric="recall", method="cfs") == pytest.approx(780.71 / 9)
    assert printed.mean(DRRAG, "table5", metric="recall", method="cfs", k=[3]) == pytest.approx(
        243.15 / 3
    )
    gain = printed.gain(DRRAG, "table5", "cfs", "sm", metric="recall")
    assert gain == pytest.approx(8.63, abs=0.005)
    assert len(printed.values(DRRAG, "table5", metric="recall", method=["cis", "cfs"])) == 18


def test_what_is_not_printed_is_refused():
    with pytest.raises(StudyError, match="table5 prints nothing with"):
        printed.mean(DRRAG, "table5", metric="recall", method="cfs", k=5)


def test_the_useless_share_follows_from_recall_and_passages_fed():
    shares = printed.useless(DRRAG, "table5", {"hotpotqa": 2.0})
    # SM at k = 3: 80.33 % of 2 gold passages among 3.00.
    assert shares["sm", "3", "hotpotqa"] == pytest.approx(100 * (1 - 2 * 0.8033 / 3))
    # CFS at k = 6: 96.27 % of 2 among 5.35.
    assert shares["cfs", "6", "hotpotqa"] == pytest.approx(100 * (1 - 2 * 0.9627 / 5.35))
    assert {dataset for _, _, dataset in shares} == {"hotpotqa"}
    assert len(shares) == 15
