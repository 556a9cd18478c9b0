"""Chains of facts through a world, and what makes one fit for a question."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .asking import Draw, pick
from .dials import PRESETS
from .wordings import held_out_pair
from .world import Entity, Fact, World


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
