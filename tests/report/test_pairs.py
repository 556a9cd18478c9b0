"""Tables and figures of judged pairs, from records and cards written by hand."""

from __future__ import annotations

import json

import pytest

from rag_repro import data
from rag_repro.evaluation.statistics import Interval
from rag_repro.lm import hub
from rag_repro.report import classifiers, pairs
from rag_repro.report.exhibits import Row
from rag_repro.report.picture import Note, Picture
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results
from rag_repro.study.services import Workshop

NAMES = ("drrag-classifier-testbed", "drrag-classifier-testbed-1")
DATASET = "world-B@1000"


@pytest.fixture(autouse=True)
def no_artifacts(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))


@pytest.fixture(scope="module")
def dataset():
    return data.load(DATASET, split="test")


@pytest.fixture
def cells():
    exhibit = Exhibit(
        "mini.check",
        "Check",
        "",
        ("pair_auc",),
        {"check": ExhibitMethod("pairs", "pair_check", "bm25")},
        (Grid("testbed", (DATASET,), ("check",), {"classifier": NAMES}),),
    )
    return exhibit.cells()


@pytest.fixture
def results(cells, dataset, tmp_path):
    """Two questions: q0 0.9 against 0.2 (hard) and 0.1 (random), q1 0.6 against 0.7 and 0.6."""
    a, b, c, d = (p.id for p in dataset.corpus.passages[:4])
    first, second, third = dataset.questions[:3]
    with open_record(tmp_path, cells[0].condition, {}) as record:
        for question, positive, hard, random in ((first, 0.9, 0.2, 0.1), (second, 0.6, 0.7, 0.6)):
            judged = [[a, b, positive, 2], [a, c, hard, 1], [c, d, random, 0]]
            line = {"id": question.id, "cluster": question.id, "hits": [], "scores": {}}
            record.append(line | {"judged": judged})
        record.append({"id": third.id, "cluster": third.id, "hits": [], "scores": {}})
    return Results(tmp_path)


def test_one_line_a_condition_and_what_makes_the_missing_one(cells, results):
    made = pairs.summary(cells, results, "caption", "tab-x")
    first, second = made.body
    assert first[:4] == [DATASET, NAMES[0], 2, 6]
    # 0.9 beats all four; 0.6 beats 0.2 and 0.1, loses to 0.7, ties with 0.6: 6.5 of 8.
    assert first[4].startswith("81.2 [")
    assert first[4].endswith(", 100.0]")  # no share is above it
    assert first[5].startswith("75.0 [")  # hard: 0.9 beats two, 0.6 beats 0.2
    assert first[6].startswith("87.5 [")  # random: 0.9 beats two, 0.6 beats 0.1 and ties
    assert first[7].startswith("75.0 [")  # both positives, two negatives of four
    assert str(second[2]) == (
        "not run: `rag-repro train drrag-classifier-testbed --seed 1`, then "
        "`rag-repro run mini.check --tier testbed`"
    )
    assert "tab-x.csv" in made.data._repr_html_()


def test_the_reliability_diagram_says_its_numbers(cells, results):
    made = pairs.reliability(cells, results, name="fig-x")
    assert isinstance(made, Picture)
    # In the bin of 0.6 are a positive (1/2) and a negative (1/4): two thirds.
    assert "probability 0.60: share 0.67 of 2" in made.alt
    assert "probability 0.90: share 1.00 of 1" in made.alt


def test_a_worked_question_has_a_pair_accepted_and_one_refused(cells, results, dataset):
    made = pairs.worked(cells[0], results, Workshop())
    assert dataset.questions[0].text in made.caption
    assert [row[2:] for row in made.body] == [
        ["both", "0.90", "accepted"],
        ["one", "0.20", "refused"],
        ["none", "0.10", "refused"],
    ]


def test_without_records_each_says_what_makes_them(cells, tmp_path):
    empty = Results(tmp_path / "none")
    for note in (
        pairs.reliability(cells, empty),
        pairs.worked(cells[0], empty, Workshop()),
    ):
        assert isinstance(note, Note)
        assert note.text.startswith("Not run: `rag-repro train drrag-classifier-testbed`, then")
        assert note.text.endswith("then `rag-repro run mini.check --tier testbed`.")


def test_where_there_is_no_condition_or_no_such_pair_nothing_is_to_be_run(cells, results):
    none = pairs.reliability([], results, "Share of gold pairs, paper")
    assert none.text == (
        "Share of gold pairs, paper: this exhibit has no such condition at this tier."
    )
    assert pairs.worked(cells[0], results, Workshop()).caption.startswith("Pairs judged for")
    only_accepted = results.lines(cells[0])
    for line in only_accepted:
        line.pop("judged", None)
    assert "hold nothing of this kind" in pairs.worked(cells[0], results, Workshop()).text
    assert pairs.summary(cells[:1], results).body[0][2] == "no such pairs"


def row(metric, value, classifier, method="cfs"):
    keys = {"dataset": "world-B", "method": method, "classifier": classifier}
    return Row(
        "mini.noise",
        "testbed",
        "secondary",
        keys,
        metric,
        ours=Interval(value, value - 1, value + 1, 9),
    )


def test_selections_are_drawn_over_their_classifiers_auc():
    chosen = [row("recall", 80, "good"), row("recall", 60, "bad"), row("recall", 1, "unchecked")]
    checked = [row("pair_auc", 95, "good", "check"), row("pair_auc", 50, "bad", "check")]
    made = pairs.against_auc(chosen, checked, {"recall": "recall, %"})
    assert "good, AUC 95: recall 80.0; world-B, cfs, bad, AUC 50: recall 60.0." in made.alt
    assert isinstance(pairs.against_auc(chosen, [], {"recall": "x"}), Note)


# ------------------------------------------------------------------ cards, curves


@pytest.fixture
def card(tmp_path):
    folder = tmp_path / "artifacts" / NAMES[0]
    folder.mkdir(parents=True)
    (folder / hub.ADAPTER).write_bytes(b"x")
    facts = {
        "base": {"name": "minilm", "sha256": "0"},
        "lessons": {"positive:A": 60, "hard:A": 40, "random:A": 20},
        "held_out_loss": {"positive:A": 0.2, "hard:A": 0.5, "random:A": 0.8},
        "steps": 4,
        "tokens": 1234,
        "seconds": 600,
    }
    (folder / "card.json").write_text(json.dumps(facts))
    rows = [{"step": i + 1, "loss": 0.7 - i / 10, "tokens": 9, "seconds": 1} for i in range(4)]
    rows[1]["held_out"] = {"positive:A": 0.6}
    rows[3]["held_out"] = {"positive:A": 0.2}
    (folder / "curve.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))


def test_cards_of_what_is_trained_and_commands_for_the_rest(card):
    first, second = classifiers.cards(NAMES).body
    # Each pair is a lesson in both orders. (60 x 0.2 + 40 x 0.5 + 20 x 0.8) / 120 = 0.4.
    assert first == [NAMES[0], 60, 30, 4, "1,234", 10, "0.400"]
    assert [str(cell) for cell in second[:2]] == [
        NAMES[1],
        "not at hand: `rag-repro train drrag-classifier-testbed --seed 1`",
    ]
    assert classifiers.cost(NAMES) == {NAMES[0]: 600.0}


def test_curves_of_what_is_trained(card):
    made = classifiers.curves(NAMES)
    assert "held-out loss 0.60 at first, 0.20 at the end" in made.alt
    assert "rag-repro train drrag-classifier-testbed --seed 1" in classifiers.curves(NAMES[1:]).text
