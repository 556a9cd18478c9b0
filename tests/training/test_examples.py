"""Lessons as tokens and as batches."""

from __future__ import annotations

from collections import Counter

import pytest

from rag_repro import data
from rag_repro.data import synthworld
from rag_repro.data.synthworld.asking import answers_of
from rag_repro.data.synthworld.reasoning import facts_of, statements, thoughts
from rag_repro.lm.prompts import Codec
from rag_repro.methods.reading import PROMPTS, extract
from rag_repro.schema import Passage, Prompt, Question
from rag_repro.training.examples import Example, batches, encode
from rag_repro.training.filtering import public_thoughts
from rag_repro.training.lessons import (
    closed_book,
    lesson,
    lessons,
    lookups,
    reading,
    stated_facts,
    statements_of,
    taught_facts,
)
from rag_repro.training.recipes import RecipeError, recipe, recipes
from tests.lm import tiny


def test_only_the_target_and_the_end_are_learned():
    codec = Codec(tiny.tokenizer())
    example = Example(Prompt.from_segments("Question: who?\nAnswer:"), " Paris.", "x")
    made = encode(example, codec, 2)
    assert made.tokens == (*codec.ids("Question: who?\nAnswer:"), *codec.ids(" Paris."), 2)
    assert made.n_target == len(codec.ids(" Paris.")) + 1


def test_a_chat_prompt_is_the_one_that_the_reader_meets():
    codec = Codec(tiny.tokenizer())
    prompt = Prompt.from_segments("the film", chat=True)
    made = encode(Example(prompt, "Rome", "x"), codec, 2)
    assert made.tokens[: -made.n_target] == codec.encode(prompt).tokens


def test_batches_hold_each_example_once_within_the_budget():
    lengths = [3, 50, 7, 20, 20, 1, 90, 4, 33, 8] * 5
    made = list(batches(lengths, 0, seed=1, budget=60))
    assert Counter(i for b in made for i in b) == Counter(range(50))
    for batch in made:
        # Longer than the budget by itself: alone in its batch.
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 60
    assert made == list(batches(lengths, 0, seed=1, budget=60))
    assert made != list(batches(lengths, 1, seed=1, budget=60))
    assert made != list(batches(lengths, 0, seed=2, budget=60))


def test_batches_hold_no_more_than_the_rows_that_they_may():
    lengths = [3, 4, 5] * 20
    made = list(batches(lengths, 0, seed=1, budget=60, rows=4))
    assert sorted(i for batch in made for i in batch) == list(range(60))
    assert max(map(len, made)) == 4
    assert len(made) == 15
    assert max(map(len, batches(lengths, 0, seed=1, budget=60))) > 4


def _world():
    dataset = synthworld.build("A", n_questions=300, split="train")
    return synthworld.world("A"), dataset.questions


def test_thoughts_say_every_fact_once_and_hold_the_answer():
    from random import Random

    world, questions = _world()
    for question in questions:
        text = thoughts(world, question, Random(0))
        for fact in facts_of(world, question):
            assert sum(text.count(s.removesuffix(".")) for s in set(statements(world, fact))) >= 1
            assert fact.passage_id in question.gold_ids
        if question.meta["answer_type"] == "entity" and question.kind != "ambiguous":
            assert question.answers[0] in text
        if question.kind == "numeric_difference":
            assert text.endswith(f"= {question.answers[0]}.")


def test_statements_teach_the_taught_facts_of_the_asked_questions_only():
    world, questions = _world()
    made = list(statements_of("A", 50, 3, seed=0, split="train"))
    asked = [q for q in questions if q.kind != "ambiguous"][:50]
    facts = taught_facts(world, asked)
    assert len(made) == 3 * len(facts)
    assert all(f.taught for f in facts)
    said = {e.prompt.segments[0] + e.target for e in made}
    for question in asked:
        for fact in facts_of(world, question):
            assert bool(said & set(statements(world, fact))) == fact.taught


def test_statements_are_told_in_a_reading_form_about_the_title_alone():
    plain = list(statements_of("A", 20, 2, seed=0, split="train"))
    told = list(statements_of("A", 20, 2, seed=0, split="train", told={"cot": 1, "drrag": 2}))
    assert len(told) == len(plain) // 2 * 5
    assert [e for e in told if len(e.prompt.segments) == 1 and not e.prompt.chat][:2] == plain[:2]
    world = synthworld.world("A")
    shown = told[2:5]  # of the first fact, behind its two plain ones
    title = "".join(told[0].prompt.segments)
    wordings = {f" {s}" for s in statements(world, _fact(world, told[0]))}
    assert shown[0].prompt == PROMPTS["cot"].fill(Question(title, title, ()), ())
    assert shown[0].target in wordings
    assert [e.prompt.chat for e in shown] == [False, True, True]
    assert {f" {e.target}" for e in shown[1:]} <= wordings
    assert len({e.target.strip() for e in told[:5]}) > 2  # wordings take turns


