"""The baselines' exposing checks, on records worked by hand."""

from __future__ import annotations

import pytest

from rag_repro.report import checks
from rag_repro.report.picture import Note
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

ROWS = {
    "self_rag": ExhibitMethod(
        "Self-RAG", "self_rag", "bm25", {"prompt": "selfrag", "spelling": "words"}
    ),
    "popular": ExhibitMethod("Adaptive Retrieval", "adaptive_retrieval", "bm25"),
    "drawn": ExhibitMethod(
        "shuffled", "adaptive_retrieval", "bm25", {"popularity": "shuffled"}, baseline="popular"
    ),
}


TIERS = ["public", "testbed"]


def exhibit(*methods, datasets=("world-B",)):
    grid = Grid(tier="testbed", datasets=datasets, methods=methods, settings={"k": (4,)})
    return Exhibit("x.checks", "t", "p", ("em",), ROWS, (grid,), own=True)


def filled(tmp_path, made, **lines):
    for cell in made.cells():
        with open_record(tmp_path, cell.condition, {}) as record:
            for line in lines.get(cell.keys["method"], ()):
                record.append(line)
    return Results(tmp_path)


def seen(name, hits, gold, **more):
    return {"id": name, "cluster": name, "hits": hits, "gold": gold, "scores": {}, **more}


def test_relevance_separates_gold_by_role(tmp_path):
    made = exhibit("self_rag")
    lines = [
        seen("q0", ["a", "b", "c"], [["static", 1, 1], ["dynamic", 2, 3]],
             critique=[["a", 0.9, 1], ["b", 0.6, 0], ["c", 0.5, 1]]),
        seen("q1", ["d", "e"], [["static", 1, 2], ["dynamic", 2, None]],
             critique=[["d", 0.3, 0], ["e", 0.7, 1]]),
        seen("q2", ["f"], [], critique=[["f", 0.99, None]]),
        seen("q3", [], [], decided=[0.1, False]),
    ]  # fmt: skip
    found = checks.separations(made.cells(), filled(tmp_path, made, self_rag=lines))
    assert [(s.role, s.gold, s.others) for s in found] == [
        ("all", 3, 2), ("static", 2, 2), ("dynamic", 1, 2),
    ]  # fmt: skip
    # .9 > .6, .3; .5 < .6, > .3; .7 > both: 5 of 6. c alone: 1 of 2.
    assert [s.area.estimate for s in found] == pytest.approx([5 / 6, 1, 1 / 2])
    assert all(s.area.n == 2 for s in found)
    table = checks.separation_table(made, filled(tmp_path, made), TIERS)
    assert table.body[0][:3] == ["world-B", "all", "3 / 2"]
    assert table.body[2][3].startswith("50.0 [")
    assert table.name == "tab-relevance"


def test_gold_alone_has_no_area_and_says_so(tmp_path):
    made = exhibit("self_rag")
    lines = [seen("q0", ["a"], [["static", 1, 1]], critique=[["a", 0.9, 1]])]
    found = checks.separations(made.cells(), filled(tmp_path, made, self_rag=lines))
    assert [s.area for s in found] == [None, None]
    shown = checks.separation_table(made, filled(tmp_path, made), TIERS)
    assert shown.body[0][3:] == ["-", "-"]


TABLES = (checks.rate_table, checks.separation_table, checks.shuffle_table)


@pytest.mark.parametrize("table", TABLES)
def test_without_records_one_sentence_says_what_to_run(table, tmp_path):
    made = exhibit("self_rag", "popular", "drawn")
    shown = table(made, Results(tmp_path), TIERS)
    assert isinstance(shown, Note)
    assert "not run: `rag-repro run x.checks --tier testbed`" in repr(shown).lower()
    other = table(made, Results(tmp_path), ["public"])
    assert "no such condition" in repr(other)


def test_what_is_not_recorded_stands_beside_what_is(tmp_path):
    made = exhibit("self_rag", "popular", "drawn", datasets=("world-B", "world-C"))
    lines = [decided("q0", 9.0, True, 1.0, 1) | {"critique": [["a", 0.9, 1], ["b", 0.1, 0]]}]
    for cell in made.cells():
        if cell.keys["dataset"] == "world-B":
            with open_record(tmp_path, cell.condition, {}) as record:
                record.append(lines[0])
    results = Results(tmp_path)
    command = "not run: `rag-repro run x.checks --tier testbed`"
    rates = checks.rate_table(made, results, TIERS).body
    assert [(row[0], row[1], str(row[4])) for row in rates] == [
        ("world-B", "Self-RAG", "always searches"),
        ("world-B", "Adaptive Retrieval", "always searches"),
        ("world-C", "Self-RAG", command),
        ("world-C", "Adaptive Retrieval", command),
    ]
    told = checks.separation_table(made, results, TIERS).body
    assert [(row[0], row[1]) for row in told] == [("world-B", "all"), ("world-C", "")]
    assert str(told[1][3]) == command
    pairs = checks.shuffle_table(made, results, TIERS).body
    assert [row[0] for row in pairs] == ["world-B", "world-C"]
    assert [str(cell) for cell in pairs[1][2:]] == [command, command, "", "", "", ""]


