"""Labels from outcomes and bias, and that a classifier learns them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from rag_repro import cli, data
from rag_repro.lm import hub
from rag_repro.lm.hub import write_card
from rag_repro.lm.pair_scorers import ComplexityClassifier, sequence_classifier
from rag_repro.study import papers
from rag_repro.study.exhibits import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.training import complexity, pair_training, run
from rag_repro.training.complexity import biased, labelled, outcomes, split
from rag_repro.training.examples import EncodedText
from rag_repro.training.fit import Plan, fit, wrap
from rag_repro.training.recipes import Lora, Optimiser, Recipe, RecipeError, recipe
from tests.lm import encoders

READER = "smollm2-135m"
ROWS = {
    "A": ExhibitMethod("alone", "no_retrieval", None, {"prompt": "cot"}),
    "B": ExhibitMethod("once", "single_step", "bm25", {"prompt": "cot"}),
    "C": ExhibitMethod("many", "ircot", "bm25", {"prompt": "cot"}),
}
# By question: which rows answer it right -> its label.
RIGHT = ("ABC", "BC", "C", "", "AC", "B")
LABELS = ("A", "B", "C", None, "A", "B")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The exhibit x.outcomes over six tune questions of world A; fill(row) records it."""
    grids = (
        Grid("testbed", ("world-A",), tuple(ROWS), {"k": (4,)}, reader=READER, split="tune", n=6),
        Grid("testbed", ("world-B",), tuple(ROWS), {"k": (4,)}, reader=READER, n=6),
    )
    exhibit = Exhibit("x.outcomes", "t", "p", ("em",), ROWS, grids, own=True)
    monkeypatch.setattr(papers, "exhibit", lambda name: (None, exhibit))
    asked = data.load("world-A", split="tune").questions[:6]

    def fill(row, n=6, reader="one"):
        [cell] = [c for c in exhibit.cells() if (*c.keys.values(),)[:2] == ("world-A", row)]
        with open_record(tmp_path, cell.condition, {"reader": reader}) as record:
            for question, right in list(zip(asked, RIGHT, strict=True))[:n]:
                scores = {"em": float(row in right), "acc": 1.0}
                line = {"id": question.id, "cluster": question.id, "hits": [], "scores": scores}
                record.append(line)

    return fill, tmp_path, asked


def test_the_simplest_right_way_labels_a_question(made):
    fill, folder, asked = made
    for row in ROWS:
        fill(row)
    got = list(outcomes("x.outcomes", "world-A", READER, folder))
    wanted = [(q.text, label) for q, label in zip(asked, LABELS, strict=True) if label]
    assert [(one.question, one.label) for one in got] == wanted
    assert got[0].source == "A by outcomes:world-A"


def test_missing_and_unfinished_records_are_named_with_their_command(made):
    fill, folder, _ = made
    fill("A")
    with pytest.raises(RecipeError, match=r"0 of 6 .*rag-repro run x.outcomes .* --method B"):
        list(outcomes("x.outcomes", "world-A", READER, folder))
    fill("B")
    fill("C", n=4)
    with pytest.raises(RecipeError, match=r"4 of 6 answers .* row C"):
        list(outcomes("x.outcomes", "world-A", READER, folder))


def test_rows_that_two_readers_of_one_name_answered_are_refused(made):
    fill, folder, _ = made
    for row in ROWS:
        fill(row, reader="another" if row == "B" else "one")
    with pytest.raises(RecipeError, match=f"2 different readers called {READER}"):
        list(outcomes("x.outcomes", "world-A", READER, folder))


def test_labels_come_from_one_condition_a_row_and_never_from_test_questions(made):
    _, folder, _ = made
    with pytest.raises(RecipeError, match="never test"):
        list(outcomes("x.outcomes", "world-B", READER, folder))
    with pytest.raises(RecipeError, match="0 conditions of row A on world-A with reader other"):
        list(outcomes("x.outcomes", "world-A", "other", folder))


def test_the_bias_is_by_hops():
    asked = data.load("world-A", split="train").questions[:50]
    got = list(biased("world-A", 50))
    assert [o.question for o in got] == [q.text for q in asked]
    assert [o.label for o in got] == ["B" if q.hops == 1 else "C" for q in asked]
    assert {o.source for o in got} == {"B by bias:world-A", "C by bias:world-A"}


def test_the_bias_can_be_as_often_b_as_c():
    got = list(biased("world-A", each=20))
    assert Counter(o.label for o in got) == {"B": 20, "C": 20}
    first = [o.question for o in biased("world-A", 780) if o.label == "B"][:20]
    assert [o.question for o in got if o.label == "B"] == first
    with pytest.raises(RecipeError, match=r"127 questions are of label B, not 200"):
        list(biased("world-A", each=200))


def test_a_recipes_parts_are_read_strictly(made):
    fill, folder, _ = made
    for row in ROWS:
        fill(row)
    whole = [
        {"kind": "outcomes", "exhibit": "x.outcomes", "dataset": "world-A", "reader": READER},
        {"kind": "biased", "dataset": "world-A", "questions": 7},
    ]
    assert len(labelled(whole, folder)) == 5 + 7
    with pytest.raises(RecipeError, match="--results"):
        labelled(whole, None)
    with pytest.raises(TypeError, match="results"):
        labelled([{**whole[0], "results": "elsewhere"}], folder)


