"""Printed values by their keys."""

from __future__ import annotations

import pytest

from rag_repro.report import printed
from rag_repro.study import papers
from rag_repro.study.papers import StudyError

DRRAG = papers.load("drrag")


def test_printed_values_are_found_by_their_keys():
    held = printed.values(DRRAG, "table5", metric="recall", method=["cis", "cfs"])
    assert len(held) == 18
    [value] = printed.values(
        DRRAG, "table5", metric="recall", method="cfs", k=3, dataset="hotpotqa"
    ).values()
    assert value == 88.89


def test_what_is_not_printed_is_refused():
    with pytest.raises(StudyError, match="table5 prints nothing with"):
        printed.values(DRRAG, "table5", metric="recall", method="cfs", k=5)
