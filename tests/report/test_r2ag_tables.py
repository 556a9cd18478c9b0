"""Small tables of R²AG's chapters, out of records written by hand."""

from __future__ import annotations

import pytest

from rag_repro.lm import hub
from rag_repro.report import attention_gold, drops
from rag_repro.report.table import Table
from rag_repro.study import papers
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

METHODS = {
    "rag": ExhibitMethod("RAG", "single_step", "bm25"),
    "cut": ExhibitMethod("cut", "single_step", "bm25", {"max_new_tokens": 9}, baseline="rag"),
}
GRID = Grid("testbed", ("world-B@1000",), ("rag", "cut"), {"k": (2,)}, reader="smollm2-135m")
EXHIBIT = Exhibit("mini.kept", "Kept", "", ("acc_line",), METHODS, (GRID,))


@pytest.fixture(autouse=True)
def no_artifacts(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))


@pytest.fixture
def results(tmp_path):
    root = tmp_path / "records"
    root.mkdir()
    return Results(root)


def put(results, method, lines):
    [cell] = [c for c in EXHIBIT.cells() if c.keys["method"] == method]
    with open_record(results.folder, cell.condition, {}) as record:
        for i, line in enumerate(lines):
            plain = {"id": f"q{i}", "cluster": f"q{i}", "hits": ["a", "b"], "scores": {}}
            record.append(plain | line)
    return cell


def said(prediction, right=0.0, **more):
    return {"prediction": prediction, "scores": {"acc_line": right}, **more}


def left(given, still):
    return {"compressed": {"before": 10, "after": 5, "gold": [], "answer": [given, still]}}


def rows_of(table):
    assert isinstance(table, Table)
    return [dict(zip(table.head, row, strict=True)) for row in table.body]


# ------------------------------------------------------------------ what an intervention changes


# ------------------------------------------------------------------ drops in percent


def test_a_drop_is_what_is_not_left_of_the_whole():
    from rag_repro.evaluation.statistics import Interval

    lost = drops.lost_of(Interval(80.0, 70.0, 95.0, 40))
    assert (lost.estimate, lost.lo, lost.hi, lost.n) == (20.0, 5.0, 30.0, 40)


def test_the_papers_drops_stand_in_columns_of_their_own(results):
    paper = papers.load("r2ag")
    exhibit = paper.exhibit("table3")
    held = {"r2ag": [1.0, 1.0, 0.0, 0.0], "no_qdm": [1.0, 0.0, 0.0, 0.0]}
    for cell in exhibit.cells("testbed"):
        if cell.keys.get("seed") == 0 and cell.keys["method"] in held:
            with open_record(results.folder, cell.condition, {}) as record:
                for i, right in enumerate(held[cell.keys["method"]]):
                    line = {"id": f"q{i}", "cluster": f"q{i}", "hits": []}
                    record.append(line | {"scores": {"acc_line": right}})
    [row] = rows_of(drops.table(paper, "table3", results, ["testbed"], "acc_line"))
    assert row["method"] == "without the matching loss"
    assert row["drop, % of the whole [95 %], n"].startswith("50.0 [")
    assert (row["paper: NQ-10"], row["paper: NQ-20"]) == ("7.07", "0.27")


# ------------------------------------------------------------------ attention on gold


def looked(words, gold, embeddings=None):
    tokens = [[2, 10]] * len(words[0])
    told = {"tokens": tokens, "marks": [0] * len(words), "words": words}
    if embeddings:
        told["embeddings"] = embeddings
    return {
        "attention": told,
        "gold": [["static", 1, rank] for rank in gold],
        "hits": [*"abcdef"[: len(words[0])]],
    }


def test_gold_above_the_best_other_by_layer():
    # Two layers, three passages, the second gold: the first is the best other.
    lines = [looked([[1000, 3000, 5000], [500, 200, 0]], [2])]
    points, n = attention_gold.over_best_other(lines)
    assert (points.tolist(), n) == (pytest.approx([20.0, -3.0]), 1)


def test_an_embedding_counts_with_its_passage():
    lines = [looked([[1000, 3000]], [2], embeddings=[[500, 1000]])]
    points, _ = attention_gold.over_best_other(lines)
    assert points.tolist() == pytest.approx([25.0])


def test_a_list_without_gold_or_without_another_does_not_count():
    lines = [looked([[1, 2]], []), looked([[1, 2]], [1, 2]), {"scores": {}, "hits": []}]
    assert attention_gold.over_best_other(lines) is None


def test_by_rank_gold_and_others_stand_apart(results, monkeypatch):
    monkeypatch.setattr(attention_gold, "LEAST", 1)
    lines = [looked([[1000, 3000]], [2]), looked([[2000, 5000]], [1])]
    cell = put(results, "rag", lines)
    first, second = rows_of(attention_gold.by_rank([cell], results))
    assert (first["rank"], first["gold, all layers, %"], first["others, all layers, %"]) == (
        *(1, "20.00"),
        "10.00",
    )
    assert (second["gold, layers 1 to 4, %"], second["gold passages"]) == ("30.00", 1)


def test_means_of_few_passages_are_left_out(results):
    cell = put(results, "rag", [looked([[1000, 3000]], [2])])
    first, _ = rows_of(attention_gold.by_rank([cell], results))
    assert (first["others, all layers, %"], first["others"]) == ("", 1)


def test_the_figure_says_its_numbers(results):
    cell = put(results, "rag", [looked([[1000, 3000], [1000, 2000]], [2])])
    picture = attention_gold.by_layer(EXHIBIT, [cell], results, "Gold")
    assert "RAG: +15.00 points in layers 1 to 4, +15.00 over all; 1 questions" in picture.alt
