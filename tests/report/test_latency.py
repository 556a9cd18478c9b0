"""Added time in percent, on times made to order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro.lm import hub
from rag_repro.report import latency
from rag_repro.study import records
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid
from rag_repro.study.scores import Results

METHODS = {
    "rag": ExhibitMethod("RAG", "single_step", "bm25"),
    "r2ag": ExhibitMethod("R²AG", "single_step", "bm25", {"max_new_tokens": 9}, baseline="rag"),
}
PLAIN = Grid("testbed", ("world-B@1000",), ("rag",), {"k": (5, 10)}, reader="smollm2-135m")
TRAINED = Grid(
    "testbed", ("world-B@1000",), ("r2ag",), {"k": (5, 10)},
    reader="smollm2-135m", trained={"r2ag": "r2ag-mixed"},
)  # fmt: skip
EXHIBIT = Exhibit("mini.time", "Time", "", ("seconds",), METHODS, (PLAIN, TRAINED), timed=True)


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    root = tmp_path / "results" / "records"
    root.mkdir(parents=True)
    return Results(root)


def fill(results):
    """R²AG: a tenth more in the reader at k = 5, a fifth at 10; and 0.1 s of encoding."""
    for cell in EXHIBIT.cells():
        ours = cell.keys["method"] == "r2ag"
        reading = 1.0 + ours * cell.keys["k"] / 50
        clock = [["reader", reading, 1]] + [["encoder", 0.1, 11]] * ours
        folder = records.times_beside(results.folder, "mini.time")
        with records.open_record(folder, cell.condition, {}) as record:
            for i in range(5):
                slow = 1 + i / 10
                turn = {
                    "seconds": slow * (reading + 0.1 * ours),
                    "clock": [[kind, slow * s, n] for kind, s, n in clock],
                }
                line = {"id": f"q{i}", "cluster": f"q{i}", "hits": [], "scores": {}}
                cost = {"prefilled_tokens": 100 + 10 * ours}
                record.append(line | {"cost": cost, "turns": [turn]})


def test_a_row_is_its_baseline_and_what_it_adds(results):
    fill(results)
    rows = latency.added(EXHIBIT, EXHIBIT.cells(), results)
    by = {(row.cell.keys["method"], row.cell.keys["k"]): row for row in rows}
    assert by["rag", 5].whole is None
    assert by["r2ag", 5].whole.estimate == pytest.approx(120)
    assert by["r2ag", 5].reader.estimate == pytest.approx(110)
    assert by["r2ag", 10].reader.estimate == pytest.approx(120)
    assert by["r2ag", 10].tokens == 110
    assert by["r2ag", 10].encoding == pytest.approx(0.12)


def test_table_and_figure_tell_it(results):
    fill(results)
    table = latency.table(EXHIBIT, EXHIBIT.cells(), results)
    row = dict(zip(table.head, table.body[2], strict=True))
    assert (row["k"], row["method"], row["encoding, ms"]) == (5, "R²AG", "120.0")
    assert row["in % of the baseline's"] == "120.0 [120.0, 120.0]"
    figure = latency.by_k(EXHIBIT, EXHIBIT.cells(), results, 0.8)
    assert "R²AG, in the reader, k 5: +10.0 %; R²AG, in the reader, k 10: +20.0 %" in figure.alt
    assert "R²AG, all in all, k 10: +30.0 %" in figure.alt


def test_rows_that_are_not_timed_are_named_below_the_table(results):
    fill(results)
    other = Grid("testbed", ("world-B@2000",), ("rag",), {"k": (5,)}, reader="smollm2-135m")
    exhibit = replace(EXHIBIT, grids=(*EXHIBIT.grids, other))
    made = latency.table(exhibit, exhibit.cells(), results)
    assert len(made.body) == len(EXHIBIT.cells()) + 1
    assert "Not run: RAG (world-B@2000, 5)." in made._repr_html_()


def test_what_nobody_has_timed_says_how_to(results):
    for made in (
        latency.table(EXHIBIT, EXHIBIT.cells(), results),
        latency.by_k(EXHIBIT, EXHIBIT.cells(), results, 0.8),
    ):
        assert "rag-repro time mini.time --dataset world-B@1000" in repr(made)
        assert "rag-repro train r2ag-mixed" in repr(made)


def test_writing_is_what_is_left_behind_the_first_token(results):
    methods = {
        "rag": ExhibitMethod("RAG", "single_step", "bm25", {"max_new_tokens": 9}),
        "rag_first": ExhibitMethod("first", "single_step", "bm25", {"max_new_tokens": 1}),
    }
    grid = replace(PLAIN, methods=("rag", "rag_first"), settings={"k": (5,)})
    exhibit = replace(EXHIBIT, methods=methods, grids=(grid,))
    # Of 5 tokens and the one that ends them 5 stand behind the first, of the 9 that are the most 8:
    # 1.3 seconds for 13 steps.
    for cell in exhibit.cells():
        whole = cell.keys["method"] == "rag"
        folder = records.times_beside(results.folder, "mini.time")
        with records.open_record(folder, cell.condition, {}) as record:
            for i, (tokens, seconds) in enumerate(((5, 0.9), (9, 0.4))):
                reading = 1.0 + whole * seconds
                turn = {"seconds": 2 + reading, "clock": [["reader", reading, 1]]}
                cost = {"prefilled_tokens": 100, "new_tokens": tokens if whole else 1}
                line = {"id": f"q{i}", "cluster": f"q{i}", "hits": [], "scores": {}}
                record.append(line | {"cost": cost, "turns": [turn]})
    table = latency.writing(exhibit, exhibit.cells(), results)
    [row] = [dict(zip(table.head, row, strict=True)) for row in table.body]
    assert (row["method"], row["tokens of an answer"]) == ("RAG", "7.0")
    assert row["ms a step behind the first token"].startswith("100.0 [")
