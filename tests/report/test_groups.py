"""Recall apart by what the needed passages are, on one little world."""

from __future__ import annotations

import pytest

from rag_repro import data
from rag_repro.report import groups
from rag_repro.report.picture import Note
from rag_repro.study import records
from rag_repro.study.scores import Results
from tests.study import mini

WORLD = "world-B"


@pytest.fixture(scope="module")
def world():
    return data.load("world-B@1000", split="test")


def test_each_question_with_gold_lies_in_one_third(world):
    held = groups.by_length([world])
    assert set(held) == {q.id for q in world.questions if q.gold}
    sizes = [list(held.values()).count(name) for name in dict.fromkeys(held.values())]
    assert len(sizes) == 3
    assert max(sizes) - min(sizes) < len(held) / 5
    short, _, long = dict.fromkeys(held.values())
    assert (short[:5], long[:4]) == ("short", "long")
    words = {q.id: groups.words_needed(q, world) for q in world.questions}
    limit = float(long.split()[2])
    assert all((words[q] > limit) == (name == long) for q, name in held.items())


def test_the_subject_is_what_the_last_passage_is_about(world):
    held = groups.by_subject([world])
    question = next(q for q in world.questions if q.kind == "compositional" and q.hops == 2)
    last = max(question.gold, key=lambda gold: gold.hop)
    from rag_repro.data.synthworld import world as build

    assert held[question.id] == build("B", 1000).subject_of[last.passage_id].kind
    often = list(held.values())
    assert often[0] == max(set(often), key=often.count)


def test_the_relation_is_the_chains_last(world):
    held = groups.by_relation([world])
    question = world.questions[0]
    assert held[question.id] == question.meta["relations"][-1].replace("_", " ")


def test_hops_are_counted_and_the_fewest_come_first(world):
    held = groups.by_hops([world])
    question = next(q for q in world.questions if q.hops == 2)
    assert held[question.id] == "2 hops"
    names = list(dict.fromkeys(held.values()))
    assert names == sorted(names, key=lambda name: int(name.split()[0]))
    assert names[0] == "1 hop"
    assert set(held) == {q.id for q in world.questions if q.hops}


def test_choices_stand_apart_from_questions_of_one_and_of_several_steps(world):
    held = groups.by_steps([world])
    assert set(held) == {q.id for q in world.questions if q.hops}
    kinds = {}
    for question in world.questions:
        kinds.setdefault(held.get(question.id), set()).add(question.kind)
    assert kinds["a choice: one of two, or yes or no"] <= set(groups.CHOICES)
    assert "single_hop" in kinds["one step"]
    assert {"compositional", "inference"} <= kinds["several steps"]
    assert not set(groups.CHOICES) & (kinds["one step"] | kinds["several steps"])


@pytest.fixture
def filled(tmp_path, world):
    """SM finds everything of even questions, QDC of all; the other data sets have no record."""
    paper = mini.paper(tmp_path, "- {metric: recall, more: {method: sm}, target: 1.0, margin: 1.0}")
    exhibit = paper.exhibits["table1"]
    for cell in exhibit.cells("testbed"):
        with records.open_record(tmp_path / "records", cell.condition, {}) as record:
            for i, question in enumerate(world.questions[:200]):
                found = float(cell.keys["method"] == "qdc" or i % 2 == 0)
                line = {"id": question.id, "cluster": question.id, "kind": None, "hits": []}
                record.append(line | {"scores": {"recall": found}})
    return exhibit, Results(tmp_path / "records")


def table(filled, world, grouped, pairs, **wanted):
    exhibit, results = filled
    wanted = {"k": 3, **wanted}
    return groups.group_table(results, exhibit, {WORLD: world}, grouped, pairs, what="x", **wanted)


def parity(of):
    """Questions by the parity of their place."""
    return {q.id: ("even", "odd")[i % 2] for d in of for i, q in enumerate(d.questions)}


def test_a_group_has_its_baselines_level_and_the_gain_over_it(filled, world):
    made = table(filled, world, parity, {"qdc": "sm"})
    assert made.head == ["x", "Similarity", "Concatenation adds"]
    assert made.caption == "Recall by x, world-B"
    even, odd = made.body
    assert even[1].startswith("100.0 [")
    assert even[1].endswith("n 100")
    assert odd[1].startswith("0.0 [")
    assert odd[2].startswith("+100.0 [")


def test_methods_over_one_baseline_share_its_column_and_missing_ones_say_so(filled, world):
    made = table(filled, world, parity, {"qdc": "sm", "cfs": "sm"})
    assert made.head == ["x", "Similarity", "Concatenation adds", "Forward selection adds"]
    assert [row[3] for row in made.body] == ["not run", "not run"]


def test_small_groups_and_unrecorded_ones_are_not_shown(filled, world):
    def rare(of):
        return {q.id: "rare" for d in of for q in d.questions[: groups.FEWEST - 1]}

    assert isinstance(table(filled, world, rare, {"qdc": "sm"}), Note)
    assert isinstance(table(filled, world, parity, {"qdc": "sm"}, k=9), Note)
