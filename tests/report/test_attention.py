"""Attention by layer and place, out of records written by hand."""

from __future__ import annotations

import pytest

from rag_repro.lm import hub
from rag_repro.report import attention
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

METHODS = {
    "rag": ExhibitMethod("RAG", "single_step", "bm25"),
    "r2ag": ExhibitMethod("R²AG", "single_step", "bm25", {"max_new_tokens": 9}, baseline="rag"),
}
GRID = Grid("testbed", ("world-B@1000",), ("rag", "r2ag"), {"k": (2,)}, reader="smollm2-135m")
EXHIBIT = Exhibit("mini.fig6", "Looks", "", (), METHODS, (GRID,))
PLAIN = {"tokens": [[2, 10], [2, 30]], "marks": [400, 800], "words": [[1000, 2000], [0, 4000]]}
OURS = {**PLAIN, "embeddings": [[300, 100], [500, 500]]}


@pytest.fixture(autouse=True)
def no_artifacts(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))


@pytest.fixture
def results(tmp_path):
    root = tmp_path / "records"
    root.mkdir()
    for cell in EXHIBIT.cells():
        told = OURS if cell.keys["method"] == "r2ag" else PLAIN
        with open_record(root, cell.condition, {}) as record:
            for i in range(2):
                line = {"id": f"q{i}", "cluster": f"q{i}", "hits": ["a", "b"], "scores": {}}
                record.append(line | {"attention": told})
    return Results(root)


def test_what_one_token_of_a_kind_gets_in_percent_by_layer():
    lines = [{"attention": OURS}, {"attention": OURS}, {"scores": {}}]
    # 300 and 100 ten-thousandths over two embeddings; 3000 over forty words; 400 over four marks
    assert attention.a_token(lines, "embeddings") == pytest.approx([2.0, 5.0])
    assert attention.a_token(lines, "words") == pytest.approx([0.75, 1.0])
    assert attention.a_token(lines, "marks") == pytest.approx([1.0, 2.0])
    assert attention.a_token([{"attention": PLAIN}], "embeddings") is None
    assert attention.a_token([{"attention": {**PLAIN, "tokens": []}}], "words") is None


def test_questions_weigh_alike_whatever_their_length():
    short = {"tokens": [[1, 1]], "marks": [0], "words": [[10_000]]}
    long = {"tokens": [[1, 99]], "marks": [0], "words": [[0]]}
    assert attention.a_token([{"attention": short}, {"attention": long}], "words") == 50.0


def test_places_have_an_embedding_before_its_text():
    table, names = attention.places([{"attention": OURS}], 2)
    assert names == ["e1", "d1", "e2", "d2"]
    assert table.tolist() == [[3.0, 10.0, 1.0, 20.0], [5.0, 0.0, 5.0, 40.0]]
    table, names = attention.places([{"attention": PLAIN}], 2)
    assert (names, table.tolist()) == (["d1", "d2"], [[10.0, 20.0], [0.0, 40.0]])
    assert attention.places([{"attention": OURS}], 3) is None


def test_figures_tell_it_in_words(results):
    lines = attention.by_layer(EXHIBIT, EXHIBIT.cells(), results, "Attention")
    assert lines.caption == "Attention; means of 2 questions"
    assert "R²AG: an embedding: 3.500 % over layers, 5.000 % in the deeper half" in lines.alt
    assert "RAG: a mark: 1.500 % over layers" in lines.alt
    assert "RAG: an embedding" not in lines.alt.replace("R²AG: an embedding", "")
    heat = attention.heat(EXHIBIT, EXHIBIT.cells(), results, shown=2)
    assert "R²AG, % over all layers: e1 4.00, d1 5.00, e2 3.00, d2 30.00" in heat.alt
    assert "RAG, % over all layers: d1 5.00, d2 30.00" in heat.alt


def test_without_records_both_say_how_to_make_them(tmp_path):
    results = Results(tmp_path / "none")
    for made in (
        attention.by_layer(EXHIBIT, EXHIBIT.cells(), results),
        attention.heat(EXHIBIT, EXHIBIT.cells(), results),
    ):
        assert repr(made) == "Not run: `rag-repro run mini.fig6 --tier testbed`."
