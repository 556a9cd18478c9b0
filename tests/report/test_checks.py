"""The baselines' exposing checks, on records worked by hand."""

from __future__ import annotations

import pytest

from rag_repro.report import checks
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


def exhibit(*methods):
    grid = Grid(tier="testbed", datasets=("world-B",), methods=methods, settings={"k": (4,)})
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
    found = checks.separations(made, filled(tmp_path, made, self_rag=lines))
    assert [(s.role, s.gold, s.others) for s in found] == [
        ("all", 3, 2), ("static", 2, 2), ("dynamic", 1, 2),
    ]  # fmt: skip
    # .9 > .6, .3; .5 < .6, > .3; .7 > both: 5 of 6. c alone: 1 of 2.
    assert [s.area.estimate for s in found] == pytest.approx([5 / 6, 1, 1 / 2])
    assert all(s.area.n == 2 for s in found)
    table = checks.separation_table(found)
    assert table.body[0][:3] == ["world-B", "all", "3 / 2"]
    assert table.body[2][3].startswith("0.500 [")


def test_gold_alone_has_no_area_and_says_so(tmp_path):
    made = exhibit("self_rag")
    lines = [seen("q0", ["a"], [["static", 1, 1]], critique=[["a", 0.9, 1]])]
    found = checks.separations(made, filled(tmp_path, made, self_rag=lines))
    assert [s.area for s in found] == [None, None]
    assert checks.separation_table(found).body[0][3:] == ["-", "-"]


def test_without_records_there_is_nothing(tmp_path):
    assert checks.separations(exhibit("self_rag"), Results(tmp_path)) == []
    assert checks.shuffles(exhibit("popular", "drawn"), Results(tmp_path)) == []


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
    [one] = checks.shuffles(made, filled(tmp_path, made, popular=true, drawn=drawn))
    assert (one.against, one.keys["method"]) == ("popular", "drawn")
    assert (one.searched.estimate, one.control.estimate) == (50, 75)
    assert one.changed == 75  # q0, q1, q3
    assert one.calls.estimate == pytest.approx(0.25)
    assert one.em.estimate == pytest.approx(-50)
    table = checks.shuffle_table([one], {k: m.label for k, m in ROWS.items()})
    assert table.body[0][1] == "Adaptive Retrieval"
    assert table.body[0][4] == "75.0"


def test_another_class_is_another_decision_although_both_search(tmp_path):
    made = exhibit("popular", "drawn")
    true = [decided("q0", "B", True, 1.0, 1), decided("q1", "C", True, 1.0, 3)]
    drawn = [decided("q0", "C", True, 1.0, 2), decided("q1", "C", True, 1.0, 3)]
    [one] = checks.shuffles(made, filled(tmp_path, made, popular=true, drawn=drawn))
    assert one.changed == 50
