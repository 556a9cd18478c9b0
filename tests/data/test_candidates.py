"""Worlds with candidates of their own, and NQ with ten: what a question comes with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro import data
from rag_repro.data import candidates, splits
from rag_repro.evaluation.retrieval_metrics import has_answer
from rag_repro.retrieval import BM25
from rag_repro.schema import Gold, Passage, Question
from rag_repro.schema.dataset import Corpus, Dataset

# Records rest on these: a change of one makes all of its records another data set's.
WORLDS = {
    "world-A": "f2fc75d858bc81c8",
    "world-B": "e0ad61154f152dd4",
    "world-C": "34269e96e3530d6e",
    "world-D": "b77b4c1c1a6afc91",
    "world-A-10": "34f3d7f41fe9",
    "world-B-10": "45077987eaf7",
}
PUBLIC = {
    "hotpotqa": "e0c6500fad074737",
    "2wikimultihopqa": "addc9282d10406b0",
    "musique": "96c8d79c64099a97",
    "nq": "ca9104cb6726a0a2",
    "nq10": "26318dd0c76b9e2c",
    "nq20": "2ebf7166475f45dd",
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_worlds_themselves_are_as_they_were(name):
    assert data.load(name).questions_sha256.startswith(WORLDS[name])


@pytest.mark.parametrize("name", PUBLIC)
def test_public_data_sets_are_as_they_were(name, data_dir):
    assert data.load(name, data_dir=data_dir).questions_sha256.startswith(PUBLIC[name])


@pytest.fixture(scope="module")
def world():
    return data.load("world-B@1000")


@pytest.fixture(scope="module")
def ten():
    return data.load("world-B-10@1000")


def test_ten_candidates_the_gold_among_them_and_no_other_gives_the_answer_away(ten):
    passages = ten.corpus.by_id
    open_questions = 0
    for q in ten.questions:
        assert len(q.candidates) == len(set(q.candidates)) == 10
        assert set(q.gold_ids) < set(q.candidates)
        others = [passages[i] for i in q.candidates if i not in q.gold_ids]
        if q.answers[0] not in ("yes", "no"):
            open_questions += 1
            assert not any(has_answer(p, q.answers) for p in others), q.id
    assert open_questions > 800


def test_everything_else_is_the_worlds_own(world, ten):
    assert ten.corpus is world.corpus
    assert ten.name == "world-B-10@1000"
    assert ten.card == {**world.card, "candidates": "10 passages a question"}
    assert tuple(replace(q, candidates=()) for q in ten.questions) == world.questions
    assert not any(q.candidates for q in world.questions)


def test_a_smaller_number_is_among_a_larger_one_and_gold_alone_is_all_gold(ten):
    five, gold = (data.load(f"world-B-{n}@1000") for n in ("5", "gold"))
    for small, large, only in zip(five.questions, ten.questions, gold.questions, strict=True):
        assert len(small.candidates) == 5
        assert set(only.candidates) == set(only.gold_ids) <= set(small.candidates)
        assert set(small.candidates) < set(large.candidates)


def test_the_order_is_the_searches_so_that_gold_has_no_place_of_its_own(ten):
    search = BM25(ten.corpus)
    some = ten.questions[:20]
    found = search.search([q.text for q in some], k=10, within=[q.candidates for q in some])
    assert [q.candidates for q in some] == [tuple(h.passage.id for h in hits) for hits in found]
    places = {q.candidates.index(i) for q in ten.questions for i in q.gold_ids}
    assert places == set(range(10))


def small(answers, passages, gold=("p0",)):
    made = [Passage(f"p{i}", f"T{i}", text) for i, text in enumerate(passages)]
    question = Question("q", "harbour mayor", answers, gold=tuple(Gold(i) for i in gold))
    return Dataset("world-X", (question,), Corpus("x", tuple(made)), {"world": "X"})


MANY = [f"harbour mayor Arno number {i}" for i in range(40)]


def test_where_the_nearest_all_give_the_answer_it_looks_further():
    world = small(("Arno",), ["harbour", *MANY, *(f"quiet {i}" for i in range(4))])
    [question] = candidates.given(world, "5").questions
    assert set(question.candidates) == {"p0", "p41", "p42", "p43", "p44"}


def test_yes_and_no_give_nothing_away_and_a_title_does():
    world = small(("yes",), ["harbour", *(f"harbour mayor yes {i}" for i in range(9))])
    [question] = candidates.given(world, "5").questions
    assert len(question.candidates) == 5
    world = small(("T2",), ["harbour", *(f"harbour mayor {i}" for i in range(9))])
    [question] = candidates.given(world, "10").questions
    assert "p2" not in question.candidates
    assert len(question.candidates) == 9  # there are no more


def test_more_gold_than_asked_for_stays_whole():
    gold = tuple(f"p{i}" for i in range(7))
    [question] = candidates.given(small(("z",), MANY, gold), "5").questions
    assert set(question.candidates) == set(gold)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("world-B-4", "4 candidates a question cannot be had; ask for 5 to 100"),
        ("world-B-500", "cannot be had"),
        ("world-B-golden", "no data set 'world-B-golden'"),
        ("world-G-10", "no data set 'world-G-10'"),
    ],
)
def test_numbers_that_cannot_be_had_are_refused_before_anything_is_made(name, message):
    with pytest.raises(ValueError, match=message):
        data.check_name(name)


def test_splits_are_the_worlds():
    whole = data.load("world-A@1000")
    for split in ("train", "tune"):
        wanted = [q.id for q in splits.only_of_world(whole, "A", split).questions]
        got = data.load("world-A-10@1000", split=split)
        assert [q.id for q in got.questions] == wanted
        assert got.card["frozen_split"] == split
        assert all(len(q.candidates) == 10 for q in got.questions)
    with pytest.raises(splits.SplitError, match="train and tune on A"):
        data.load("world-B-10@1000", split="train")


def test_nq10_has_ten_the_gold_among_them_for_nq20s_test_questions(data_dir):
    ten, twenty = (data.load(n, data_dir=data_dir, split="test") for n in ("nq10", "nq20"))
    assert len(ten.questions) == 269
    for q, more in zip(ten.questions, twenty.questions, strict=True):
        assert (q.id, q.text, q.answers, q.gold) == (more.id, more.text, more.answers, more.gold)
        assert q.candidates == more.candidates[:10]
        assert len(q.candidates) == 10
        assert len(q.gold) == 1
        assert set(q.gold_ids) <= set(q.candidates)
    used = {i for s in ("train", "tune") for i in splits.ids("nq", s)}
    assert used.isdisjoint(q.id for q in ten.questions)


def test_nq_has_the_gold_alone_for_the_same_questions(data_dir):
    """What figure 3 calls GT, beside nq10."""
    ten, gold = (data.load(n, data_dir=data_dir, split="test") for n in ("nq10", "nq"))
    assert [q.id for q in ten.questions] == [q.id for q in gold.questions]
    assert all(len(q.candidates) == 1 == len(q.gold) for q in gold.questions)
    differ = [q.id for q, g in zip(ten.questions, gold.questions, strict=True) if q.text != g.text]
    assert not differ
