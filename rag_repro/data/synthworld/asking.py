"""How questions are put into words; chains of facts through a world, what makes one fit for a
question, and what a maker of questions works with and hands over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from rag_repro.data.synthworld.dials import PRESETS
from rag_repro.data.synthworld.wordings import (
    held_out_pair,
    options,
    read_table,
    wordings,
)
from rag_repro.data.synthworld.world import Entity, Fact, World
from rag_repro.schema import Gold, Interpretation, Step

Draw = Callable[[], float]


def pick(items: Sequence, draw: Draw):
    return items[int(draw() * len(items))]


class Asker:
    """Words the questions of one world. `draw` is a source of numbers in [0, 1)."""

    def __init__(self, world: World):
        self.which = PRESETS[world.name].wording
        self.overlap = world.dials.wording_overlap
        self.wordings = wordings(self.which)
        self.table = read_table("phrases.yaml")

    def mention(self, entity: Entity, draw: Draw) -> str:
        """An entity by its title, perhaps with what it is: "the film X"."""
        forms = self.table["mentions"].get(entity.kind)
        if forms is None or entity.name != entity.title:
            text = entity.title
        else:
            text = pick(options(forms[self.which]), draw).replace("{x}", entity.title)
        if entity.about and forms is not None:
            text = self.table["subjects"]["name"][self.which].format(x=text, a=entity.about)
        return text

    def ask(self, relation: str, subject: str, draw: Draw) -> str:
        """A question for the object of a relation; subject is a mention or noun phrase."""
        wording = self.wordings[relation]
        forms = wording.near if draw() < self.overlap else wording.far
        return pick(forms, draw).replace("{x}", subject)

    def phrase(self, relation: str, subject: str, draw: Draw) -> str:
        """A noun phrase for the object of a relation: "the director of X"."""
        wording = self.wordings[relation]
        forms = wording.np_near if draw() < self.overlap else wording.np_far
        return pick(forms, draw).replace("{x}", subject)

    def nested(self, relations: Sequence[str], subject: str, draw: Draw) -> str:
        """A question for the end of a chain of relations, nested into one sentence."""
        for relation in relations[:-1]:
            subject = self.phrase(relation, subject, draw)
        return self.ask(relations[-1], subject, draw)

    def wordings_of(self, relations: Sequence[str], entity: Entity) -> tuple[str, ...]:
        """All ways to ask for the end of a chain; the same question in other words."""
        subjects = [entity.title]
        for relation in relations[:-1]:
            wording = self.wordings[relation]
            forms = wording.np_near + wording.np_far
            subjects = [form.replace("{x}", s) for form in forms for s in subjects]
        last = self.wordings[relations[-1]]
        return tuple(f.replace("{x}", s) for f in last.near + last.far for s in subjects)

    def form(self, section: str, key: str | None, draw: Draw, **slots: str) -> str:
        """A wording from the table of phrases, filled."""
        forms = self.table[section]
        if key is not None:
            forms = forms[key]
        return pick(options(forms[self.which]), draw).format(**slots)

    def comparison(self, relation: str, way: str, draw: Draw, **slots: str) -> str:
        """way: "up", "down", or as a clause "of_up", "of_down"."""
        forms = self.table["compare"][relation][way][self.which]
        return pick(options(forms), draw).format(**slots)


def is_held_out(relations: Sequence[str]) -> bool:
    """Whether a chain has a pair of neighbouring relations that learned worlds never ask."""
    return any(held_out_pair(a, b) for a, b in pairwise(relations))


def may_ask(world: World, relations: Sequence[str]) -> bool:
    return not PRESETS[world.name].learned or not is_held_out(relations)


def walk(
    world: World,
    start: Entity,
    draw: Draw,
    *,
    hops: int | None = None,
    relations: Sequence[str] | None = None,
) -> tuple[Fact, ...] | None:
    """A chain of facts from `start`: of `hops` random relations, or of the given ones.

    No entity occurs twice, every fact but the last leads to an entity, and
    learned worlds avoid held-out pairs. None where the walk ends too early.
    """
    chain: list[Fact] = []
    seen, current = {start.id}, start.id
    length = hops if relations is None else len(relations)
    for i in range(length):
        here = world.facts_of[current]
        last = i == length - 1
        if relations is not None:
            fits = [here[relations[i]]] if relations[i] in here else []
        else:
            fits = list(here.values())
        fits = [f for f in fits if (f.object is not None or last) and f.object not in seen]
        if chain:
            fits = [f for f in fits if may_ask(world, (chain[-1].relation, f.relation))]
        if not fits:
            return None
        fact = pick(fits, draw)
        chain.append(fact)
        if not last:
            current = fact.object
            seen.add(current)
    return tuple(chain)


def answers_of(world: World, fact: Fact) -> tuple[str, ...]:
    """The accepted answers for a fact's object, the plain name first."""
    if fact.object is not None:
        return world.entity[fact.object].names
    if "," in fact.value:  # only numbers are written with commas
        return (fact.value, str(fact.key))
    return (fact.value,)


def is_clean(world: World, text: str, static: Sequence[Fact], dynamic: Sequence[Fact]) -> bool:
    """Whether a question's gold passages have the roles that we say they have.

    static, dynamic: a fact of each such gold passage. The question must name
    no dynamic passage's subject, and no dynamic passage may name a subject of
    the question: otherwise it could be found without the passage between. Where
    passages allude by whole names (`Dials.whole_names`) they may, as in real data.
    """
    named = [world.entity[f.subject].name for f in static]
    for fact in dynamic:
        if world.entity[fact.subject].name in text:
            return False
        if world.dials.whole_names:
            continue
        passage = world.passage[fact.passage_id].text
        if any(name in passage for name in named):
            return False
    return True


def needs_all(world: World, chain: Sequence[Fact], text: str) -> bool:
    """Whether only the chain's last passage gives the answer, and the question does not."""
    answer = answers_of(world, chain[-1])[0]
    if answer in text:
        return False
    for fact in chain[:-1]:
        passage = world.passage[fact.passage_id]
        if answer in passage.text or answer in passage.title:
            return False
    return True


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
class Workbench:
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
