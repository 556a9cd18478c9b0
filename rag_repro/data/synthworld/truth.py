"""What a passage is to a question: the label that selectors and evaluators learn from."""

from __future__ import annotations

from typing import Literal

from ...schema import Question
from .world import World

Truth = Literal["gold", "answer", "topic", "other"]


def truth(world: World, question: Question, passage_id: str) -> Truth:
    """How a passage stands to a question of this world.

    "gold": the question needs it. "answer": it is not needed, but holds an
    accepted answer (by chance, or as the answer's own page). "topic": it holds
    the full name of an entity that the question names, without the answer, or
    is about a namesake of it. "other": none of this. Yes/no answers and
    numbers that have to be computed are no strings to look for.
    Raises KeyError for an id outside the world.
    """
    passage = world.passage[passage_id]
    if passage_id in question.gold_ids:
        return "gold"
    text = f"{passage.title}\n{passage.text}"
    accepted = question.answers
    for part in question.meta.get("parts", ()):
        accepted += part
    spoken = question.kind not in ("yes_no", "numeric_difference")
    if spoken and any(answer in text for answer in accepted):
        return "answer"
    # Steps of hop 1 have the entities that the question names as subjects.
    named = (world.subject_of[g.passage_id].name for g in question.gold if g.role == "static")
    return "topic" if any(name in text for name in named) else "other"
