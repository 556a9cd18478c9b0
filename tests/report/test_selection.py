"""What selection did, out of records written by hand."""

from __future__ import annotations

import dataclasses

import pytest

from rag_repro.publish.places import here
from rag_repro.report import selection
from rag_repro.study import papers
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

# Eight pairs of two questions; both of q0's e and q1's a are gold beside their partner.
LINES = [
    {
        "id": "q0",
        "hits": ["a", "b"],
        "judged": [["a", "c", 0.9, 1], ["a", "e", 0.8, 2], ["b", "c", 0.6, 0], ["b", "e", 0.1, 1]],
    },
    {"id": "q1", "hits": [], "judged": [["a", "b", 0.4, 2], ["b", "c", 0.3, 1]]},
    {"id": "q2", "hits": [], "judged": [["a", "b", 0.99, None]]},
    {"id": "q3", "hits": []},
]


def test_pairs_at_a_threshold_by_hand():
    got = selection.at_threshold(LINES, 0.5)
    # Positive: 0.9, 0.8, 0.6 of six labelled ones; gold: 0.8 and 0.4; both: 0.8.
    assert (got.pairs, got.positive, got.gold) == (6, 3 / 6, 2 / 6)
    assert (got.precision, got.found, got.right) == (1 / 3, 1 / 2, 3 / 6)
    assert got.f1 == pytest.approx(2 / 5)
    assert selection.at_threshold(LINES, 0.8).positive == 2 / 6  # the threshold is positive
    none = selection.at_threshold(LINES, 0.95)
    assert (none.precision, none.found, none.f1) == (None, 0, 0)
    assert selection.at_threshold(LINES[2:], 0.5) is None


def test_a_pair_that_is_asked_twice_counts_once():
    assert selection.at_threshold([*LINES, LINES[0]], 0.5).pairs == 6


def test_the_best_threshold_is_the_one_nearest_to_a_half_of_equal_ones():
    by_f1 = selection.best(LINES)
    # From 0.31 to 0.40: both gold pairs among four positive ones, F1 2/3.
    assert by_f1.threshold == 0.40
    assert by_f1.f1 == pytest.approx(2 / 3)
    # From 0.61 to 0.80 as many verdicts are right, 4 of 6; 0.40 is the nearer to 0.5.
    by_right = selection.best(LINES, "right")
    assert by_right.threshold == 0.40
    assert by_right.right == pytest.approx(4 / 6)
    assert selection.best(LINES[2:]) is None


def test_only_useless_and_some_gold_removed():
    line = {
        "hits": ["a", "b"],
        "gold": [["static", 1, 1], ["dynamic", 2, None]],
        "judged": [["a", "c", 0.2, 1], ["b", "c", 0.2, 0], ["a", "e", 0.1, 2], ["b", "e", 0.1, 1]],
    }
    assert selection.some_gold_removed(line)
    assert not selection.only_useless_removed(line)
    only_c = {**line, "judged": line["judged"][:2]}
    assert selection.only_useless_removed(only_c)
    assert not selection.some_gold_removed(only_c)
    kept = {**only_c, "hits": ["a", "b", "c"]}
    assert not selection.only_useless_removed(kept)
    assert not selection.all_gold(line)
    assert selection.all_gold({"gold": [["static", 1, 1]]})
    assert not selection.all_gold({"gold": []})


# ------------------------------------------------------------- with records of a world

WORLD = "world-B@1000"


def cell_of(method, tier="testbed"):
    cells = papers.exhibit("drrag.table5")[1].cells(tier)
    wanted = {"method": method, "k": 4, "own_candidates": False}
    first = next(c for c in cells if c.matches(wanted))
    return dataclasses.replace(first, condition=dataclasses.replace(first.condition, dataset=WORLD))


def write(root, cell, lines):
    with open_record(root, cell.condition, {}) as record:
        for line in lines:
            record.append({"cluster": line["id"], "scores": {}, **line})


@pytest.fixture
def recorded(tmp_path):
    """CFS on three questions: a pair accepted and one refused of each."""
    cfs = cell_of("cfs")
    judged = [["a", "b", 0.75, 2], ["a", "c", 0.25, 1]]
    lines = [{"id": f"q{i}", "hits": ["a", "b"], "judged": judged} for i in range(3)]
    write(tmp_path, cfs, lines)
    return cfs, Results(tmp_path)


def test_the_table_of_thresholds_has_the_chosen_one_beside_a_half(recorded):
    cfs, results = recorded
    table = selection.threshold_table([cfs, cell_of("cis")], results, "these")
    # Positive up to 0.75, negative from 0.25 on: everything between is perfect.
    assert table.body[0] == [
        "world-B",
        4,
        6,
        "50.0",
        "0.50",
        "100.0",
        "100.0",
        "0.50",
        "100.0 (at 0.5: 100.0)",
    ]
    assert str(table.body[1][2]).startswith("not run: `rag-repro ")
    assert len(table.body[1]) == len(table.head)
    assert len(table.body) == 2  # one cell alone is together with none


def test_thresholds_of_several_cells_are_chosen_together_as_well(recorded):
    cfs, results = recorded
    alone, _, together = selection.threshold_table([cfs, cfs], results, "these").body
    assert together[:2] == ["testbed, these together", 4]
    assert together[2:] == alone[2:]  # the same pairs, each once


def test_the_threshold_by_number_fed_is_the_one_nearest_to_the_paper():
    """On the records that the rows were chosen by: what paper.yaml has is what they choose."""
    paper = papers.load("drrag")
    printed = selection.printed_fed(paper)
    # By hand from table 5, k = 4: (3.61 + 3.43 + 3.03) / 3 and (3.82 + 3.75 + 3.41) / 3.
    assert printed == {"cis": pytest.approx(3.3567, abs=1e-4), "cfs": pytest.approx(3.66)}
    results = Results(here().records)
    for tier in ("public", "testbed"):
        cells = selection.tune_sweep(paper, tier)
        best = min(selection.fed(cells, results, printed), key=lambda one: one.off)
        rows = [c for c in paper.exhibit("table5").cells(tier) if c.keys["method"] == "cfs_fed"]
        assert {c.condition.configured.threshold for c in rows} == {best.threshold}


def test_what_is_fed_by_hand(tmp_path):
    paper = papers.load("drrag")
    cells = selection.tune_sweep(paper, "testbed")
    low, high = ([c for c in cells if c.condition.configured.threshold == at] for at in (0.6, 0.65))
    for cell, number in zip((*low, *high), (1, 2, 1, 1), strict=True):
        write(tmp_path, cell, [{"id": "q0", "hits": [], "scores": {"passages": number}}])
    told = selection.fed(cells, Results(tmp_path), {"cis": 1.0, "cfs": 2.5})
    # CIS hands on one at both; CFS two, half a passage short, then one, which is 1.5 short.
    assert [(f.threshold, f.off, f.questions) for f in told] == [(0.6, 0.5, 1), (0.65, 1.5, 1)]
