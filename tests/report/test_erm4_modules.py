"""ERM4's rewriter and filter on pages: synergy, confusion, letters, lessons."""

from __future__ import annotations

import json

import pytest

from rag_repro import data
from rag_repro.lm import hub
from rag_repro.lm.adapters import CARD
from rag_repro.report import arithmetic, checked, interactions, judges, letters
from rag_repro.report.picture import Note
from rag_repro.study import papers
from rag_repro.study.scores import Results
from rag_repro.study.services import Workshop

from . import erm4


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    root = tmp_path / "results" / "records"
    root.mkdir(parents=True)
    return Results(root)


def by_head(table, place=0):
    return dict(zip(table.head, table.body[place], strict=True))


def number(cell):
    return float(cell.split(" ")[0])


# --------------------------------------------------------------------------- synergy

RIGHT = {
    "direct": 1, "rewritten_none": 1, "original_all": 2, "plus": 4, "original_filtered": 3,
    "full": 8,
}  # fmt: skip


def filled(results):
    """Of ten questions so many are hit by each row."""
    asked = erm4.cells("table3", dataset="popqa")

    def line(cell, i):
        return {"scores": {"acc_words": float(i < RIGHT[cell.keys["method"]])}}

    erm4.fill(results, asked, 10, line)
    return asked


def test_synergy_is_what_both_gain_beyond_the_sum_of_each(results):
    asked = filled(results)
    table = interactions.table(asked, results, ["acc_words"], "x")
    rows = {row[2]: row for row in table.body}
    # Over all knowledge: 20 and 10 alone, 60 together; over none: 0 and 20, 70.
    assert [number(cell) for cell in rows["all knowledge"][3:]] == [20, 10, 60, 30]
    assert [number(cell) for cell in rows["no knowledge"][3:]] == [0, 20, 70, 50]
    assert rows["all knowledge"][-1].endswith("n 10")


def test_synergy_needs_all_four_rows(results):
    asked = [c for c in erm4.cells("table3", dataset="popqa") if c.keys["method"] != "full"]
    assert isinstance(interactions.table(asked, results, ["f1"]), Note)
    nobody = interactions.table(erm4.cells("table3"), results, ["f1"], "Synergy")
    assert "rag-repro run erm4.table3" in repr(nobody)
    assert "rag-repro train erm4-rewriter-testbed" in repr(nobody)


def test_printed_sums_are_those_of_the_papers_table():
    table = interactions.printed(papers.load("erm4"), "table3", ("hit",), 300)
    rows = {tuple(row[:3]): row[3:] for row in table.body}
    found = rows["CAmbigNQ", rows_symbol(table), "all knowledge"]
    assert found == ["+4.00", "+5.67", "+10.33", "+0.66", "+2"]
    assert rows["PopQA", rows_symbol(table), "no knowledge"][:3] == ["+0.34", "+5.00", "+9.00"]


def rows_symbol(table):
    return table.body[0][1]


# ---------------------------------------------------------------------------- filter


def judged(cell, i):
    """A gold passage with the answer, a step, and two others; the last label wrong."""
    return {
        "hops": 2,
        "filter": [
            ["a", "entailment", 0.9, "static", 1],
            ["b", "neutral", 0.4, "dynamic", 0],
            ["c", "contradiction", 0.1, "other", 0],
            ["d", "entailment" if i % 2 else "neutral", 0.6 if i % 2 else 0.2, "answer", 1],
        ],
    }


def test_labels_are_counted_by_what_a_passage_is(results):
    asked = erm4.cells("filters", "strong", "weak", dataset="2wikimultihopqa")
    erm4.fill(results, asked, 4, judged)
    shown = judges.confusion(erm4.exhibit("filters"), asked, results, Workshop(), "x", "tab-x")
    rows = {(row[1], row[2]): row[3:6] for row in shown.body}
    strong = erm4.exhibit("filters").methods["strong"].label
    assert rows[strong, judges.WITH] == [4, 0, 0]
    assert rows[strong, judges.STEP] == [0, 0, 4]
    assert rows[strong, judges.STRING] == [2, 0, 2]
    assert rows[strong, judges.OTHER] == [0, 4, 0]
    assert (strong, judges.NAMESAKE) not in rows


def test_a_step_is_right_to_be_dropped_under_the_strong_hypothesis_alone(results):
    asked = erm4.cells("filters", "strong", "weak", dataset="2wikimultihopqa")
    erm4.fill(results, asked, 4, judged)
    table = judges.quality(erm4.exhibit("filters"), asked, results, "x", "tab-x")
    strong, weak = (by_head(table, place) for place in (0, 1))
    # Of sixteen: gold with an answer, steps and others are right, of four others two.
    assert number(strong["right, %"]) == 87.5
    assert number(weak["right, %"]) == 62.5
    assert (strong["entailing everything, %"], weak["entailing everything, %"]) == ("25.0", "50.0")
    assert number(strong["better than entailing everything, points"]) == 62.5
    assert number(strong["precision, %"]) == number(weak["precision, %"]) == 66.7
    assert (number(strong["recall, %"]), number(weak["recall, %"])) == (100, 50)
    assert number(strong["AUC, %"]) == 100


def test_a_filter_that_keeps_nothing_has_no_precision(results):
    asked = erm4.cells("filters", "weak", dataset="hotpotqa")
    rows = [["a", "neutral", None, "gold", 1], ["b", "neutral", None, "other", 0]]
    erm4.fill(results, asked, 3, lambda cell, i: {"filter": rows})
    row = by_head(judges.quality(erm4.exhibit("filters"), asked, results))
    assert row["precision, %"] == "none"
    assert number(row["recall, %"]) == 0
    assert row["AUC, %"] == ""


