"""Timed exhibits as rows, tables and figures, on times made to order."""

from __future__ import annotations

import base64
import csv
import io
from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro.report import time_figures, times
from rag_repro.report.exhibits import rows as exhibit_rows
from rag_repro.report.picture import Picture
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


def test_a_row_has_seconds_times_and_parts_that_are_the_whole(book):
    fill(book, "public")
    one, two, *_ = times.timed(book.exhibit, book.results(), "public")
    assert [r.method for r in (one, two)] == ["single_step", "dr_rag"]
    assert (one.dataset, one.label, one.seconds.n) == ("musique", "One search", 20)
    assert one.seconds.estimate == pytest.approx(0.52 * 1.95)
    # Slow questions are slow for both, so that the ratio is sharp where the seconds are not.
    assert two.times.estimate == pytest.approx(2)
    assert two.times.hi - two.times.lo == pytest.approx(0, abs=1e-9)
    assert two.seconds.hi - two.seconds.lo > 0.2
    assert sum(two.means[p] for p in times.PARTS) == pytest.approx(two.seconds.estimate)
    got = {p: two.means[p] / 1.95 for p in times.PARTS}
    assert got == pytest.approx(
        {
            "seconds_reader": 0.9,
            "seconds_scorer": 0.06,
            "seconds_encoder": 0.005,
            "seconds_lookup": 0.035,
            "seconds_rest": 0.04,
        }
    )


def test_f1_is_that_of_the_record_of_more_questions_where_there_is_one(book):
    fill(book, "public", f1=0.2)
    [cell] = [
        c
        for c in book.exhibit.cells("public")
        if c.matches({"dataset": "musique", "method": "dr_rag"})
    ]
    with records.open_record(book.root, cell.condition, {}) as record:
        for i in range(50):
            scores = {"f1": 0.8}
            record.append({"id": f"q{i}", "cluster": f"q{i}", "hits": [], "scores": scores})
    made = {
        (r.dataset, r.method): r.f1 for r in times.timed(book.exhibit, book.results(), "public")
    }
    assert (made["musique", "dr_rag"].estimate, made["musique", "dr_rag"].n) == (
        pytest.approx(80),
        50,
    )
    assert made["hotpotqa", "dr_rag"].estimate == pytest.approx(100 * (0.2 + 0.095))


def test_the_table_has_the_papers_columns_and_every_row_of_its_own(book):
    fill(book, "public")
    printed = times.printed_values(book.paper, "table2")
    table = times.time_table(
        book.exhibit, times.timed(book.exhibit, book.results(), "public"), printed, "tab-time"
    )
    cells = {(row[0], row[1]): dict(zip(table.head, row, strict=True)) for row in table.body}
    mine = cells["MuSiQue", "DR-RAG"]
    assert mine["time, single-step = 1"] == "2.00 [2.00, 2.00]"
    assert (mine["paper"], mine["paper's steps"], mine["calls"], mine["pairs"]) == (
        "1.54",
        "1",
        "1",
        "2",
    )
    assert cells["HotpotQA", "DR-RAG"]["paper"] == ""
    waits = cells["MuSiQue", "Adaptive-RAG"]
    assert (waits["time, single-step = 1"], waits["paper"]) == ("not at this tier", "6.16")
    text = base64.b64decode(table.data._repr_html_().split("base64,")[1].split('"')[0]).decode()
    [first, *_] = csv.DictReader(io.StringIO(text))
    assert (first["method"], first["paper_f1"], first["n"]) == ("single_step", "22.8", "20")
    assert float(first["seconds_reader"]) == pytest.approx(0.975)
    assert float(first["times"]) == 1


