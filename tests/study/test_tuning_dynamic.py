"""What dynamic retrieval is tuned to, out of records made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag_repro import cli
from rag_repro.study import papers, tuning
from rag_repro.study.exhibits import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.tuning import (
    ALWAYS,
    KNOBS,
    Choice,
    Match,
    Tried,
    chosen,
    matching,
    printed_searches,
)
from rag_repro.study.yaml_files import StudyError

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

    def fill(row, value, ems, searches, told=(), first=0, kind="bridge"):
        [cell] = [
            c for c in exhibit.cells() if row == c.keys["method"] and value in c.keys.values()
        ]
        with open_record(tmp_path, cell.condition, {}) as record:
            for i, (em, n) in enumerate(zip(ems, searches, strict=True), start=first):
                line = {"id": f"q{i}", "kind": kind, "cluster": f"q{i}", "hits": []}
                line |= {"scores": {"em": float(em), "f1": float(em)}}
                entry = told[i - first] if told else {"alarms": n, "judged": 4, "signals": []}
                entry = {"drafts": 1, "again": False, "found": [], **entry}
                record.append({**line, "cost": {"retrievals": n}, "dynamic": entry})

    return fill, tmp_path


def fill_all(fill):
    fill("dragin", 0.1, (0, 0), (9, 8))
    told = [{"alarms": 2, "signals": SIGNALS[:3]}, {"alarms": 0, "signals": SIGNALS[3:]}]
    fill("dragin", 0.2, (0, 1), (2, 0), told)
    fill("dragin", 0.4, (0, 0), (0, 0))
    fill("fl", 16, (0, 0), (3, 3))
    fill("fl", 25, (0, 1), (4, 4))


def test_the_best_em_with_its_curve_and_the_searches_that_the_paper_prints(made):
    fill, folder = made
    fill_all(fill)
    first, second, *_ = chosen("x.tuning", "world-A", folder)
    assert (first.row, first.knob, first.value, first.n) == ("dragin", "threshold", 0.2, 2)
    assert first.tried[0.2] == Tried(em=50, f1=50, searches=1, alarms=1)
    assert (second.row, second.knob, second.value, second.matched) == ("fl", "window", 25, None)
    assert str(second) == (
        "fl: window 25 by the best EM on 2 questions (the grid ends there: widen it), none by the "
        "2.631 searches that the paper prints "
        "(EM, F1, searches: 16: 0.0, 0.0, 3.00; 25: 50.0, 50.0, 4.00)"
    )


def choice(knob="threshold", wanted=None, **tried):
    """A choice whose values are each (EM, searches), with one alarm a search and F1 as EM."""
    made = {float(v): Tried(em, em + n / 100, n, n) for v, (em, n) in tried.items()}
    return Choice("dragin", knob, made, 60, wanted)


def test_of_tied_values_the_middle_one_is_taken():
    odd = {"0.05": (30, 4), "0.1": (30, 3), "0.2": (30, 2), "0.4": (10, 1)}
    assert choice(**odd).value == 0.1
    # Two are in the middle: the one with the better F1, which here is that with more searches.
    assert choice(**odd, **{"0.8": (30, 0)}).value == 0.1
    assert choice(**{"0.1": (30, 3), "0.2": (30.0000000001, 9)}).value == 0.2
    assert choice(**{"0.1": (29, 3), "0.2": (30, 2), "0.4": (28, 1)}).value == 0.2


def test_a_matched_value_searches_within_a_quarter_of_what_is_printed():
    tried = {"0.05": (30, 4.3), "0.1": (20, 2.3), "0.2": (10, 1.4)}
    assert choice(wanted=2.55, **tried).matched == 0.1
    assert choice(wanted=2.56, **tried).matched is None
    assert choice(**tried).matched is None
    assert printed_searches("hotpotqa_train") == 3.505
    assert printed_searches("world-A") == printed_searches("2wikimultihopqa_train") == 2.631
    assert printed_searches("musique") is None


@pytest.mark.parametrize(
    ("knob", "best", "searches", "is_open"),
    [
        ("threshold", 0.05, 4, True),
        ("threshold", 0.4, 1, True),
        ("threshold", 0.1, 2, False),
        ("threshold", 0.4, 0, False),  # at which nothing gives an alarm: it is never
        *((knob, always, 9, False) for knob, always in ALWAYS.items()),
        ("rate", 0.9, 9, True),
    ],
)
def test_a_best_value_at_the_end_of_a_grid_asks_for_more(knob, best, searches, is_open):
    others = {str(v): (10, 3) for v in (0.05, 0.1, 0.4) if v != best}
    made = choice(knob, **others, **{str(best): (50, searches)})
    assert made.value == best
    assert made.is_open == is_open == ("widen it" in str(made))


def test_only_questions_of_the_kinds_that_decide_choose(made, monkeypatch):
    fill, folder = made
    told = [{"alarms": 1, "signals": SIGNALS}]
    for value, ems in ((0.1, (1, 0, 0)), (0.2, (0, 0, 0)), (0.4, (0, 0, 0))):
        fill("dragin", value, ems, (1,) * 3, told * 3)
    for value, right in ((0.1, 0), (0.2, 0), (0.4, 1)):
        fill("dragin", value, (right,) * 9, (1,) * 9, told * 9, first=3, kind="comparison")
    assert chosen("x.tuning", "world-A", folder)[0].value == 0.4
    paper, whole = papers.exhibit("x.tuning")
    only = replace(whole, grids=tuple(replace(g, kinds=("bridge",)) for g in whole.grids))
    monkeypatch.setattr(papers, "exhibit", lambda name: (paper, only))
    [first, *_] = chosen("x.tuning", "world-A", folder)
    assert (first.value, first.n) == (0.1, 3)


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
    assert tuning.varies(exhibit)
    assert tuning.REFERENCE in exhibit.methods
    assert set(tuning._without(paper)) == {
        *("no_entropy", "no_attention", "no_meaning", "entropy", "surprise")
    }
    assert not tuning.varies(papers.exhibit("drrag.outcomes")[1])


def test_its_public_grids_are_one_per_method_and_ask_the_kinds_that_decide():
    _, exhibit = papers.exhibit("dragin.tuning")
    grids = {}
    for cell in exhibit.cells("public"):
        knob = next(name for name in KNOBS if name in cell.keys)
        place = cell.keys["dataset"], cell.kinds, cell.n
        grids.setdefault(cell.keys["method"], {}).setdefault(place, []).append(cell.keys[knob])
    rules = ("rind", "random", "random_early", "flare", "window")
    own = {"dragin", "dragin_first", "flare", "fl", "released"}
    own |= {"random", "random_early", "random_first"}
    assert set(grids) == own | {f"{timing}_last" for timing in rules}
    hotpotqa = "hotpotqa_train", ("bridge",), 60
    wiki = "2wikimultihopqa_train", ("compositional", "inference"), 27
    for by_place in grids.values():
        assert set(by_place) == {hotpotqa, wiki}
        # A grid goes on where the best value, or the match, lay at its end.
        assert set(by_place[hotpotqa]) <= set(by_place[wiki])
        assert [*by_place.values()] == [sorted(values) for values in by_place.values()]
    assert min(grids["dragin"][wiki]) < 0.01
    assert max(grids["dragin"][wiki]) == 1.6
    assert {0.0, 1.0} <= set(grids["flare"][wiki])


def test_registered_settings_are_those_that_world_z_chose():
    """What is about timing searches as often as the paper prints; the rest is at its best."""
    choices = _choices("world-Z")
    assert papers.load("dragin").ground.settings == _chosen(choices)
    assert {one.n for one in choices.values()} == {100}
    assert not any(choices[row].is_open for row in _BEST)


def test_settings_registered_on_public_questions_are_those_that_tuning_chose():
    asked = {"hotpotqa": 60, "2wikimultihopqa": 27}
    for dataset, ground in papers.load("dragin").public.items():
        choices = _choices(f"{dataset}_train")
        assert ground.settings.items() <= _chosen(choices).items()
        rows = {"dragin", "flare", "fl", "fl_matched", "first_matched"}
        assert rows | {"random", "random_early", "random_first"} <= set(ground.settings)
        assert {one.n for one in choices.values()} == {asked[dataset]}
        assert not choices["fl"].is_open


@pytest.mark.parametrize("dataset", ["hotpotqa", "2wikimultihopqa"])
def test_the_released_code_is_asked_at_the_threshold_that_tuning_chose(dataset):
    keys = {"dataset": dataset, "method": "released"}
    table2 = papers.load("dragin").exhibit("table2").cells("public")
    [cell] = [c for c in table2 if c.matches(keys)]
    released = _choices(f"{dataset}_train")["released"]
    assert cell.condition.configured.threshold == released.value
    assert not released.is_open


def _choices(dataset):
    results = Path(__file__).parents[2] / "results" / "records"
    return {c.row: c for c in chosen("dragin.tuning", dataset, results) if hasattr(c, "tried")}


def _chosen(choices):
    """Row of a registered test -> its setting."""
    made = {row: {choices[row].knob: choices[row].matched} for row in _MATCHED if row in choices}
    made |= {row: {choices[row].knob: choices[row].value} for row in _BEST if row in choices}
    made |= {row: made[of] for of, rows in _ALIKE.items() if of in made for row in rows}
    made["fl_matched"] = {"window": choices["fl"].matched}
    if "random_first" in choices:  # on public sets alone
        made["first_matched"] = {"threshold": choices["dragin_first"].matched}
    return made


_BEST = ("dragin_first", "fl")
_CHANCE = ("random", "random_last", "random_early", "random_early_last", "random_first")
_MATCHED = ("dragin", "flare", "rind_last", "flare_last", *_CHANCE)
_ALIKE = {"dragin": ("qfs", "check"), "rind_last": ("matched_last", "last_sentence")}
