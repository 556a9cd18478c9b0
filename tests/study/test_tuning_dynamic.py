"""What dynamic retrieval is tuned to, out of records made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rag_repro import cli
from rag_repro.study import papers, tuning_dynamic
from rag_repro.study.exhibits import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.strict import StudyError
from rag_repro.study.tuning_dynamic import Match, chosen, matching

ROWS = {
    "dragin": ExhibitMethod("RIND", "dynamic", "bm25", {}),
    "fl": ExhibitMethod("FL", "dynamic", "bm25", {"timing": "window", "query": "last_tokens"}),
}
CONTROLS = {
    "entropy": ExhibitMethod("H", "dynamic", "bm25", {"factors": ["entropy"]}),
    "surprise": ExhibitMethod("1 - p", "dynamic", "bm25", {"factors": ["surprise"]}),
    "no_entropy": ExhibitMethod("a s", "dynamic", "bm25", {"factors": ["attention", "meaning"]}),
    "plain": ExhibitMethod("RIND", "dynamic", "bm25", {}),
}
ALIKE = {"reader": "smollm2-135m", "split": "tune"}
GRIDS = (
    Grid("testbed", ("world-A",), ("dragin",), {"threshold": (0.1, 0.2, 0.4)}, **ALIKE),
    Grid("testbed", ("world-A",), ("fl",), {"window": (16, 25)}, **ALIKE),
)
# [entropy, attention, meaning, surprise] of four words, of which two gave an alarm.
SIGNALS = [[2.0, 0.1, 1.0, 0.3], [3.0, 0.4, 1.0, 0.2], [1.0, 0.9, 0.0, 0.9], [0.5, 0.5, 1.0, 0.7]]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The exhibit x.tuning, and a function that records one of its cells."""
    exhibit = Exhibit("x.tuning", "t", "p", ("em",), ROWS, GRIDS, own=True)
    tested = Exhibit("x.table", "t", "p", ("em",), CONTROLS, (), own=True)
    paper = SimpleNamespace(exhibits={"table": tested, "tuning": exhibit})
    monkeypatch.setattr(papers, "exhibit", lambda name: (paper, exhibit))

    def fill(row, value, ems, searches, told=(), first=0):
        [cell] = [
            c for c in exhibit.cells() if row == c.keys["method"] and value in c.keys.values()
        ]
        with open_record(tmp_path, cell.condition, {}) as record:
            for i, (em, n) in enumerate(zip(ems, searches, strict=True), start=first):
                line = {"id": f"q{i}", "cluster": f"q{i}", "hits": [], "scores": {"em": float(em)}}
                entry = told[i] if told else {"alarms": n, "judged": 4, "signals": []}
                entry = {"drafts": 1, "again": False, "found": [], **entry}
                record.append({**line, "cost": {"retrievals": n}, "dynamic": entry})

    return fill, tmp_path


def fill_all(fill):
    fill("dragin", 0.1, (1, 0), (9, 8))
    told = [{"alarms": 2, "signals": SIGNALS[:3]}, {"alarms": 0, "signals": SIGNALS[3:]}]
    fill("dragin", 0.2, (0, 1), (2, 0), told)
    fill("dragin", 0.4, (0, 0), (0, 0))
    fill("fl", 16, (0, 0), (3, 3))
    fill("fl", 25, (0, 1), (4, 4))


def test_the_best_em_and_of_equal_ones_the_fewest_searches(made):
    fill, folder = made
    fill_all(fill)
    first, second, *_ = chosen("x.tuning", "world-A", folder)
    assert (first.row, first.knob, first.value, first.n) == ("dragin", "threshold", 0.2, 2)
    assert first.tried == {0.1: (50, 8.5), 0.2: (50, 1), 0.4: (0, 0)}
    assert (second.row, second.knob, second.value) == ("fl", "window", 25)
    assert (
        str(second) == "fl: window 25 on 2 questions (EM, searches: 16: 0.0, 3.00, 25: 50.0, 4.00)"
    )


def test_controls_alarm_at_as_many_words_of_the_chosen_cell(made):
    fill, folder = made
    fill_all(fill)
    matches = [c for c in chosen("x.tuning", "world-A", folder) if isinstance(c, Match)]
    by_row = {match.row: match for match in matches}
    assert list(by_row) == ["random", "entropy", "surprise", "no_entropy"]
    assert by_row["random"] == Match("random", "rate", 0.5, 0.5)
    # Two of four words: of H 3 and 2 (above 1.5), of 1 - p 0.9 and 0.7, of a s 0.5 and 0.4.
    assert by_row["entropy"] == Match("entropy", "threshold", 1.5, 0.5)
    assert by_row["surprise"] == Match("surprise", "threshold", 0.5, 0.5)
    assert by_row["no_entropy"] == Match("no_entropy", "threshold", 0.25, 0.5)
    assert str(by_row["random"]) == "random: rate 0.5, an alarm at 50.00 % of the words"


@pytest.mark.parametrize(
    ("values", "wanted", "threshold"),
    [
        ([1.0, 2.0, 3.0], 1, 2.5),
        ([1.0, 2.0, 3.0], 3, 0.5),
        ([1.0, 2.0, 3.0], 0, 3.03),
        ([1.0, 2.0, 2.0, 2.0], 2, 1.5),
        ([2.0, 2.0], 1, 2.02),  # none and two are as near: the fewer alarms
        ([0.0, 0.0, 0.4], 2, 0.2),  # words without meaning are above no threshold
        ([0.12344, 0.12346], 1, 0.1247),  # four digits part them no more
    ],
)
def test_a_threshold_with_so_many_values_above_it(values, wanted, threshold):
    got = matching(values, wanted)
    assert got == pytest.approx(threshold)