def test_where_nobody_knows_what_is_gold_nothing_is_judged(results):
    asked = erm4.cells("filters", "strong", dataset="nq")
    erm4.fill(results, asked, 3, lambda cell, i: {"filter": [["a", "neutral", 0.1, None, 0]]})
    for shown in (
        judges.quality(erm4.exhibit("filters"), asked, results),
        judges.confusion(erm4.exhibit("filters"), asked, results, Workshop()),
    ):
        assert isinstance(shown, Note)


def test_one_of_a_gold_passages_name_is_told_apart_on_a_world(results):
    world = data.load("world-B", split="test")
    by_name = {}
    for passage in world.corpus.passages:
        by_name.setdefault(passage.title.partition(" (")[0], []).append(passage)
    gold_of = {g: q for q in world.questions for g in q.gold_ids}
    question, other = next(
        (gold_of[one.id], two)
        for same in by_name.values()
        for one in same
        for two in same
        if one.id in gold_of and two.id not in gold_of[one.id].gold_ids and one.title != two.title
    )
    asked = erm4.cells("filters", "weak", dataset="world-B")
    row = [other.id, "contradiction", 0.2, "other", 0]
    erm4.fill(results, asked, 1, lambda cell, i: {"id": question.id, "filter": [row]})
    shown = judges.confusion(erm4.exhibit("filters"), asked, results, Workshop())
    assert [line[2:6] for line in shown.body] == [[judges.NAMESAKE, 0, 1, 0]]


def test_a_gold_passage_stays_gold_whatever_its_name():
    line = {"id": "q", "cluster": "q", "filter": [["a", "neutral", 0.1, "gold", 1]]}
    [row] = judges._rows([line], "weak", lambda question, passage: True)
    assert row[0] == judges.WITH


# ------------------------------------------------------------------- letters, printed


def test_letters_are_counted_as_the_released_score_does():
    rows = {(row[0], row[1]): row[3:] for row in letters.table().body}
    assert rows["Neon", "Helium"] == ["0.0", "100.0", "0.0", "0.0", "1"]
    assert rows["1", "It was in 1912."][:3] == ["100.0", "100.0", "0.0"]
    assert rows["London", "Paris"][1] != "0.0"
    assert rows["Paris", "Paris"] == ["100.0"] * 4 + ["1"]
    assert rows["Paris | City of Light", "Paris"][1] < "50"


def test_printed_differences_and_sources():
    gains = arithmetic.gains(papers.load("erm4"), "table1", "full", "direct", metric="hit")
    table = arithmetic.listed({"all": gains}, "x")
    assert table.body[0] == ["CAmbigNQ", "+8.66"]
    assert table.body[-1] == ["mean", "+8.61"]
    sets = arithmetic.independent({"one": ["nq", "ambignq", "popqa"]}, {"nq": "N", "ambignq": "N"})
    assert sets.body == [["one", 3, 2, "NQ, AmbigNQ, PopQA"]]


# ----------------------------------------------------------------------------- cards


def card(folder, name, lessons, losses):
    (folder / name).mkdir(parents=True)
    told = {
        "base": {"name": "smollm2-135m", "sha256": "0" * 64},
        "lessons": lessons,
        "steps": 7,
        "seconds": 120,
        "held_out_loss": losses,
    }
    (folder / name / CARD).write_text(json.dumps(told))
    (folder / name / hub.ADAPTER).write_bytes(b"")
    (folder / name / "adapter_config.json").write_text("{}")


def test_kept_and_refused_stand_in_the_card(tmp_path, monkeypatch):
    root = tmp_path / "artifacts"
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(root))
    source = "rewriting:world-A, 57 of 600 that testbed-reader does better with"
    card(root, "erm4-rewriter-testbed", {source: 200}, {source: 0.5})
    plain = "rewriting:world-A"
    card(root, "erm4-rewriter-testbed-unchecked", {plain: 2000}, {})
    names = ["erm4-rewriter-testbed", "erm4-rewriter-testbed-unchecked"]
    checked_, all_ = checked.rewriters(names).body
    assert checked_[1:] == ["world-A", "testbed-reader", 57, 543, 200, 7, 2, "0.500"]
    assert all_[1:] == ["world-A", "nobody", "all", 0, 2000, 7, 2, ""]
    taken, refused = "filter:world-A-10 strong, entailment", "filter:world-A-10 strong, neutral"
    card(root, "erm4-filter", {taken: 30, refused: 10}, {refused: 0.25})
    first, second = checked.filters(["erm4-filter"]).body
    assert first == ["erm4-filter", "world-A-10", "strong", "entailment", 30, 7, 2, ""]
    assert second == ["", "world-A-10", "strong", "neutral", 10, "", "", "0.250"]
    [row] = checked.filters(["erm4-filter-testbed"]).body
    assert "rag-repro train erm4-filter-testbed" in str(row[1])


def test_lessons_are_shown_with_what_is_to_be_written():
    from rag_repro.training import rewriting

    table = checked.lessons(rewriting.rewriting("world-A", 0, questions=1), 2)
    assert [row[0].split("\n")[0][:10] for row in table.body] == ["Question: "] * 2
    assert "**" in table.body[0][1]
    assert "**" not in table.body[1][1]
