"""A world's ambiguous questions, each with the reading that its asker has in mind.

`world-B-ambiguous`: all questions of the kind, over the world's corpus, under the ids and in
the words that they have in the world. What was meant is drawn: in world A four times in five
it is the bearer of the name whose description comes first in the alphabet ("the actor" before
"the singer", "the 1917 film" before "the 1939 film"), in the other worlds as often the one
whose description comes last. So a rewriter that learns in world A what people mean learns
something that is wrong elsewhere, and one that resolves a question from passages does not.
No method sees the intent. Scores ask for every reading; `intent_hit` for this one.

`world-B-meant`: the same questions, each in the words of the reading that was meant: what a
rewriter that knows the intent would make of them. All else is the same, every reading's
answers among it, so that answers with and without such a rewriter can be paired.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from rag_repro.data.synthworld import World
from rag_repro.schema import Question
from rag_repro.schema.dataset import Dataset

SHARE = 0.8
TRAINED = "A"
"""The world whose askers mean the first; those of the others mean the last."""


def given(made: Dataset, world: World, *, meant: bool) -> Dataset:
    """The ambiguous questions of `made`, with `meta["intent"]`: the place of a reading.

    meant: in the words of that reading.
    """
    questions = tuple(_with(q, intent(q, world), meant) for q in made.questions)
    end = "first" if world.name == TRAINED else "last"
    prior = f"{SHARE:.0%} mean the reading whose description comes {end} in the alphabet"
    head, at, size = made.name.partition("@")
    card = {**made.card, "intents": prior}
    name = f"{head}-{'meant' if meant else 'ambiguous'}{at}{size}"
    return replace(made, name=name, questions=questions, card=card)


def _with(question: Question, place: int, meant: bool) -> Question:
    text = question.interpretations[place].question if meant else question.text
    return replace(question, text=text, meta={**question.meta, "intent": place})


def intent(question: Question, world: World) -> int:
    """Which of the question's readings is meant, counted from 0; a fixed lot."""
    told = [_description(world, subject) for subject in question.meta["subjects"]]
    order = sorted(range(len(told)), key=told.__getitem__)
    usual = order.pop(0 if world.name == TRAINED else -1)
    draw = Random(f"intent {question.id}").random
    return usual if draw() < SHARE else order[int(draw() * len(order))]


def _description(world: World, subject: str) -> str:
    """ "1984 film" of "Name (1984 film)"."""
    entity = world.entity[subject]
    return entity.title[len(entity.name) + 2 : -1]