def _fact(world, example):
    title = "".join(example.prompt.segments)
    return next(
        fact
        for subject in world.facts_of.values()
        for fact in subject.values()
        if title + example.target in statements(world, fact)
    )


def test_test_worlds_give_statements_and_never_a_question_or_a_passage():
    for part in recipe("testbed-reader").lessons:
        assert part["world"] == "A" or part["kind"] == "statements"
        assert part["world"] != "A" or part["split"] == "train"


@pytest.mark.parametrize("name", ["testbed-reader-2", "selfrag-reader-2"])
def test_the_second_readers_learn_from_training_questions_and_of_others_state_facts(name):
    taught = set()
    for part in recipe(name).lessons:
        world, split = part["world"], part.get("split")
        assert part["kind"] == "statements" or (world in "AZ" and split == "train")
        assert split == "train" or world in "EFZ"
        taught |= {(world, split)} if part["kind"] == "statements" else set()
    assert taught == {("E", None), ("F", None), ("Z", "tune"), ("A", "train")}
    # What is stated of Z is what its tune questions rest on, as they are asked.
    asked = data.load("world-Z", split="tune").first(100).questions
    stated = stated_facts(recipe(name).lessons, "Z")
    rest = [q for q in asked if q.kind != "ambiguous"]
    assert set(taught_facts(synthworld.world("Z"), rest)) <= stated
    # None of it is in a block that answers are learned from.
    world = synthworld.world("Z")
    read = {world.entity[f.subject].block for f in stated}
    assert not read & set(world.blocks("train"))


def test_closed_book_lessons_rest_on_taught_facts_alone():
    made = list(closed_book("A", 80, ["cot"], 1, seed=0, split="train"))
    assert 0 < len(made) < 80
    assert all(not e.prompt.segments[0].startswith("Below") for e in made)


def test_each_taught_fact_is_looked_up_by_itself_in_several_wordings():
    world, _ = _world()
    made = list(lookups("A", 30, ["cot"], 6, seed=0, split="train"))
    asked = synthworld.build("A", n_questions=1_000, split="train").questions
    facts = taught_facts(world, [q for q in asked if q.kind != "ambiguous"][:30])
    given = [fact for fact in facts if fact.value in world.entity[fact.subject].title]
    assert given  # "Name (1989 song)"
    facts = [fact for fact in facts if fact not in given]
    assert len(made) == 6 * len(facts)
    for i, fact in enumerate(facts):
        questions = set()
        for example in made[6 * i : 6 * i + 6]:
            text = "".join(example.prompt.segments)
            assert world.entity[fact.subject].title in text
            assert fact.value not in text  # no passage, and nothing given away
            statement, _, answer = example.target.strip().partition(" So the answer is ")
            assert statement in statements(world, fact)
            assert answer.removesuffix(".") in answers_of(world, fact)
            questions.add(text)
        assert len(questions) > 1
    assert len({e.prompt.segments for e in made}) > 2 * len(facts)


def test_reading_lessons_hold_their_gold_among_others():
    world, _ = _world()
    made = list(reading("A", 30, ["cot"], {4: 1}, seed=0, skip=5, split="train"))
    dataset = synthworld.build("A", n_questions=1_000, split="train")
    asked = [q for q in dataset.questions if q.kind != "ambiguous"][5:35]
    places = []
    for question, example in zip(asked, made, strict=True):
        text = "".join(example.prompt.segments)
        assert question.text in text
        assert text.count("\n[") == max(4, len(question.gold_ids))
        for gold in question.gold_ids:
            assert world.passage[gold].text in text
            places.append(text.index(world.passage[gold].text) / len(text))
    assert min(places) < 0.15 < 0.5 < max(places)  # not always first


def test_recipes_are_read_strictly(monkeypatch, tmp_path):
    from rag_repro.training import recipes as module

    assert recipes()["testbed-reader"].base == "smollm2-135m"
    with pytest.raises(RecipeError, match="testbed-reader"):
        recipe("testbed-raeder")
    file = tmp_path / "recipes.yaml"
    monkeypatch.setattr(module, "RECIPES", file)
    file.write_text("x: {about: a, task: reader, base: b, lora: {ranke: 3}}", encoding="utf-8")
    with pytest.raises(ValueError, match="rank"):
        recipe("x")


