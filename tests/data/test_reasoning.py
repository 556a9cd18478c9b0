"""Facts as sentences: where their values stand, and the chain that they make."""

from __future__ import annotations

from random import Random

import pytest

from rag_repro.data import synthworld
from rag_repro.data.synthworld.reasoning import facts_of, sayings, statements, thoughts

WORLDS = ("A", "B")


@pytest.mark.parametrize("name", WORLDS)
def test_a_saying_is_a_statement_with_its_value_at_its_place(name):
    world = synthworld.world(name)
    for question in synthworld.build(name).questions[:200]:
        facts = facts_of(world, question)
        said = sayings(world, question, Random(question.id))
        assert [one.fact for one in said] == list(facts)
        for one in said:
            assert one.text in statements(world, one.fact)
            assert one.text[one.first : one.last] == one.fact.value
            title = world.entity[one.fact.subject].title
            assert one.text.startswith(f"{title} ")
            assert one.first > len(title)


def test_thoughts_are_the_same_sayings_and_the_sum():
    world = synthworld.world("B")
    sums = 0
    for question in synthworld.build("B").questions[:200]:
        said = " ".join(one.text for one in sayings(world, question, Random(1)))
        made = thoughts(world, question, Random(1))
        assert made.startswith(said)
        rest = made.removeprefix(said)
        assert bool(rest) == (question.kind == "numeric_difference")
        if rest:
            sums += 1
            assert rest.endswith(f" = {question.answers[0]}.")
    assert sums


def test_a_statement_can_name_its_value_otherwise():
    world = synthworld.world("B")
    fact = world.facts[0]
    for plain, other in zip(statements(world, fact), statements(world, fact, "X"), strict=True):
        assert other == plain.replace(fact.value, "X")
