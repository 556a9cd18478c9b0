"""A chapter's desk over a timed exhibit: what it shows, what it times itself, which rows."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rag_repro.show.chapter import Chapter
from rag_repro.study import papers, records
from rag_repro.study.papers import StudyError

PAPER = """
title: A paper in miniature
short: Mini
cite: mini2026
exhibits:
  fig3:
    title: Time
    place: figure 3
    timed: true
    metrics: [recall, ms]
    methods:
      one: {label: One search, run: single_step, retriever: bm25}
      two: {label: Two searches, run: qdc, retriever: bm25, baseline: one}
    grids:
      - {tier: testbed, datasets: [world-B], n: 30, methods: [one, two], settings: {k: [4]}}
"""
DEFAULTS = {
    **{"tier": "all", "dataset": "", "retriever": "", "n_questions": None, "live_calls": 0},
    **{"seed": 0, "device": "cpu", "batch_size": 1},
}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    folder = tmp_path / "mini"
    folder.mkdir()
    (folder / "paper.yaml").write_text(PAPER)
    (folder / "claims.yaml").write_text("[]\n")
    monkeypatch.setattr(papers, "PAPERS", tmp_path)
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path / "cache"))
    papers.load.cache_clear()

    def make(methods=(), **given):
        run = SimpleNamespace(**DEFAULTS | given, changed=tuple(given), methods=methods)
        return Chapter("mini", run, tmp_path, exhibits=("fig3",))

    yield make
    papers.load.cache_clear()


def test_moved_parameters_time_the_methods_now_and_keep_it_apart(desk, tmp_path):
    moved = desk(dataset="world-C@1000", n_questions=2)
    rows = moved.rows("fig3", metric="ms")
    assert [(r.keys["dataset"], r.keys["method"], r.ours.n) for r in rows] == [
        ("world-C@1000", "one", 2),
        ("world-C@1000", "two", 2),
    ]
    assert all(row.ours.estimate > 0 for row in rows)
    times = records.times_beside(tmp_path / "results" / "local" / "records", "mini.fig3")
    assert len(list(times.rglob("*.jsonl"))) == 2
    assert not (tmp_path / "results" / "times").exists()


def test_other_company_is_timed_anew(desk):
    desk(dataset="world-C@1000", n_questions=2)
    alone = desk(methods=("two",), dataset="world-C@1000", n_questions=2)
    [row] = alone.rows("fig3", metric="ms")
    assert (row.keys["method"], row.ours.n) == ("two", 2)
    stored = alone.results.lines(alone.paper.exhibit("fig3").cells()[0])
    assert len(stored) == 2


def test_by_default_nothing_is_timed(desk, tmp_path):
    still = desk()
    assert [row.note for row in still.rows("fig3", metric="ms")] == ["not run", "not run"]
    assert not (tmp_path / "results").exists()


def test_rows_that_no_exhibit_has_are_refused(desk):
    with pytest.raises(StudyError, match="no row 'twoo' in fig3, did you mean 'two'"):
        desk(methods=("twoo",))
