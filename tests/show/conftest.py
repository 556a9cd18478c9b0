"""A book with one paper in miniature, in a folder of its own, and its records."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rag_repro.study import papers
from rag_repro.study.scores import Results
from tests.study import mini

GAIN = (
    "- {metric: recall, more: {method: qdc}, less: {method: sm}, delta: 2.0}\n"
    "- {metric: recall, more: {method: cfs}, less: {method: qdc}, delta: 2.0, role: secondary}"
)
SHARES = {"sm": 0.62, "qdc": 0.78}


@pytest.fixture
def book(tmp_path, monkeypatch):
    """The only paper is `mini`; `fill()` makes its records, `results()` reads them."""
    paper = mini.paper(tmp_path, GAIN)
    monkeypatch.setattr(papers, "PAPERS", tmp_path)
    papers.load.cache_clear()
    records = tmp_path / "records"
    records.mkdir()

    def fill(shares=SHARES, folder=records, **options):
        mini.fill(folder, paper, lambda m, d, k, rng: mini.coin(shares[m], 100, rng), **options)

    yield SimpleNamespace(
        paper=paper,
        exhibit=paper.exhibits["table1"],
        records=records,
        root=tmp_path,
        fill=fill,
        results=lambda: Results(records),
    )
    papers.load.cache_clear()
