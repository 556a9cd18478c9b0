"""Lessons as tokens and as batches."""

from __future__ import annotations

from collections import Counter

import pytest

from rag_repro.data import synthworld
from rag_repro.lm.prompts import Codec
from rag_repro.schema import Prompt
from rag_repro.training.examples import Example, batches, encode
from rag_repro.training.lessons import closed_book, lessons, reading, statements_of, taught_facts
from rag_repro.training.reasoning import facts_of, statements, thoughts
from rag_repro.training.recipes import RecipeError, recipe, recipes
from tests.lm import tiny


def test_only_the_target_and_the_end_are_learned():
    codec = Codec(tiny.tokenizer())
    example = Example(Prompt.of("Question: who?\nAnswer:"), " Paris.", "x")
    made = encode(example, codec, 2)
    assert made.tokens == (*codec.ids("Question: who?\nAnswer:"), *codec.ids(" Paris."), 2)
    assert made.n_target == len(codec.ids(" Paris.")) + 1


def test_a_chat_prompt_is_the_one_that_the_reader_meets():
    codec = Codec(tiny.tokenizer())
    prompt = Prompt.of("the film", chat=True)
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


def test_test_worlds_give_statements_and_never_a_question_or_a_passage():
    for name in ("testbed-reader",):
        for part in recipe(name).lessons:
            assert part["world"] == "A" or part["kind"] == "statements"
            assert part["world"] != "A" or part["split"] == "train"


def test_closed_book_lessons_rest_on_taught_facts_alone():
    made = list(closed_book("A", 80, ["cot"], 1, seed=0, split="train"))
    assert 0 < len(made) < 80
    assert all(not e.prompt.segments[0].startswith("Below") for e in made)


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
    with pytest.raises(RecipeError, match="rank"):
        recipe("x")
    file.write_text("x: {about: a, task: paris, base: b}", encoding="utf-8")
    with pytest.raises(RecipeError, match="pairs"):
        recipe("x")
    file.write_text(
        "x: {about: a, task: reader, base: b, lessons: [{kind: redaing}]}", encoding="utf-8"
    )
    with pytest.raises(RecipeError, match="reading"):
        list(lessons(recipe("x").lessons, 0))
