"""Adaptive Retrieval's threshold out of records made by hand."""

from __future__ import annotations

import pytest

from rag_repro import cli, data
from rag_repro.study import papers, tuning
from rag_repro.study.exhibits import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.yaml_files import StudyError

ROWS = {
    "A": ExhibitMethod("alone", "no_retrieval", None, {"prompt": "cot"}),
    "B": ExhibitMethod("once", "single_step", "bm25", {"prompt": "cot"}),
    "mentions": ExhibitMethod(
        "counted", "adaptive_retrieval", "bm25", {"popularity": "mentions", "threshold": 0}
    ),
}
# Popularity 10, 20, 30, 40: passages help the first, harm the third, and are idle elsewhere.
ALONE, GIVEN, KNOWN = (0, 1, 1, 1), (1, 1, 0, 1), (10, 20, 30, 40)


@pytest.fixture
def outcomes(tmp_path, monkeypatch):
    """The exhibit x.outcomes over world A's tune questions, and a function that records a row."""
    grid = Grid(
        "testbed", ("world-A",), tuple(ROWS), {"k": (4,)}, reader="smollm2-135m", split="tune"
    )
    tested = Grid("testbed", ("world-B",), ("A", "B"), {"k": (4,)}, reader="smollm2-135m")
    made = Exhibit("x.outcomes", "t", "p", ("em",), ROWS, (grid, tested), own=True)
    monkeypatch.setattr(papers, "exhibit", lambda name: (None, made))
    asked = data.load("world-A", split="tune").questions[:4]

    def fill(row, values, **more):
        [cell] = [c for c in made.cells() if (*c.keys.values(),)[:2] == ("world-A", row)]
        with open_record(tmp_path, cell.condition, {}) as record:
            for question, value in zip(asked, values, strict=False):
                line = {"id": question.id, "cluster": question.id, "hits": []}
                scores = {"em": float(value)}
                if row == "mentions":
                    scores, more = {}, {"decided": [float(value), False]}
                record.append({**line, "scores": scores, **more})

    return fill, tmp_path, asked


def test_the_best_threshold_by_hand(outcomes):
    fill, folder, _ = outcomes
    fill("A", ALONE)
    fill("B", GIVEN)
    fill("mentions", KNOWN)
    tuned = tuning.threshold("x.outcomes", "mentions", ["world-A"], folder)
    # Below 20 only the first searches: all four are right.
    assert (tuned.threshold, tuned.n, tuned.searched) == (20, 4, 0.25)
    assert (tuned.without, tuned.given, tuned.adaptive) == (0.75, 0.75, 1)
    assert str(tuned).startswith("threshold 20 on 4 questions: 25.0 % search; 100.0 right")


def test_the_testbeds_views_come_from_its_questions(outcomes):
    fill, folder, asked = outcomes
    fill("A", (0, 0, 0, 0))
    views = [q.meta["popularity"] for q in asked]
    fill("B", [v == min(views) for v in views])
    tuned = tuning.threshold("x.outcomes", "testbed", ["world-A"], folder)
    assert tuned.threshold == sorted(set(views))[1]
    assert tuned.adaptive == tuned.given


def test_questions_of_several_sets_are_pooled(outcomes):
    fill, folder, _ = outcomes
    for row, values in (("A", ALONE), ("B", GIVEN), ("mentions", KNOWN)):
        fill(row, values)
    tuned = tuning.threshold("x.outcomes", "mentions", ["world-A", "world-A"], folder)
    assert (tuned.threshold, tuned.n) == (20, 8)


def test_what_cannot_be_tuned_is_refused_by_name(outcomes):
    fill, folder, _ = outcomes
    fill("A", ALONE)
    with pytest.raises(StudyError, match=r"run x\.outcomes --dataset world-A --method B"):
        tuning.threshold("x.outcomes", "testbed", ["world-A"], folder)
    fill("B", GIVEN[:3])
    with pytest.raises(StudyError, match="not of the same questions"):
        tuning.threshold("x.outcomes", "testbed", ["world-A"], folder)
    with pytest.raises(
        StudyError, match=r"records are missing.* rag-repro run x.outcomes .*--method mentions"
    ):
        tuning.threshold("x.outcomes", "mentions", ["world-A"], folder)
    with pytest.raises(StudyError, match="'s_pop'; popularity: mentions"):
        tuning.threshold("x.outcomes", "wikipedia", ["world-A"], folder)
    with pytest.raises(StudyError, match="'views' cannot be tuned"):
        tuning.threshold("x.outcomes", "views", ["world-A"], folder)
    told = r"x\.outcomes tunes nothing on 'world-C'; its row A is tuned on: world-A$"
    with pytest.raises(StudyError, match=told):
        tuning.threshold("x.outcomes", "testbed", ["world-C"], folder)
    with pytest.raises(StudyError, match="nothing is tuned on test questions"):
        tuning.threshold("x.outcomes", "testbed", ["world-B"], folder)


def test_the_command_says_what_is_missing(tmp_path, capsys):
    for missing in ("drrag.outcomes --dataset world-A", "drrag.outcoms --dataset world-A"):
        assert cli.main(["tune", *missing.split(), "--results", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "make them first" in told
    assert "did you mean 'drrag.outcomes'" in told


@pytest.mark.parametrize("dataset", ["world-B", "wrld-B"])
def test_an_exhibit_that_tunes_nothing_is_told_with_those_that_do(tmp_path, capsys, dataset):
    words = ["tune", "drrag.table5", "--dataset", dataset, "--results", str(tmp_path)]
    assert cli.main(words) == 2
    told = capsys.readouterr().err
    assert "drrag.table5 tunes nothing: it varies no threshold" in told
    for name in ("drrag.outcomes", "dragin.tuning"):  # those that it names do tune
        assert name in told
        assert any(cell.condition.split != "test" for cell in papers.exhibit(name)[1].cells())