def test_what_is_missing_is_told_with_the_command(made):
    fill, folder = made
    with pytest.raises(
        StudyError, match=r"rag-repro run x.tuning --dataset world-A --method dragin"
    ):
        chosen("x.tuning", "world-A", folder)
    fill_all(fill)
    with pytest.raises(StudyError, match="it has: world-A"):
        chosen("x.tuning", "world-B", folder)
    fill("fl", 16, (1,), (3,), first=2)
    with pytest.raises(StudyError, match=r"not of the same questions.*--method fl"):
        chosen("x.tuning", "world-A", folder)


def test_a_row_that_nobody_has_run_holds_up_no_other(made):
    fill, folder = made
    fill("dragin", 0.1, (0,), (9,))
    with pytest.raises(StudyError, match=r"--method dragin"):
        chosen("x.tuning", "world-A", folder)  # one that was begun does
    fill("dragin", 0.2, (1,), (2,), [{"alarms": 1, "signals": SIGNALS}])
    fill("dragin", 0.4, (0,), (0,))
    rows = [line.row for line in chosen("x.tuning", "world-A", folder)]
    assert rows == ["dragin", "random", "entropy", "surprise", "no_entropy"]


def test_records_without_signals_are_refused(made):
    fill, folder = made
    fill("dragin", 0.1, (1,), (9,), [{"alarms": 1, "judged": 4}])
    fill("dragin", 0.2, (0,), (9,))
    fill("dragin", 0.4, (0,), (9,))
    with pytest.raises(StudyError, match="no signals"):
        chosen("x.tuning", "world-A", folder)


def test_nothing_is_tuned_on_test_questions(made, monkeypatch):
    _, folder = made
    tested = Exhibit(
        *("x.tuning", "t", "p", ("em",), ROWS),
        (
            Grid(
                "testbed",
                ("world-B",),
                ("dragin",),
                {"threshold": (0.1, 0.2)},
                reader="smollm2-135m",
            ),
        ),
        own=True,
    )
    monkeypatch.setattr(papers, "exhibit", lambda name: (None, tested))
    with pytest.raises(StudyError, match="test questions"):
        chosen("x.tuning", "world-B", folder)


def test_the_command_prints_every_line(made, capsys):
    fill, folder = made
    fill_all(fill)
    assert cli.main(["tune", "x.tuning", "--dataset", "world-A", "--results", str(folder)]) in (
        0,
        None,
    )
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "world-A"
    assert len(told) == 1 + 2 + 4


def test_dragins_own_exhibit_is_of_this_kind():
    paper, exhibit = papers.exhibit("dragin.tuning")
    assert tuning_dynamic.varies(exhibit)
    assert tuning_dynamic.REFERENCE in exhibit.methods
    assert set(tuning_dynamic._without(paper)) == {
        *("no_entropy", "no_attention", "no_meaning", "entropy", "surprise")
    }
    assert not tuning_dynamic.varies(papers.exhibit("drrag.outcomes")[1])


def with_rates(monkeypatch):
    """The exhibit tries rates of random timing besides."""
    rows = {**ROWS, "random": ExhibitMethod("r", "dynamic", "bm25", {"timing": "random"})}
    grid = Grid("testbed", ("world-A",), ("random",), {"rate": (0.1, 0.3, 0.5)}, **ALIKE)
    more = Exhibit("x.tuning", "t", "p", ("em",), rows, (*GRIDS, grid), own=True)
    paper = SimpleNamespace(exhibits={"tuning": more})
    monkeypatch.setattr(papers, "exhibit", lambda name: (paper, more))
    return more


def fill_rate(exhibit, folder, rate, searches):
    [cell] = [c for c in exhibit.cells() if c.keys.get("rate") == rate]
    with open_record(folder, cell.condition, {}) as record:
        for i, n in enumerate(searches):
            line = {"id": f"q{i}", "cluster": f"q{i}", "hits": [], "scores": {"em": 0.0}}
            record.append({**line, "cost": {"retrievals": n}})


def test_of_the_rates_tried_random_timing_has_the_one_that_searches_as_often(made, monkeypatch):
    fill, folder = made
    fill_all(fill)  # RIND, at 0.2, searches once a question
    exhibit = with_rates(monkeypatch)
    # Nobody has tried a rate yet: as many words.
    assert Match("random", "rate", 0.5, 0.5) in chosen("x.tuning", "world-A", folder)
    fill_rate(exhibit, folder, 0.1, (0, 1))
    with pytest.raises(StudyError, match="--method random"):
        chosen("x.tuning", "world-A", folder)
    fill_rate(exhibit, folder, 0.3, (1, 2))
    fill_rate(exhibit, folder, 0.5, (2, 3))
    [told] = [c for c in chosen("x.tuning", "world-A", folder) if "random:" in str(c)]
    assert str(told) == (
        "random: rate 0.1 on 2 questions, beside RIND's 1.00 searches "
        "(0.1: 0.50, 0.3: 1.50, 0.5: 2.50)"
    )
