"""Statistics of data sets, worked out by hand, and beside the paper's own."""

from __future__ import annotations

import pytest

from rag_repro import data
from rag_repro.data.dataset import Corpus, Dataset
from rag_repro.report import datasets
from rag_repro.retrieval import BM25
from rag_repro.schema import Gold, Passage, Question
from rag_repro.study import papers
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results
from rag_repro.study.services import Workshop

TEXTS = {"a": "quiet", "b": "the old harbour", "c": "harbour mayor", "d": "a mayor"}
CORPUS = Corpus("small", tuple(Passage(i, f"Title {i}", text) for i, text in TEXTS.items()))
QUESTIONS = (
    Question("q1", "harbour mayor?", ("x",), gold=(Gold("c"),), candidates=("a", "b", "c")),
    Question("q2", "mayor", ("x",), gold=(Gold("a"), Gold("d")), candidates=("a", "d")),
)
SMALL = Dataset("small", QUESTIONS, CORPUS)


def words(text):
    return len(text.split())


def test_counts_are_means_over_questions():
    row = datasets.statistics(SMALL, count_tokens=words)
    # q1: 2 + (2 + 1) + (2 + 3) + (2 + 2); q2: 1 + (2 + 1) + (2 + 2)
    assert row == datasets.Statistics("small", 2, (14 + 8) / 2, 1.5, 2.5, None, 0)
    assert datasets.statistics(SMALL, count_tokens=words, name="nq10").dataset == "nq10"
    with pytest.raises(ValueError, match="small has no questions"):
        datasets.statistics(Dataset("small", (), CORPUS), count_tokens=words)


def test_map_of_rankings_by_hand():
    ranked = {"q1": ("b", "c", "a"), "q2": ("d", "a"), "other": ("a",)}
    # q1: gold at 2 -> 1/2; q2: both first -> 1
    assert datasets.mean_average_precision(QUESTIONS, ranked) == (75.0, 2)
    row = datasets.statistics(SMALL, count_tokens=words, ranked=ranked)
    assert (row.map, row.ranked) == (75.0, 2)
    assert datasets.mean_average_precision(QUESTIONS, {"q2": ("a", "d")}) == (100.0, 1)
    assert datasets.mean_average_precision(QUESTIONS, {}) == (None, 0)
    bare = [Question("q1", "?", ("x",), candidates=("a",))]
    assert datasets.mean_average_precision(bare, {"q1": ("a",)}) == (None, 0)


def test_a_ranking_that_was_cut_is_no_ranking():
    with pytest.raises(ValueError, match="'q1': 1 of its 3 candidates are not ranked"):
        datasets.mean_average_precision(QUESTIONS, {"q1": ("b", "c")})


def test_rankings_of_a_retriever_and_of_a_record_agree():
    search = BM25(CORPUS)
    ranked = datasets.ranked_by(search, QUESTIONS)
    assert ranked == {"q1": ("c", "b", "a"), "q2": ("d", "a")}
    lines = [{"id": i, "hits": list(hits)} for i, hits in ranked.items()]
    assert datasets.ranked_in(lines) == ranked
    assert datasets.ranked_in([{"id": "q1", "hits": [], "error": "too long"}]) == {}
    assert datasets.ranked_by(search, [Question("q", "?", ("x",))]) == {}


def test_the_testbeds_map_is_below_one_and_above_chance():
    ten = data.load("world-B-10@1000")
    search = BM25(ten.corpus)
    found, n = datasets.mean_average_precision(
        ten.questions, datasets.ranked_by(search, ten.questions)
    )
    assert n == 1000
    assert 45 < found < 95


def test_the_table_has_both_sides_of_each_figure():
    paper = papers.load("r2ag")
    ours = [
        datasets.Statistics("nq10", 269, 1600.0, 1.0, 10.0, 90.0, 60, asked=60),
        datasets.Statistics("world-B-10", 170, 900.5, 2.5, 10.0),
    ]
    table = datasets.table(paper, "table4", ours)
    rows = {row[0]: dict(zip(table.head, row, strict=True)) for row in table.body}
    nq = rows["NQ-10"]
    # What the paper tests on stands beside what there is here, and what was asked of that.
    assert [nq[f"to test on: {whose}"] for whose in ("paper", "ours")] == ["531", "269"]
    assert (nq["questions: paper"], nq["to train on: paper"]) == ("2655", "2124")
    assert nq["asked: ours"] == "60"
    assert (nq["MAP, %: paper"], nq["MAP, %: ours"]) == ("96.02", "90")
    world = rows["world-B-10"]
    assert (world["tokens: paper"], world["tokens: ours"], world["gold: ours"]) == (
        *("", "900.50"),
        "2.50",
    )
    assert rows["MuSiQue"]["MAP, %: ours"] == ""
    assert rows["DuReader (Chinese)"]["to train on: paper"] == "160"


def test_statistics_are_of_the_questions_that_cells_ask(tmp_path, monkeypatch):
    method = ExhibitMethod("RAG", "single_step", "bm25", {"own_candidates": True})
    grids = (
        Grid("testbed", ("world-B-10@1000",), ("rag",), {"k": (10,)}, reader="smollm2-135m", n=6),
        Grid("testbed", ("world-B-10@1000",), ("rag",), {"k": (5,)}, reader="smollm2-135m", n=9),
        Grid("public", ("nq10",), ("rag",), {"k": (10,)}, reader="smollm2-135m"),
    )
    exhibit = Exhibit("mini.table1", "", "", ("acc_line",), {"rag": method}, grids)
    monkeypatch.delenv(data.ENVIRONMENT, raising=False)
    monkeypatch.setattr(datasets, "counter", lambda reader: words)
    cell = exhibit.cells()[0]
    workshop = Workshop()
    first = workshop.dataset("world-B-10@1000", "test").first(6).questions
    root = tmp_path / "records"
    with open_record(root, cell.condition, {}) as record:
        for q in first:  # each list with its gold passages first
            hits = sorted(q.candidates, key=lambda name: name not in q.gold_ids)
            record.append({"id": q.id, "cluster": q.id, "hits": hits, "scores": {}})
    rows = datasets.of_cells(exhibit, Results(root), workshop, ["public", "testbed"], method="rag")
    [row] = rows  # real data is not at hand
    whole = len(workshop.dataset("world-B-10@1000", "test").questions)
    assert (row.dataset, row.questions, row.passages) == ("world-B-10@1000", whole, 10)
    assert row.asked == 6 < whole
    assert (row.map, row.ranked) == (100.0, 6)
    [five] = datasets.of_cells(exhibit, Results(root), workshop, ["testbed"], k=5)
    # Without a record of all ten nine are asked, none is answered, and MiniLM ranks.
    assert (five.asked, five.ranked) == (0, 9)
    assert 0 < five.map < 100
