"""Several trainings as one row, out of records written by hand."""

from __future__ import annotations

import pytest

from rag_repro.lm import hub
from rag_repro.report import cases, exhibits, missing, seeds
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid, Paper
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

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
    made = seeds.rows(paper(tmp_path), EXHIBIT, results)
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
    # A baseline that was trained as well is the mean of its own trainings.
    assert made["theirs"].diff.estimate == pytest.approx(50 - 75)


def test_what_no_training_has_is_not_run(tmp_path):
    made = rows(Results(tmp_path / "none"), tmp_path)
    assert {row.note for row in made.values()} == {"not run"}
    assert "trainings" not in made["ours"].keys


def test_only_questions_of_every_training_count(tmp_path):
    root = tmp_path / "records"
    root.mkdir()
    fill(root, {("ours", 0): "0123"})
    fill(root, {("ours", 1): "0"}, n=2)
    row = rows(Results(root), tmp_path)["ours"]
    assert (row.ours.n, row.ours.estimate) == (2, pytest.approx(75))


def test_each_training_and_how_far_they_lie_apart(results):
    table = seeds.table(EXHIBIT, results, ["public"], "acc_line")
    assert [row[1] for row in table.body] == ["Ours", "Theirs"]
    assert table.body[0][3:] == ["100.0, 50.0", "50.0"]
    assert table.body[0][2].startswith("75.0 [")
    none = seeds.table(EXHIBIT, results, ["testbed"], "acc_line")
    assert "each row is one training" in repr(none)


def test_one_training_is_not_told_to_lie_nothing_apart(tmp_path):
    fill(tmp_path, {("ours", 0): "0123", ("theirs", 1): "01"})
    table = seeds.table(EXHIBIT, Results(tmp_path), ["public"], "acc_line")
    assert {row[-1] for row in table.body} == {"one training"}


def test_without_trainings_nothing_changes(results, tmp_path):
    bare = Exhibit("mini.table1", "Answers", "", ("acc_line",), METHODS, (PLAIN,))
    assert seeds.merged(bare, results) == (bare, results)
    made = exhibits.rows(paper(tmp_path), bare, results)
    assert seeds.rows(paper(tmp_path), bare, results) == made


def test_a_training_finds_its_untrained_baseline_and_back(results):
    ours = next(c for c in EXHIBIT.cells() if c.keys.get("seed") == 1)
    assert exhibits.beside(EXHIBIT, ours, {"method": "rag"}).keys["method"] == "rag"
    assert exhibits.beside(EXHIBIT, ours, {"method": "theirs"}).keys["seed"] == 1
    before, after = {"method": "ours", "seed": 0}, {"method": "rag"}
    [(cell, other)] = cases._sides(EXHIBIT, before, after)
    assert (cell.keys["seed"], other.keys["method"]) == (0, "rag")
    assert cases._sides(EXHIBIT, {"method": "rag"}, before) == [(other, cell)]


def test_rows_that_wait_are_told_with_their_reason():
    assert repr(missing.waits(EXHIBIT)) == "Not run: Later \\(nobody has made it\\)."
    bare = Exhibit("mini.table1", "", "", (), {"rag": METHODS["rag"]}, (PLAIN,))
    assert repr(missing.waits(bare)) == ""


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
