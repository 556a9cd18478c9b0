"""What a maker of questions works with, and what it hands over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...schema import Gold, Interpretation, Step
from .asking import Asker, Draw, pick
from .chains import answers_of
from .world import Entity, Fact, World


@dataclass(frozen=True)
class Draft:
    """A question without id. roots: entities that it names; texts: one or more wordings."""

    texts: tuple[str, ...]
    answers: tuple[str, ...]
    hops: int
    gold: tuple[Gold, ...]
    steps: tuple[Step, ...]
    roots: tuple[Entity, ...]
    facts: tuple[Fact, ...]
    answer_type: str
    interpretations: tuple[Interpretation, ...] = ()
    held_out: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Desk:
    """What a maker works with: a world, its wordings, one block's entities, chance.

    lot: a number in [0, 1) that stays through all tries for one question, so that
    an answer that is harder to find (a yes) does not come up less often.
    """

    world: World
    asker: Asker
    block: Mapping[str, Sequence[Entity]]
    draw: Draw
    lot: float = 0.0

    def step(self, fact: Fact) -> Step:
        subject = self.world.entity[fact.subject]
        text = self.asker.ask(fact.relation, subject.title, self.draw)
        return Step(text, answers_of(self.world, fact)[0], fact.passage_id)

    def partner(self, entity: Entity) -> Entity:
        """Another entity of the same kind and block."""
        return pick(self.block[entity.kind], self.draw)
