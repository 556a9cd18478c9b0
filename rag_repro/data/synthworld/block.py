"""One closed block of a world: its entities with all their facts, in a mixed order."""

from __future__ import annotations

from rag_repro.data.synthworld.dials import Dials
from rag_repro.data.synthworld.draft import STEMS, Maker, Thing
from rag_repro.data.synthworld.geography import add_place_facts, make_places
from rag_repro.data.synthworld.people import add_lives, make_people
from rag_repro.data.synthworld.works import give_subjects, make_works


def make_block(world: int, seed: int, block: int, dials: Dials) -> list[Thing]:
    """The BLOCK things of block number `block` (from 0) of a world, by its place in WORLDS."""
    maker = Maker(world, seed, block, dials)
    places = make_places(maker)
    people = make_people(maker)
    add_place_facts(maker, places, people)
    add_lives(maker, people, places)
    works = make_works(maker, people, places)
    every_work = [w for kind in works.values() for w in kind]
    _share_names(maker, people, every_work)
    if maker.dials.subjects:  # no chance is drawn at 0: the other worlds keep their bytes
        give_subjects(maker, every_work)
    kinds = ("country", "city", "company", "club", "stadium", "university", "award")
    things = people + [t for kind in kinds for t in places[kind]]
    things += every_work
    _hook(maker, things)
    return maker.shuffled(things)


def _share_names(maker: Maker, people: list[Thing], works: list[Thing]) -> None:
    """Give some people and works the full name of another, and titles that differ.

    Titles are as in Wikipedia: "Name (singer)", "Name (song)", "Name (1984 film)".
    """
    people = maker.shuffled(people)
    for _ in range(round(len(people) * maker.dials.shared_names / 2)):
        one = people.pop()
        two = next(
            (p for p in reversed(people) if _may_share(one, p)),
            None,
        )
        if two is None:
            continue
        people.remove(two)
        two.name = one.name
        for person in (one, two):
            person.title = f"{person.name} ({person.occupation})"
    works = maker.shuffled(works)
    for _ in range(round(len(works) * maker.dials.shared_names / 2)):
        one = works.pop()
        two = next(w for w in reversed(works) if w.kind != one.kind or w.year != one.year)
        works.remove(two)
        two.name = one.name
        for work in (one, two):
            year = f"{work.year} " if one.kind == two.kind else ""
            work.title = f"{work.name} ({year}{work.kind})"


def _may_share(one: Thing, two: Thing) -> bool:
    """Namesakes differ in occupation and are no relatives (other surnames at birth)."""
    return (
        one.gender == two.gender
        and one.occupation != two.occupation
        and one.name.split(" ", 1)[1] != two.name.split(" ", 1)[1]
    )


MAX_HOOKS = 3
_SMALL = frozenset({"The", "of", "and", "in", "to"})


def _hook(maker: Maker, things: list[Thing]) -> None:
    """Let passages allude to what refers to their subject, and to a name both share."""
    referrers: dict[int, list[Thing]] = {}
    for thing in things:
        for other, _, _ in thing.facts.values():
            if other is not None:
                referrers.setdefault(id(other), []).append(thing)
    for thing in things:
        for referrer in maker.shuffled(referrers.get(id(thing), ()))[:MAX_HOOKS]:
            if maker.chance(maker.dials.hooks):
                # As for subjects.
                whole = maker.dials.whole_names and maker.chance(maker.dials.whole_names)
                if whole:
                    thing.hook += ((referrer.name, referrer.about),)
                else:
                    thing.hook += tuple((word, "") for word in _hook_words(referrer))
            if maker.chance(maker.dials.ties):
                third = " ".join(
                    maker.stem("circle", maker.below(STEMS["circle"])) for _ in range(2)
                )
                thing.hook += ((third, ""),)
                referrer.hook += ((third, ""),)


def _hook_words(referrer: Thing) -> tuple[str, ...]:
    """Words of a name, never all of a person's or a body's, none of a one-word name."""
    words = referrer.name.split()
    if len(words) == 1:
        return ()
    if referrer.kind in ("person", "company", "club", "stadium", "university", "award"):
        return (words[0],)
    telling = tuple(w for w in words if w not in _SMALL)
    return telling if len(telling) > 1 else ()
