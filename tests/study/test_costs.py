"""What conditions ask and took, by hand-made manifests."""

from __future__ import annotations

import json

import pytest

from rag_repro.study import costs, papers
from rag_repro.study.conditions import Condition
from rag_repro.study.costs import Spent
from rag_repro.study.names import base_of
from rag_repro.study.papers import Cell
from rag_repro.study.records import open_record, times_beside


def cell(dataset="world-B", n=None, split="test", timed=False, exhibit="mini.table1", k=3):
    condition = Condition(dataset, "single_step", {"k": k}, retriever="bm25", split=split)
    return Cell(exhibit, "testbed", "primary", {}, condition, n, timed)


def run(questions, minutes=1, **changes):
    told = {
        "machine": "m", "questions": questions,
        "start": "2026-01-01T00:00:00+00:00", "end": f"2026-01-01T00:{minutes:02}:00+00:00",
    }  # fmt: skip
    return told | changes


def killed(questions):
    return {key: value for key, value in run(questions).items() if key != "end"}


@pytest.fixture
def put(tmp_path):
    """Writes a condition's manifest, and a record of as many answers as its entries tell."""

    def put(one, *entries, held=None, folder=tmp_path / "records"):
        path = folder / f"{one.condition.path}.manifest.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(entries))
        count = sum(entry["questions"] for entry in entries) if held is None else held
        with open_record(folder, one.condition, {"passages": 4000}) as record:
            for number in range(count):
                line = {"id": f"q{number}", "cluster": "q", "hits": [], "scores": {}}
                record.append(line)

    put.root = tmp_path / "records"
    return put


def test_what_no_record_holds_is_left(put):
    one = cell(n=50)
    put(one, run(10, 2), killed(5))
    spent = costs.spent(one, {}, put.root)
    assert spent == Spent(1, 1, wanted=50, answers=15, timed=10, seconds=120.0)
    assert (spent.left, spent.each) == (35, 12.0)


def test_a_run_that_was_killed_has_recorded_more_than_its_manifest_tells(put):
    one = cell(n=50)
    put(one, killed(5), held=8)
    spent = costs.spent(one, {}, put.root)
    assert (spent.answers, spent.left, spent.timed) == (8, 42, 0)


def test_a_record_that_was_begun_holds_no_answer(put):
    one = cell(n=50)
    put(one, held=0)
    assert costs.spent(one, {}, put.root) == Spent(conditions=1, wanted=50)


def test_a_condition_that_nobody_ran_asks_and_took_nothing(put):
    spent = costs.spent(cell(n=50), {}, put.root)
    assert spent == Spent(conditions=1, wanted=50)
    assert (spent.left, spent.each) == (50, None)


def test_no_more_is_asked_than_there_is(put):
    one = cell(n=50)
    assert costs.spent(one, {("world-B", "test"): 30}, put.root).wanted == 30


def test_a_record_that_was_made_twice_holds_its_answers_once_and_took_both_times(put):
    one = cell(n=10)
    put(one, run(10, 1), run(10, 3), held=10)
    assert costs.sizes([one], put.root) == {("world-B", "test"): 10}
    spent = costs.spent(one, {}, put.root)
    assert (spent.answers, spent.left, spent.timed, spent.seconds) == (10, 0, 20, 240.0)


def test_all_of_a_set_whose_size_is_not_known_is_told_apart(put):
    spent = costs.spent(cell(), {}, put.root)
    assert (spent.wanted, spent.unsized) == (0, 1)


def test_a_timed_condition_has_its_manifest_beside_the_records(put):
    one = cell(n=5, timed=True)
    put(one, run(5), folder=times_beside(put.root, one.exhibit))
    assert costs.spent(one, {}, put.root).answers == 5
    assert costs.spent(cell(n=5), {}, put.root).answers == 0


def test_spent_adds_up():
    assert Spent(1, 1, 10, 0, 4, 4, 2.0) + Spent(1, 0, 20, 1) == Spent(2, 1, 30, 1, 4, 4, 2.0)


def test_sizes_are_those_of_the_split_file_and_of_a_world_the_most_that_was_asked(put):
    short, whole, public = cell(n=40), cell(k=4), cell("hotpotqa", n=9)
    put(whole, run(30), run(35))
    found = costs.sizes([short, whole, public, cell("world-C")], put.root)
    assert found == {("world-B", "test"): 65, ("hotpotqa", "test"): 252}


def test_machines_are_told_once_in_order(put):
    a, b = cell(), cell(k=4)
    put(a, run(1, machine="z"), run(1))
    put(b, run(1))
    assert costs.machines([a, b], put.root) == ("m", "z")


def test_passages_are_those_that_the_first_record_of_a_set_tells(put):
    one, other = cell(), cell("world-C")
    put(one, run(1))
    assert costs.passages([one, other], put.root) == {"world-B": 4000}


def test_a_condition_of_two_exhibits_counts_once():
    known = [papers.load(name) for name in papers.names()]
    cells = costs.cells(known)
    every = [c for paper in known for e in paper.exhibits.values() for c in e.cells()]
    untimed = {c.condition.hash for c in every if not c.timed}
    assert len([c for c in cells if not c.timed]) == len(untimed) < len(every)


@pytest.mark.parametrize(
    ("reader", "base"),
    [
        ("testbed-reader", "smollm2-135m"),
        ("testbed-reader-7", "smollm2-135m"),
        ("r2ag-mixed-gemma3", "gemma3-270m"),
        ("r2ag-reasoning", "smollm2-135m"),
        ("gemma3-270m", "gemma3-270m"),
        ("hub:a/b@c", "hub:a/b@c"),
    ],
)
def test_a_trained_reader_has_the_size_of_its_base(reader, base):
    assert base_of(reader) == base