def test_what_nobody_has_timed_says_how_to(book):
    made = times.timed(book.exhibit, book.results(), "testbed")
    assert all(r.seconds is None and r.means is None for r in made)
    table = times.time_table(book.exhibit, made, {})
    assert str(table.body[0][2]) == "not run: `rag-repro time mini.fig3 --dataset world-B@1000`"
    cell = made[0].cell
    assert times.worked(cell, book.results()) is None
    [small, large] = (f"`rag-repro time mini.fig3 --dataset world-B@{n}`" for n in (1000, 5000))
    for one in (times.clock_table(None, cell), time_figures.one_clock(None, cell)):
        assert repr(one) == f"Not run: {small}."
    assert "not among the rows" in repr(time_figures.one_clock(None, None))
    for note in (
        times.part_table(made),
        time_figures.parts(made),
        time_figures.quality_against_time(book.exhibit, made),
    ):
        assert repr(note) == f"Not run: {small}, then {large}."
    rows = exhibit_rows(book.paper, book.exhibit, book.results(), "testbed")
    shown = {"metrics": {"ms": "ms"}, "methods": {"dr_rag": "DR-RAG"}, "sizes": {}}
    note = time_figures.against_size(rows, **shown)
    assert repr(note) == "Not run: `rag-repro time mini.fig3 --tier testbed`."
    assert times.sizes(book.exhibit, book.results()) == {}


def test_parts_and_the_price_of_a_pair(book):
    fill(book, "public")
    table = times.part_table(times.timed(book.exhibit, book.results(), "public"))
    one, two = (dict(zip(table.head, row, strict=True)) for row in table.body[:2])
    assert one["classifier"] == "0.0 (0.0 %)"
    assert one["one pair"] == ""
    assert (two["classifier"], two["one pair"]) == ("117.0 (5.8 %)", "58.5")


def test_the_worked_answer_is_one_with_pairs_and_told_call_by_call(book):
    fill(book, "public")
    cell = book.exhibit.cells("public")[1]
    line = times.worked(cell, book.results())
    assert line["id"] == "q0"
    table = times.clock_table(line, cell)
    assert [row[0] for row in table.body] == [
        "of it, queries encoded",
        "search",
        "search",
        "the classifier judges",
        "the reader writes",
        "all in all",
    ]
    assert table.body[2][1:] == [2, "30.0", "2.9 %"]
    picture = time_figures.one_clock(line, cell)
    assert "search (1) 10.0 ms; search (2) 30.0 ms; classifier (2) 60.0 ms" in picture.alt


def test_the_saving_is_recomputed_from_the_printed_times(book):
    table = times.saved(times.printed_values(book.paper, "table2"), "dr_rag", "adaptive_rag")
    assert table.body == [["MuSiQue", "1.54", "6.16", "75.00"], ["mean", "", "", "75.00"]]


def test_the_papers_own_saving_is_the_claimed_one():
    drrag = papers.load("drrag")
    table = times.saved(times.printed_values(drrag, "table2"), "dr_rag", "adaptive_rag")
    assert [row[-1] for row in table.body] == ["76.70", "76.63", "69.44", "74.26"]


def test_figures_tell_their_points_in_words(book):
    fill(book, "public")
    made = times.timed(book.exhibit, book.results(), "public")
    printed = times.printed_values(book.paper, "table2")
    picture = time_figures.quality_against_time(book.exhibit, made, printed)
    assert isinstance(picture, Picture)
    assert "MuSiQue, DR-RAG: F1 60 at 2.00 times" in picture.alt
    assert "MuSiQue, Adaptive-RAG, paper: F1 31.8 at 6.16" in picture.alt
    assert "HotpotQA, DR-RAG: reader 1.755, classifier 0.117" in time_figures.parts(made).alt


def test_sizes_come_from_the_records_and_the_curve_from_its_rows(book):
    fill(book, "testbed", passages=1234)
    results = book.results()
    assert times.sizes(book.exhibit, results) == {"world-B@1000": 1234, "world-B@5000": 1234}
    rows = exhibit_rows(book.paper, book.exhibit, results, "testbed")
    picture = time_figures.against_size(
        rows,
        metrics={"ms": "milliseconds"},
        methods={"dr_rag": "DR-RAG"},
        sizes={"world-B@1000": 1000, "world-B@5000": 5000},
    )
    assert "milliseconds, DR-RAG, 1,000: 2028.0; milliseconds, DR-RAG, 5,000: 2028.0" in picture.alt


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