def test_records_that_tell_no_critique_are_not_to_be_run_again(tmp_path):
    made = exhibit("self_rag")
    shown = checks.separation_table(
        made, filled(tmp_path, made, self_rag=[seen("q", [], [])]), TIERS
    )
    assert shown.body == [["world-B", "", "", "-", ""]]


def test_rates_tell_whether_a_method_decides(tmp_path):
    made = exhibit("self_rag", "popular", "drawn")
    lines = {
        "self_rag": [decided(f"q{i}", 0.5, i < 1, 1.0, int(i < 1)) for i in range(4)],
        "popular": [decided(f"q{i}", 99.0, False, 1.0, 0) for i in range(4)],
        "drawn": [decided(f"q{i}", 0.1, True, 1.0, 1) for i in range(4)],
    }
    table = checks.rate_table(made, filled(tmp_path, made, **lines), TIERS)
    assert [row[1] for row in table.body] == ["Self-RAG", "Adaptive Retrieval"]  # no control
    assert table.body[0][2].startswith("25.0 [")
    assert [row[3:] for row in table.body] == [[4, "decides"], [4, "never searches"]]


def test_a_split_that_is_not_tested_on_is_named():
    assert checks.place({"dataset": "world-A", "split": "tune"}) == "world-A, tune"
    assert checks.place({"dataset": "hotpotqa"}) == "HotpotQA"


def decided(name, value, fetched, em, searches):
    return seen(name, [], [], decided=[value, fetched]) | {
        "scores": {"em": em}, "cost": {"retrievals": searches} if searches else {},
    }  # fmt: skip


def test_a_shuffled_signal_is_compared_question_by_question(tmp_path):
    made = exhibit("popular", "drawn")
    true = [decided("q0", 9.0, True, 1.0, 1), decided("q1", 90.0, False, 1.0, 0),
            decided("q2", 5.0, True, 0.0, 1), decided("q3", 99.0, False, 1.0, 0)]  # fmt: skip
    drawn = [decided("q0", 0.9, False, 0.0, 0), decided("q1", 0.1, True, 1.0, 1),
             decided("q2", 0.3, True, 0.0, 1), decided("q3", 0.4, True, 0.0, 1)]  # fmt: skip
    [one] = checks.shuffles(made, made.cells(), filled(tmp_path, made, popular=true, drawn=drawn))
    assert (one.against, one.keys["method"]) == ("popular", "drawn")
    assert (one.searched.estimate, one.control.estimate) == (50, 75)
    assert one.changed.estimate == 75  # q0, q1, q3
    assert one.calls.estimate == pytest.approx(0.25)
    assert one.em.estimate == pytest.approx(-50)
    [row] = checks.shuffle_table(made, filled(tmp_path, made), TIERS).body
    assert row[1] == "Adaptive Retrieval"
    assert row[4].startswith("75.0 [")
    assert row[5].startswith("+0.25 [")


def test_another_class_is_another_decision_although_both_search(tmp_path):
    made = exhibit("popular", "drawn")
    true = [decided("q0", "B", True, 1.0, 1), decided("q1", "C", True, 1.0, 3)]
    drawn = [decided("q0", "C", True, 1.0, 2), decided("q1", "C", True, 1.0, 3)]
    [one] = checks.shuffles(made, made.cells(), filled(tmp_path, made, popular=true, drawn=drawn))
    assert one.changed.estimate == 50


def test_classes_are_counted_with_who_answers_them_right(tmp_path):
    made = exhibit("popular", "drawn", "self_rag")
    lines = {
        "popular": [decided(f"q{i}", "BCC"[i], True, float(i > 0), 1) for i in range(3)],
        "drawn": [decided(f"q{i}", 0.5, True, float(i == 1), 1) for i in range(3)],
        "self_rag": [decided("q0", 0.5, True, 1.0, 1)],
    }
    results = filled(tmp_path, made, **lines)
    table = checks.class_table(made, results, TIERS, "popular", ["drawn", "self_rag"])
    assert table.body == [
        ["world-B", "B", 1, "0.0", "0.0", "100.0"],
        ["world-B", "C", 2, "100.0", "50.0", "-"],
    ]
    assert table.head[3:] == ["EM, Adaptive Retrieval", "EM, shuffled", "EM, Self-RAG"]
    assert isinstance(
        checks.class_table(made, Results(tmp_path / "none"), TIERS, "popular", []), Note
    )
