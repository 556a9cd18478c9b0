"""Several trainings as one row, out of records written by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro import show
from rag_repro.lm import hub
from rag_repro.show import cases, exhibit_rows, missing
from rag_repro.study import gate, trainings
from rag_repro.study.exhibits import Exhibit, ExhibitMethod, Grid
from rag_repro.study.judge import judge, pair_cells
from rag_repro.study.papers import Claim, Contrast, Paper
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results, Scores, concatenated, paired, resampled

METHODS = {
    "rag": ExhibitMethod("RAG", "single_step", "bm25"),
    "ours": ExhibitMethod("Ours", "single_step", "bm25", {"max_new_tokens": 9}, baseline="rag"),
    "theirs": ExhibitMethod("Theirs", "single_step", "bm25", {"k": 2}, baseline="ours"),
    "later": ExhibitMethod("Later", waits="nobody has made it"),
}
READERS = {"ours": "r2ag-mixed", "theirs": "r2ag-mixed-free"}
PLAIN = Grid("public", ("nq10",), ("rag",), reader="smollm2-135m")
TRAINED = Grid(
    "public", ("nq10",), ("ours", "theirs", "later"),
    reader="smollm2-135m", trained=READERS, seeds=(0, 1, 2),
)  # fmt: skip
EXHIBIT = Exhibit("mini.table1", "Answers", "", ("acc_line",), METHODS, (PLAIN, TRAINED))
# Questions that each training of a row answers, of the first four.
RIGHT = {("rag", None): "0", ("ours", 0): "0123", ("ours", 1): "01", ("theirs", 0): "01"}


@pytest.fixture(autouse=True)
def nothing_trained(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))


@pytest.fixture
def results(tmp_path):
    root = tmp_path / "records"
    root.mkdir()
    fill(root, RIGHT)
    return Results(root)


def fill(root, right, n=4):
    for cell in EXHIBIT.cells():
        if (said := right.get((cell.keys["method"], cell.keys.get("seed")))) is None:
            continue
        with open_record(root, cell.condition, {}) as record:
            for i in range(n):
                record.append(
                    {
                        "id": f"q{i}",
                        "cluster": f"q{i}",
                        "kind": "single_hop",
                        "hits": [],
                        "text": f"{cell.keys['method']}, {cell.keys.get('seed')}",
                        "scores": {"acc_line": float(str(i) in said)},
                    }
                )


def paper(tmp_path):
    return Paper("mini", tmp_path, "Mini", "Mini", "mini2026", {"table1": EXHIBIT}, ())


def rows(results, tmp_path):
    made = exhibit_rows.recipe_rows(paper(tmp_path), EXHIBIT, results)
    return {row.keys["method"]: row for row in made}


def test_trainings_are_one_row_of_their_mean_against_one_baseline(results, tmp_path):
    made = rows(results, tmp_path)
    assert list(made) == ["rag", "ours", "theirs"]
    ours = made["ours"]
    assert (ours.ours.estimate, ours.ours.n) == (pytest.approx(75), 4)
    assert ours.diff.estimate == pytest.approx(50)
    assert ours.keys["trainings"] == 2  # the third has no record
    assert "seed" not in ours.keys
    assert "trainings" not in made["rag"].keys
    # A baseline that was trained as well is compared by the trainings that both have.
    assert made["theirs"].diff.estimate == pytest.approx(50 - 100)


def test_what_no_training_has_is_not_run(tmp_path):
    made = rows(Results(tmp_path / "none"), tmp_path)
    assert {row.note for row in made.values()} == {"not run"}
    assert "trainings" not in made["ours"].keys


def test_a_training_that_was_stopped_half_way_stands_aside(tmp_path):
    root = tmp_path / "records"
    root.mkdir()
    fill(root, {("ours", 0): "0123"})
    fill(root, {("ours", 1): "0"}, n=2)
    row = rows(Results(root), tmp_path)["ours"]
    assert (row.ours.n, row.ours.estimate, row.keys["trainings"]) == (4, 100, 1)


def test_each_training_and_how_far_they_lie_apart(results, tmp_path):
    desk = SimpleNamespace(paper=paper(tmp_path), results=results, tiers=lambda: ["public"])
    shown = {
        e.keys["method"]: show.trainings("acc_line").text(e) for e in show.entries(desk, "table1")
    }
    assert shown == {"rag": "", "ours": "100.0, 50.0: 50.0 apart", "theirs": ""}


def test_without_trainings_nothing_changes(results, tmp_path):
    bare = Exhibit("mini.table1", "Answers", "", ("acc_line",), METHODS, (PLAIN,))
    assert trainings.merged(bare, results) == (bare, results)
    made = exhibit_rows.rows(paper(tmp_path), bare, results)
    assert exhibit_rows.recipe_rows(paper(tmp_path), bare, results) == made


def test_a_training_finds_its_untrained_baseline_and_back(results):
    ours = next(c for c in EXHIBIT.cells() if c.keys.get("seed") == 1)
    assert exhibit_rows.sibling_cell(EXHIBIT, ours, {"method": "rag"}).keys["method"] == "rag"
    assert exhibit_rows.sibling_cell(EXHIBIT, ours, {"method": "theirs"}).keys["seed"] == 1
    before, after = {"method": "ours", "seed": 0}, {"method": "rag"}
    [(cell, other)] = cases._sides(EXHIBIT, before, after)
    assert (cell.keys["seed"], other.keys["method"]) == (0, "rag")
    assert cases._sides(EXHIBIT, {"method": "rag"}, before) == [(other, cell)]


def test_what_trains_a_cell_is_told_until_it_is_there(tmp_path):
    [rag], [first, second, _] = (
        [c for c in EXHIBIT.cells() if c.keys["method"] == name] for name in ("rag", "ours")
    )
    assert missing.untrained(rag) == []
    assert missing.untrained(first) == ["rag-repro train r2ag-mixed"]
    assert missing.untrained(second) == ["rag-repro train r2ag-mixed --seed 1"]
    made = tmp_path / "artifacts" / "r2ag-mixed"
    made.mkdir(parents=True)
    (made / hub.FORMER).touch()
    assert missing.untrained(first) == []


# ------------------------------------------------------- trainings in an interval


def scores(values, by_training=None):
    ids = tuple(f"q{i}" for i in range(len(values)))
    each = {seed: np.array(one, float) for seed, one in (by_training or {}).items()}
    return Scores(ids, ids, np.array(values, float), each)


def test_trainings_that_differ_widen_the_interval_and_equal_ones_do_not():
    """100 questions, half of them right on average; each training alike, or far apart."""
    half = [100.0, 0.0] * 50
    alike = scores(half, {0: half, 1: half, 2: half})
    spread = {0: [0.0] * 100, 1: half, 2: [100.0] * 100}
    apart = scores(np.mean([*spread.values()], axis=0), spread)
    plain, same, wide = (
        resampled(one, "acc_line").interval() for one in (scores(half), alike, apart)
    )
    assert [plain.estimate, same.estimate, wide.estimate] == pytest.approx([50] * 3)
    assert same.hi - same.lo == pytest.approx(plain.hi - plain.lo, rel=0.1)
    assert wide.hi - wide.lo > 3 * (plain.hi - plain.lo)


def test_two_trained_sides_differ_training_by_training():
    """What both share in a training is in no difference: here the training's own luck."""
    luck = {0: 10.0, 1: 50.0, 2: 90.0}
    wobble = np.tile([0.0, 2.0], 50)
    more = {seed: value + 4 + wobble for seed, value in luck.items()}
    less = {seed: np.full(100, value) for seed, value in luck.items()}
    means = [np.mean([*side.values()], axis=0) for side in (more, less)]
    told = paired([(scores(means[0], more), scores(means[1], less))], "acc_line").interval()
    assert told.estimate == pytest.approx(5)
    assert told.hi - told.lo < 1
    # Against what was never trained the luck is in it.
    alone = paired([(scores(means[0], more), scores([50.0] * 100))], "acc_line").interval()
    assert alone.estimate == pytest.approx(5)
    assert alone.hi - alone.lo > 50
    # Trainings that only one of the two has stand aside.
    fewer = {seed: less[seed] for seed in (0, 1)}
    same = paired([(scores(means[0], more), scores([30.0] * 100, fewer))], "acc_line").interval()
    assert same.estimate == pytest.approx(5)