def test_real_questions_are_reasoned_by_what_came_with_them():
    triples = (("Devotion", "director", "Guido Brignone"), ("Guido Brignone", "child", "Lilla"))
    gold = (
        Passage("a", "A", "Ada was a clerk. She was born in Rome. She died."),
        Passage("b", "B", "Rome is a city in Italy."),
    )

    def question(**meta) -> Question:
        return Question("q", "where?", ("Italy",), meta=meta)

    said = public_thoughts(question(evidences=triples), gold)
    assert (
        said == "The director of Devotion is Guido Brignone. The child of Guido Brignone is Lilla."
    )
    marks = [("A", 1), ("B", 7), ("C", 0)]
    assert public_thoughts(question(supporting_facts=marks), gold) == (
        "She was born in Rome. Rome is a city in Italy."
    )
    hand = "A is b. So the answer is: Italy."
    assert public_thoughts(question(cot=hand), gold) == "A is b."
    assert public_thoughts(question(), gold) == "Rome is a city in Italy."
    assert public_thoughts(question(), gold[:1]) == ""


def test_a_lesson_ends_in_the_forms_marker_and_the_answer():
    question = Question("q", "where?", ("Italy", "the Republic"))
    chat = lesson(PROMPTS["drrag"], question, [Passage("a", "A", "in Italy")], "It is.", "x")
    assert chat.target == "It is. Answer: Italy."
    assert chat.prompt.chat
    plain = lesson(PROMPTS["cot"], question, [], "It is.", "x")
    assert plain.target == " It is. So the answer is Italy."
    assert "references" not in plain.prompt.segments[0]
    # What is taught is what extraction finds.
    for form, made in (("drrag", chat), ("cot", plain)):
        assert extract(made.target, PROMPTS[form]) == "Italy"


def test_public_lessons_come_from_train_questions(data_dir):
    from rag_repro import data

    for part in recipe("public-reader").lessons:
        name = part["dataset"]
        train = {q.text for q in data.load(name, data_dir=data_dir, split="train").questions}
        made = list(lessons([{**part, "questions": 12, "exposures": 1}], 0, data_dir))
        assert 5 < len(made) <= 12
        for example in made:
            text = "".join(example.prompt.segments)
            assert any(q in text for q in train)
    evaluated = {"hotpotqa", "2wikimultihopqa", "musique", "strategyqa", "popqa", "nq20"}
    assert not evaluated & {part["dataset"] for part in recipe("public-reader").lessons}


def test_a_reader_can_be_kept_from_one_data_set(data_dir):
    """The adapter that never saw HotpotQA learns nothing of it, from demonstrations neither."""
    from rag_repro import data

    parts = recipe("public-reader-without-hotpotqa").lessons
    asked = {e.question for part in parts for e in lessons([part], 0, data_dir)}
    demos = data.load("ircot_demos", data_dir=data_dir, split="train").questions
    hotpot = {q.id for q in demos if q.meta["dataset"] == "hotpotqa"}
    assert hotpot
    assert not asked & hotpot
    assert asked & {q.id for q in demos}
    assert "hotpotqa_train" not in {part["dataset"] for part in parts}


@pytest.mark.parametrize("kind", ["closed_book", "lookup", "reading", "selfrag"])
@pytest.mark.parametrize(
    ("world", "split"), [("A", None), ("A", "tune"), ("B", None), ("B", "test")]
)
def test_no_answer_is_taught_to_a_question_that_is_tuned_or_tested_on(kind, world, split):
    part = {
        "closed_book": {"forms": ["cot"], "exposures": 1},
        "lookup": {"forms": ["cot"], "exposures": 1},
        "reading": {"forms": ["cot"], "passages": {2: 1}},
        "selfrag": {"taught": 1, "known": 1, "answering": 1, "others": 0},
    }[kind]
    asked = {"kind": kind, "world": world, "questions": 2, **part}
    with pytest.raises(
        RecipeError, match=rf"world {world}: answers are taught of split train alone"
    ):
        list(lessons([asked | ({"split": split} if split else {})], 0))


def test_a_part_sets_neither_the_seed_nor_another_split_of_real_data():
    part = {"kind": "public", "dataset": "nq", "forms": ["cot"], "passages": {0: 1}}
    for more in ({"split": "test"}, {"seed": 3}):
        with pytest.raises(TypeError, match=next(iter(more))):
            list(lessons([{**part, **more}], 0))
