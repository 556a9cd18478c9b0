"""Timed exhibits: what one answer took, and ratios, on times made to order."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro import show
from rag_repro.study import papers, records
from rag_repro.study.judge import judge
from rag_repro.study.scores import Results, Scores, ratio

PAPER = """
title: A paper in miniature
short: Mini
cite: mini2026
exhibits:
  table2:
    title: Printed
    place: table 2
    metrics: [f1]
    values: table2.csv
    methods:
      single_step: {label: One search, waits: for nothing}
      dr_rag: {label: DR-RAG, waits: for nothing}
      adaptive_rag: {label: Adaptive-RAG, waits: for nothing}
  fig3:
    title: Time
    place: figure 3
    timed: true
    metrics: [seconds, ms, f1]
    methods:
      single_step: {label: One search, run: single_step, retriever: bm25}
      dr_rag: {label: DR-RAG, run: qdc, retriever: bm25, baseline: single_step}
      adaptive_rag: {label: Adaptive-RAG, waits: for its classifier}
    grids:
      - &one
        tier: public
        datasets: [musique, hotpotqa]
        n: 20
        reader: smollm2-135m
        methods: [single_step, dr_rag]
        settings: {k: [4]}
        fixed: {prompt: drrag}
      - {<<: *one, tier: testbed, datasets: [world-B@1000, world-B@5000]}
"""
CLAIMS = """
- id: mini.c01
  place: abstract
  claim: Less time.
  exhibit: mini.fig3
  paper_numbers: none
  support: "none"
  support_note: ""
  test: timed
  n_needed: null
  scale: "yes"
  contrasts:
    - label: under three times
      metric: seconds
      more: {method: dr_rag}
      less: {method: single_step}
      ratio: true
      target: 300.0
      delta: 50.0
    - label: twice
      metric: seconds
      more: {method: dr_rag}
      less: {method: single_step}
      ratio: true
      target: 200.0
      margin: 20.0
"""
TABLE = """method,dataset,metric,value,note
single_step,musique,time,1.00,
single_step,musique,step,1.00,
single_step,musique,f1,22.80,
dr_rag,musique,time,1.54,
dr_rag,musique,step,1.00,
dr_rag,musique,f1,38.90,
adaptive_rag,musique,time,6.16,
adaptive_rag,musique,step,3.22,
adaptive_rag,musique,f1,31.80,
"""


@pytest.fixture
def book(tmp_path):
    folder = tmp_path / "mini"
    folder.mkdir()
    (folder / "paper.yaml").write_text(PAPER)
    (folder / "claims.yaml").write_text(CLAIMS)
    (folder / "table2.csv").write_text(TABLE)
    paper = papers.read(folder)
    root = tmp_path / "results" / "records"
    root.mkdir(parents=True)
    return SimpleNamespace(
        paper=paper, exhibit=paper.exhibit("fig3"), root=root, results=lambda: Results(root)
    )


def turn(method, slow):
    """Ten milliseconds of search, half of it encoding; DR-RAG as much again, and two pairs."""
    clock = [["retriever.encoder", 0.005 * slow, 1], ["retriever", 0.01 * slow, 1]]
    if method == "dr_rag":
        clock += [["retriever", 0.03 * slow, 2], ["scorer", 0.06 * slow, 2]]
    clock.append(["reader", (0.5 if method == "single_step" else 0.9) * slow, 1])
    return {"seconds": (0.52 if method == "single_step" else 1.04) * slow, "clock": clock}


def fill(book, tier, passages=1000, f1=0.5):
    for cell in book.exhibit.cells(tier):
        folder = records.times_beside(book.root, "mini.fig3")
        with records.open_record(folder, cell.condition, {"passages": passages}) as record:
            for i in range(20):
                record.append(
                    {
                        "id": f"q{i}",
                        "kind": "bridge",
                        "cluster": f"q{i}",
                        "hits": [],
                        "scores": {"f1": f1 + i / 100},
                        "cost": {
                            "reader_calls": 1,
                            "scored": 2 * (cell.keys["method"] == "dr_rag"),
                        },
                        "turns": [turn(cell.keys["method"], 1 + i / 10)],
                    }
                )


def test_parts_of_a_stacked_bar_are_the_whole(book):
    fill(book, "public")
    desk = SimpleNamespace(paper=book.paper, results=book.results(), tiers=lambda: ["public"])
    shown = show.entries(desk, "fig3", dataset="musique")
    parts = ("reader", "scorer", "encoder", "lookup", "rest")
    columns = {part: show.mean(f"seconds_{part}") for part in parts}
    whole = [show.mean("seconds").read(entry) for entry in shown]
    summed = [sum(column.read(entry) for column in columns.values()) for entry in shown]
    assert summed == pytest.approx(whole)
    picture = show.bars(shown, columns, stacked=True)
    assert "MuSiQue, DR-RAG: reader 1.8, scorer 0.1" in picture.alt


def test_a_ratio_is_judged_in_percent_of_the_other_side(book):
    fill(book, "public")
    [claim] = judge(book.paper, "public", book.results())
    short, level = claim.parts
    assert short.interval.estimate == pytest.approx(100)  # of 300, 200 are there
    assert short.verdict.word == "reproduced"
    assert level.interval.estimate == pytest.approx(200)
    assert level.verdict.word == "reproduced"
    assert claim.verdict.word == "reproduced"


def test_the_reason_of_what_is_not_timed_names_the_command(book):
    [claim] = judge(book.paper, "testbed", book.results())
    assert claim.verdict.word == "not run"
    assert claim.verdict.reason.endswith("rag-repro time mini.fig3")


@pytest.mark.parametrize("needed", ["      less: {method: single_step}\n", "      target: 200.0\n"])
def test_a_ratio_without_its_other_side_or_target_is_refused(book, needed):
    file = book.paper.folder / "claims.yaml"
    file.write_text(file.read_text().replace(needed, ""))
    with pytest.raises(ValueError, match="a ratio needs a side `less`, and a target"):
        papers.read(book.paper.folder)


def test_a_ratio_over_settings_averages_a_question_first():
    def scores(*values):
        ids = tuple(f"q{i}" for i in range(len(values)))
        return Scores(ids, ids, np.array(values, float))

    one = (scores(1, 2, 3), scores(2, 2, 2))
    two = (scores(5, 6, 7), scores(4, 4, 4))
    assert ratio([one, two], "seconds").estimate == pytest.approx(100 * 4 / 3)
    assert ratio([(scores(1, 2), scores(0, 0))], "seconds") is None