def test_the_same_weights_are_compared_with_themselves():
    """What changed their input and no answer makes no difference, whatever other trainings did."""
    first = np.array([100.0] * 50 + [0.0] * 50)
    trained = {0: first, 1: np.full(100, 100.0), 2: np.full(100, 100.0)}
    ours = scores(np.mean([*trained.values()], axis=0), trained)
    turned = scores(first, {0: first})
    told = paired([(ours, turned)], "acc_line").interval()
    assert told.estimate == 0
    assert told.hi - told.lo < 10


def test_without_a_training_in_common_nothing_is_said():
    assert paired([(scores([1.0], {0: [1.0]}), scores([1.0], {1: [1.0]}))], "acc_line") is None


@pytest.fixture
def proven(monkeypatch):
    """Proofs of training are tested with the gate."""
    monkeypatch.setattr(gate, "of_training", lambda *_: None)


@pytest.mark.usefixtures("proven")
def test_a_verdict_is_of_all_trainings(results, tmp_path):
    """One training of two is right of everything; the recipe is so of three quarters."""
    contrast = Contrast(metric="acc_line", more={"method": "ours"}, less={"method": "rag"}, delta=1)
    texts = dict.fromkeys(["place", "paper_numbers", "support_note", "test", "scale"], "")
    claim = Claim(
        "mini.c01", claim="Ours is better.", exhibit="mini.table1", support="none", n_needed=None,
        contrasts=(contrast,), **texts,
    )  # fmt: skip
    [(ours, _)] = pair_cells(EXHIBIT, contrast, "public")
    assert "seed" not in ours.keys
    [judged] = judge(replace(paper(tmp_path), claims=(claim,)), "public", results)
    assert judged.verdict.interval.estimate == pytest.approx(75 - 25)
    # Two trainings as far apart as these leave it open; one of them alone would not.
    assert judged.verdict.word == "undecidable here"


