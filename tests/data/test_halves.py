"""Questions asked again over halved passages: titles repeat, and gold is the half that tells."""

from __future__ import annotations

from collections import Counter

import pytest

from rag_repro import data
from rag_repro.data import recurring
from rag_repro.schema import Passage

# Records rest on these.
FROZEN = {
    "world-A-several": "ddda653a405f15ce",
    "world-B-several": "c118e51dc6d475e1",
    "world-C-several": "e243219dced57685",
    "world-A-asked-halves": "a37c39fe4d727357",
    "world-A-again-halves": "fc2e0aee94d961c0",
    "world-B-asked-halves": "4110773ad98b22eb",
    "world-B-again-halves": "5748fe3bf0b7404d",
}


@pytest.mark.parametrize("name", FROZEN)
def test_they_are_as_they_were(name):
    assert data.load(name).questions_sha256.startswith(FROZEN[name])


@pytest.fixture(scope="module")
def made():
    return {part: data.load(f"world-B-{part}-halves") for part in ("asked", "again")}


def test_a_passage_is_cut_at_the_end_of_a_sentence_that_is_nearest_to_the_middle():
    text = "One two. Three four five six. Seven eight."
    one, other = recurring.cut(Passage("p", "T", text))
    assert (one.text, other.text) == ("One two. Three four five six.", "Seven eight.")
    assert [(h.id, h.title) for h in (one, other)] == [("pa", "T"), ("pb", "T")]
    one, other = recurring.cut(Passage("p", "T", "A. Bb. Cccc dddd eeee ffff."))
    assert (one.text, other.text) == ("A. Bb.", "Cccc dddd eeee ffff.")


def test_two_passages_bear_each_title_and_nothing_is_lost(made):
    whole = data.load("world-B").corpus
    corpus = made["asked"].corpus
    assert corpus.sha256 == made["again"].corpus.sha256
    assert set(Counter(p.title for p in corpus.passages).values()) == {2}
    for passage in whole.passages[:200]:
        one, other = (corpus.by_id[f"{passage.id}{half}"] for half in "ab")
        assert f"{one.text} {other.text}" == passage.text
        assert one.title == other.title == passage.title


def test_gold_is_the_half_that_states_the_fact(made):
    for dataset in made.values():
        for q in dataset.questions:
            assert [g.passage_id for g in q.gold] == [s.passage_id for s in q.steps]
            last = dataset.corpus.by_id[q.steps[-1].passage_id]
            assert any(a in last.text for a in q.answers) or q.hops > 1, q.id


def test_of_each_thing_both_halves_are_asked_for_in_turns(made):
    asked = made["asked"].questions
    order = Counter()
    for first, second in zip(asked[::2], asked[1::2], strict=True):
        assert first.meta["group"] == second.meta["group"]
        assert first.cluster == second.cluster
        beside, plain = sorted((first, second), key=lambda q: not q.id.endswith("-beside"))
        assert beside.id == f"{plain.id}-beside"
        one, other = beside.gold[0].passage_id, plain.gold[0].passage_id
        assert (one[:-1], one != other) == (other[:-1], True)
        order[first is plain] += 1
    assert abs(order[True] - order[False]) <= 1
    assert len(asked) > 100


def test_asked_again_are_other_wordings_of_those_alone(made):
    asked = {q.meta["group"] for q in made["asked"].questions}
    again = made["again"].questions
    assert {q.meta["group"] for q in again} == asked
    assert set(Counter(q.meta["group"] for q in again).values()) == {3}
    texts = {q.text for q in made["asked"].questions}
    assert not texts & {q.text for q in again}
    # The second wording of every group before the third of any.
    assert len({q.meta["group"] for q in again[: len(asked)]}) == len(asked)


def test_questions_about_two_things_name_both():
    made = data.load("world-B-several")
    assert {q.kind for q in made.questions} == set(data.SEVERAL)
    assert made.name == "world-B-several@4000"
    assert made.corpus.sha256 == data.load("world-B").corpus.sha256
    for q in made.questions:
        assert len(q.gold) == 2
        titles = [made.corpus.by_id[g.passage_id].title for g in q.gold]
        assert all(title.partition(" (")[0] in q.text for title in titles), q.id
    assert len(data.load("world-A-several", split="tune").questions) > 50