def test_shuffled_labels_are_the_same_on_other_questions():
    part = {"kind": "biased", "dataset": "world-A", "questions": 200}
    true, drawn, again, other = (
        labelled([part, *more], None)
        for more in ([], *([{"kind": "shuffled", "seed": s}] for s in (0, 0, 1)))
    )
    assert [o.question for o in drawn] == [o.question for o in true]
    assert Counter(o.label for o in drawn) == Counter(o.label for o in true)
    assert all(o.source.startswith(f"{o.label} by bias") for o in drawn)
    assert drawn == again
    assert drawn != true
    assert drawn != other


def test_every_tenth_outcome_is_kept_out_and_no_bias_repeats_it():
    made = [complexity.Labelled(f"q{i}", "B", "B by outcomes:x") for i in range(25)]
    made += [complexity.Labelled(f"q{i}", "C", "C by bias:x") for i in (10, 30)]
    learned, apart = split(made)
    assert [o.question for o in apart] == ["q0", "q10", "q20"]
    assert {o.source for o in apart} == {"B by outcomes:x"}
    assert len(learned) == 25 - 3 + 1


def test_a_classifier_learns_its_classes(tmp_path):
    base = hub.resolve(encoders.save("bert", tmp_path / "base"))
    model, tokenizer = sequence_classifier(base, labels=3)
    # Token 50, 60 or 70 says the class.
    rows = [(1, (50, 60, 70)[i % 3], 20 + i, 2) for i in range(18)]
    examples = [EncodedText(row, i % 3, "x") for i, row in enumerate(rows)]
    plan = Plan(examples, Lora(rank=8), Optimiser(learning_rate=5e-3, epochs=60), 0, "k")
    wrapped = wrap(model, plan.lora, 0, "SEQ_CLS")
    goal = pair_training.objective(tokenizer.pad_token_id)
    folder = fit(wrapped, plan, tmp_path / "c", objective=goal, held_out=examples)
    curve = run.read_curve(folder)
    assert curve[-1]["held_out"]["x"] < 0.2 < 0.9 < curve[0]["loss"]
    write_card(folder, base)
    judge = ComplexityClassifier(hub.adapted("c", folder))
    said = judge.outputs(rows).argmax(dim=1).tolist()
    assert np.mean([a == e.label for a, e in zip(said, examples, strict=True)]) > 0.9


def test_from_recipe_to_scorer_by_name(made, monkeypatch):
    fill, folder, asked = made
    for row in ROWS:
        fill(row)
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(folder / "artifacts"))
    tiny = Recipe(
        name="tiny-complexity",
        about="for this test",
        task="complexity",
        base=encoders.save("bert", folder / "base"),
        lessons=(
            {"kind": "outcomes", "exhibit": "x.outcomes", "dataset": "world-A", "reader": READER},
            {"kind": "biased", "dataset": "world-A", "questions": 10},
        ),
        lora=Lora(rank=2),
    )
    prepared = run.prepare(tiny, 0, results=folder)
    assert (len(prepared.plan.examples), len(prepared.held_out)) == (14, 1)
    assert "A by outcomes:world-A: 1 lessons" in prepared.cost()
    where = run.train(prepared, run.folder_of(tiny, 0))
    assert run.is_made(prepared, where)
    fewer = replace(tiny, lessons=tiny.lessons[1:])
    assert not run.is_made(run.prepare(fewer, 0), where)
    items = [(asked[0].text, letter) for letter in "ABC"]
    shares = ComplexityClassifier(hub.resolve("tiny-complexity")).score(items)
    assert shares.sum() == pytest.approx(1, abs=1e-5)


def test_the_recipes_labels_have_their_conditions(tmp_path, capsys):
    for name in ("complexity-testbed", "complexity-testbed-shuffled", "complexity-public"):
        for part in recipe(name).lessons:
            if part["kind"] == "outcomes":
                cells = complexity._cells(part["exhibit"], part["dataset"], part["reader"])
                assert list(cells) == ["A", "B", "C"]
                assert {c.condition.split for c in cells.values()} == {"tune"}
                assert [c.condition.method for c in cells.values()] == [
                    "no_retrieval", "single_step", "ircot",
                ]  # fmt: skip
    assert cli.main(["train", "complexity-testbed", "--results", str(tmp_path)]) == 2
    assert "rag-repro run drrag.outcomes --dataset world-A" in capsys.readouterr().err


def test_a_label_is_the_simplest_method_that_answers_right():
    alone = {"all": 1, "one": 0, "many": 0.0, "none": 0, "part": 0.9}
    one = {"all": 1, "one": 1, "many": 0, "none": 0, "part": 0.5}
    many = {"all": 1, "one": 0, "many": 1.0, "none": 0, "part": 0}
    # An F1 of 0.9 is not right; what nobody answers is left out.
    labels = complexity.simplest({"A": alone, "B": one, "C": many})
    assert labels == {"all": "A", "one": "B", "many": "C"}
    # Right without passages counts even where passages mislead.
    assert complexity.simplest({"A": {"x": 1}, "B": {"x": 0}, "C": {"x": 0}}) == {"x": "A"}