def test_data_sets_together_are_of_the_trainings_that_all_have():
    one = scores([50.0] * 4, {1: [40.0] * 4, 2: [60.0] * 4})
    other = scores([10.0] * 4, {2: [30.0] * 4, 3: [0.0] * 4})
    whole = concatenated([one, other])
    assert whole.values.tolist() == [60.0] * 4 + [30.0] * 4
    assert list(whole.by_training) == [2]
    assert concatenated([one, scores([0.0] * 4, {3: [0.0] * 4})]) is None
    # What is not trained is the same beside every training.
    assert (
        concatenated([one, scores([20.0] * 4)]).by_training[1].tolist() == [40.0] * 4 + [20.0] * 4
    )


def test_the_seeds_of_a_level_are_named():
    told = resampled(scores([50.0] * 4, {1: [40.0] * 4, 2: [60.0] * 4}), "acc_line")
    assert told.trainings == {1: -10, 2: 10}


@pytest.mark.usefixtures("proven")
def test_one_training_in_common_borrows_from_rows_with_several(results, tmp_path):
    """Of the pages' gains and of verdicts alike; without such a row there is nothing to borrow."""
    contrast = Contrast("acc_line", more={"method": "theirs"}, less={"method": "ours"}, delta=1)
    texts = dict.fromkeys(["place", "paper_numbers", "support_note", "test", "scale"], "")
    claim = Claim(
        "mini.c01", claim="Theirs is better.", exhibit="mini.table1", support="none", n_needed=None,
        contrasts=(contrast,), **texts,
    )  # fmt: skip
    twice = replace(EXHIBIT, name="mini.table2", grids=(PLAIN, TRAINED))
    alone = replace(EXHIBIT, grids=(PLAIN, replace(TRAINED, seeds=(0,))))
    held = {"table1": alone, "table2": twice}
    both = replace(paper(tmp_path), exhibits=held, claims=(claim,))
    [row] = [
        r for r in exhibit_rows.recipe_rows(both, alone, results) if r.keys["method"] == "theirs"
    ]
    [judged] = judge(both, "public", results)
    # Of ours: means of 100 and 50, less the noise of 4 questions.
    apart = (1250 - 5000 / 12) ** 0.5
    assert _gain(both, alone, results).borrowed == {
        "r2ag-mixed": pytest.approx(-apart),
        "r2ag-mixed-free": pytest.approx(apart),
    }
    told = judged.verdict.interval
    assert (told.lo, told.hi) == pytest.approx((row.diff.lo, row.diff.hi))
    only = replace(both, exhibits={"table1": alone})
    assert _gain(only, alone, results).borrowed == {}


def _gain(paper, exhibit, results):
    """What the gain of the row "theirs" is the interval of."""
    whole, means = trainings.merged(exhibit, results, paper.exhibits.values())
    cell = next(c for c in whole.cells() if c.keys["method"] == "theirs")
    baseline = exhibit_rows.sibling_cell(whole, cell, {"method": whole.methods["theirs"].baseline})
    return means.gain(cell, baseline, "acc_line")
