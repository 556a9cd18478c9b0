"""Questions asked again, ambiguous ones with their intents, AmbigNQ over NQ's passages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rag_repro import data
from rag_repro.data import recurring, splits
from rag_repro.data.public.loading import SHORTEST, over
from rag_repro.evaluation.metric import accepted
from rag_repro.evaluation.normalise import squad
from rag_repro.evaluation.retrieval_metrics import has_answer
from rag_repro.schema import Interpretation, Passage, Question
from rag_repro.schema.dataset import Corpus, Dataset

# Records rest on these, as on the worlds' own (`test_candidates`).
FROZEN = {
    "world-A-ambiguous": "eb24626a1b86a534",
    "world-A-asked": "ab3930365cce87c6",
    "world-A-again": "92a9087436d77b7b",
    "world-B-ambiguous": "d5a5ffbfceab6568",
    "world-B-asked": "08c5b780ec1cab99",
    "world-B-again": "be1a1dff103f2cd0",
    "world-C-ambiguous": "d8f2818e154e7444",
    "world-C-asked": "e109f6a293808796",
    "world-C-again": "23bc560a27c80146",
    "world-D-ambiguous": "4318ace1d90ca8de",
    "world-D-asked": "fcfa5fe568200494",
    "world-D-again": "509eaee09eee39df",
}
PUBLIC = {
    "ambignq": "79fa8e9ccb846f26",
    "ambignq_nq": "dbbbf4b6f6b2967a",
    "ambignq_asked": "9a6172d66a8c7782",
    "ambignq_again": "f3d69f98dd5a4141",
}


@pytest.mark.parametrize("name", FROZEN)
def test_they_are_as_they_were(name):
    assert data.load(name).questions_sha256.startswith(FROZEN[name])


@pytest.mark.parametrize("name", PUBLIC)
def test_public_ones_are_as_they_were(name, data_dir):
    assert data.load(name, data_dir=data_dir).questions_sha256.startswith(PUBLIC[name])


# ------------------------------------------------------------- intents


@pytest.fixture(scope="module", params=["A", "B", "C", "D"])
def ambiguous(request):
    return request.param, data.load(f"world-{request.param}-ambiguous")


def test_ambiguous_questions_are_the_worlds_own_and_all_there_are(ambiguous):
    letter, made = ambiguous
    whole = data.load(f"world-{letter}")
    own = [q for q in whole.questions if q.kind == "ambiguous"]
    assert made.corpus is whole.corpus or made.corpus.sha256 == whole.corpus.sha256
    assert made.name == f"world-{letter}-ambiguous@4000"
    assert len(made.questions) > 150
    for q in own:
        twin = made.by_id[q.id]
        assert (twin.text, twin.interpretations, twin.gold) == (q.text, q.interpretations, q.gold)
        assert "intent" not in q.meta


def test_world_a_means_the_first_and_the_others_the_last(ambiguous):
    from rag_repro.data import synthworld

    letter, made = ambiguous
    world = synthworld.world(letter)
    first = []
    for q in made.questions:
        titles = [world.entity[s].title for s in q.meta["subjects"]]
        told = [t[t.index("(") + 1 : -1] for t in titles]
        assert 0 <= q.meta["intent"] < len(q.interpretations) == len(told)
        first.append(told[q.meta["intent"]] == min(told))
    share = np.mean(first)
    assert 0.7 < (share if letter == "A" else 1 - share) < 0.9


def test_an_intent_is_a_fixed_lot_and_enters_the_hash(ambiguous):
    letter, made = ambiguous
    q = made.questions[0]
    other = Question(**{f: getattr(q, f) for f in q.__slots__ if f != "meta"}, meta={"intent": 7})
    changed = Dataset(made.name, (other, *made.questions[1:]), made.corpus)
    assert changed.questions_sha256 != made.questions_sha256
    smaller = data.load(f"world-{letter}-ambiguous@1000")
    assert smaller.name == f"world-{letter}-ambiguous@1000"
    assert {q.meta["intent"] for q in smaller.questions} == {0, 1}


def test_what_was_meant_is_the_same_question_in_other_words(ambiguous):
    letter, vague = ambiguous
    made = data.load(f"world-{letter}-meant")
    assert made.name == f"world-{letter}-meant@4000"
    assert made.questions_sha256 != vague.questions_sha256
    for clear, q in zip(made.questions, vague.questions, strict=True):
        assert clear.text == q.interpretations[q.meta["intent"]].question != q.text
        assert replace(clear, text=q.text) == q


def test_world_a_trains_and_tunes_apart():
    whole = data.load("world-A-ambiguous")
    parts = [data.load("world-A-ambiguous", split=s).questions for s in ("train", "tune")]
    assert sum(map(len, parts)) == len(whole.questions)
    assert not {q.cluster for q in parts[0]} & {q.cluster for q in parts[1]}


# ------------------------------------------------------------- asked again


@pytest.mark.parametrize("name", ["world-B", "world-C"])
def test_again_has_three_other_wordings_of_each_question_asked(name):
    asked, again = data.load(f"{name}-asked"), data.load(f"{name}-again")
    assert asked.corpus.sha256 == again.corpus.sha256 == data.load(name).corpus.sha256
    assert (len(asked.questions), len(again.questions)) == (100, 300)
    by_group = {q.meta["group"]: q for q in asked.questions}
    assert len(by_group) == 100
    texts = {q.text for q in asked.questions}
    assert Counter(q.meta["group"] for q in again.questions) == dict.fromkeys(by_group, 3)
    for q in again.questions:
        first = by_group[q.meta["group"]]
        assert (q.answers, q.gold, q.cluster) == (first.answers, first.gold, first.cluster)
        assert q.text not in texts
    # The first hundred are one a group.
    assert len({q.meta["group"] for q in again.questions[:100]}) == 100


def test_the_frozen_questions_of_ambignq(data_dir):
    asked = data.load("ambignq_asked", data_dir=data_dir, split="test")
    again = data.load("ambignq_again", data_dir=data_dir, split="test")
    test = set(splits.ids("ambignq_nq", "test"))
    assert (len(asked.questions), len(again.questions)) == (100, 200)
    assert {q.id for q in (*asked.questions, *again.questions)} <= test
    assert not {q.id for q in asked.questions} & {q.id for q in again.questions}
    assert asked.corpus.sha256 == data.load("nq", data_dir=data_dir).corpus.sha256
    with pytest.raises(splits.SplitError, match="has no tune questions; it has test"):
        data.load("ambignq_again", data_dir=data_dir, split="tune")


class Likeness:
    """Vectors by a table: one direction a question."""

    fingerprint = "likeness"

    def encode(self, texts):
        angles = np.array([int(text.removeprefix("q")) for text in texts]) / 1000
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def make(dataset: Dataset, encoder) -> dict[str, list[str]]:
    """What `recurring.json` holds, from AmbigNQ's test questions over NQ's passages.

    Drawn by a seed; of equal cosines, to six digits, the smaller id comes first. Those asked
    again stand in an order that is drawn as well, so that the first n are a sample.
    """
    questions = sorted(dataset.questions, key=lambda q: q.id)
    asked = Random("ambignq asked").sample(questions, 100)
    others = [q for q in questions if q not in asked]
    vectors = [encoder.encode([q.text for q in part]) for part in (others, asked)]
    nearest = (vectors[0] @ vectors[1].T).max(axis=1).round(6)
    order = sorted(zip(-nearest, (q.id for q in others), strict=True))
    again = [name for _, name in order[:200]]
    Random("ambignq again").shuffle(again)
    return {"ambignq_asked": [q.id for q in asked], "ambignq_again": again}


def test_again_are_the_questions_most_like_one_asked():
    questions = tuple(Question(f"q{i:03}", f"q{i}", ("a",)) for i in range(900))
    made = make(Dataset("d", questions, Corpus("c", ())), Likeness())
    asked, again = ({int(i[1:]) for i in made[part]} for part in ("ambignq_asked", "ambignq_again"))
    assert (len(asked), len(again)) == (100, 200)
    assert not asked & again

    def far(i):
        return min(abs(i - j) for j in asked)

    rest = set(range(900)) - asked - again
    assert max(map(far, again)) <= min(map(far, rest))
    assert made["ambignq_again"] != sorted(made["ambignq_again"])
    assert make(Dataset("d", questions[::-1], Corpus("c", ())), Likeness()) == made


def test_questions_that_are_not_in_the_file_are_named():
    d = Dataset("ambignq_asked", (Question("x", "x", ("a",)),), Corpus("c", ()))
    with pytest.raises(ValueError, match="100 of 100 recurring questions"):
        recurring.of_public(d)


# ------------------------------------------------------------- over another corpus


def test_only_questions_with_an_answer_in_the_other_corpus_stay():
    passages = (Passage("p", "Harbour Song", "In 1990-91 the quay of Lome was 3 km long."),)
    readings = (Interpretation("which?", ("Nowhere",)), Interpretation("which?", ("the quay",)))
    asked = {
        "title": Question("title", "?", ("harbour song",)),
        "text": Question("text", "?", ("Rome", "Lome")),
        "part of a word": Question("part of a word", "?", ("Harb",)),
        "short": Question("short", "?", ("3", "km")),
        "words apart": Question("words apart", "?", ("Lome quay",)),
        "absent": Question("absent", "?", ("Paris",)),
        "reading": Question("reading", "?", ("Nowhere",), interpretations=readings),
        "across title and text": Question("across title and text", "?", ("song in 199091",)),
    }
    card = {"counts": {"questions": 8, "passages": 0}}
    made = over(
        Dataset("a", tuple(asked.values()), Corpus("a", ()), card),
        Dataset("b", (), Corpus("b", passages)),
    )
    assert [q.id for q in made.questions] == ["title", "text", "reading"]
    assert made.corpus.name == "b"
    assert made.card["counts"] == {"questions": 3, "passages": 1, "questions_before": 8}
    assert "3 of 8" in made.card["kept"]


def test_ambignq_over_nq_keeps_what_plain_search_finds(data_dir):
    whole = data.load("ambignq", data_dir=data_dir)
    made = data.load("ambignq_nq", data_dir=data_dir)
    assert made.card["kept"].endswith(": 680 of 1166")
    assert made.corpus.sha256 == data.load("nq", data_dir=data_dir).corpus.sha256
    passages = made.corpus.passages
    for q in (*made.questions[:4], *[q for q in whole.questions if q.id not in made.by_id][:4]):
        answers = [a for a in accepted(q) if len(squad(a)) >= SHORTEST]
        if answers:
            assert any(has_answer(p, answers) for p in passages) == (q.id in made.by_id), q.id
