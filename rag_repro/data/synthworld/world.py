"""A world in memory: its entities, facts and passages, made block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from random import Random

from rag_repro.data.synthworld.dials import PRESETS, Dials, WorldError
from rag_repro.data.synthworld.draft import BLOCK, STEMS, Maker, Thing
from rag_repro.data.synthworld.geography import add_place_facts, make_places
from rag_repro.data.synthworld.invented_names import WORLDS
from rag_repro.data.synthworld.passages import Writer
from rag_repro.data.synthworld.people import add_lives, make_people
from rag_repro.data.synthworld.works import give_subjects, make_works
from rag_repro.schema import Passage

MAX_HOOKS = 3
_SMALL = frozenset({"The", "of", "and", "in", "to"})
MIN_PASSAGES, MAX_PASSAGES = 1_000, 1_000_000
# Every fifth block of a learned world is for tuning, the others for training.
TUNE_EVERY = 5


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that has one passage of its own.

    name: as people say it, perhaps shared; title: unique, the passage's title.
    gender, occupation: of people, else None. about: the subject of makers and works.
    popularity: views a month, Zipf-like, for methods that treat head and tail differently.
    """

    id: str
    kind: str
    name: str
    title: str
    passage_id: str
    block: int
    popularity: int
    gender: str | None = None
    occupation: str | None = None
    about: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Accepted answers: the name, and the title where it differs."""
        return (self.name,) if self.name == self.title else (self.name, self.title)


@dataclass(frozen=True, slots=True)
class Fact:
    """What the passage `passage_id` says: `relation` of `subject` is `value`.

    subject, object: entity ids; object is None for a literal. value: the text
    as written in the passage. key: to compare by (years and numbers as they
    are, dates as yyyymmdd), None where there is nothing to compare.
    taught: whether a reader is to be taught it; drawn by lot inside the entity.
    """

    subject: str
    relation: str
    object: str | None
    value: str
    key: int | None
    passage_id: str
    taught: bool


def check_size(name: str, n_passages: int) -> None:
    if name not in WORLDS:
        raise WorldError(f"there is no world {name!r}; worlds are {', '.join(WORLDS)}")
    if not MIN_PASSAGES <= n_passages <= MAX_PASSAGES:
        raise WorldError(
            f"world {name} cannot have {n_passages:,} passages; "
            f"ask for {MIN_PASSAGES:,} to {MAX_PASSAGES:,}"
        )
    if n_passages % BLOCK:
        near = max(MIN_PASSAGES, round(n_passages / BLOCK) * BLOCK)
        raise WorldError(
            f"world {name} cannot have {n_passages:,} passages: it is made of whole blocks of "
            f"{BLOCK}; ask for {near:,}"
        )


@dataclass(frozen=True)
class World:
    """An encyclopedia in memory: all that its passages say, as facts.

    Each entity has one passage and each fact one home: it is stated in its
    subject's passage and nowhere else, and n_passages is a multiple of 500.
    """

    name: str
    n_passages: int
    dials: Dials
    entities: tuple[Entity, ...] = field(repr=False, compare=False)
    facts: tuple[Fact, ...] = field(repr=False, compare=False)
    passages: tuple[Passage, ...] = field(repr=False, compare=False)

    @property
    def seed(self) -> int:
        return PRESETS[self.name].seed

    def blocks(self, split: str | None = None) -> tuple[int, ...]:
        """Numbers of the blocks of a split; blocks share no entity.

        Learned worlds have "train" and "tune", the others "test"; None: all of them.
        """
        every = range(self.n_passages // BLOCK)
        if split is None:
            return tuple(every)
        learned = PRESETS[self.name].learned
        if learned and split in ("train", "tune"):
            # At least one block of the smallest world is for tuning.
            tune = {b for b in every if b % TUNE_EVERY == 1}
            return tuple(b for b in every if (b in tune) == (split == "tune"))
        if not learned and split == "test":
            return tuple(every)
        there = "train, tune" if learned else "test"
        raise WorldError(f"world {self.name} has no split {split!r}; it has: {there}")

    @cached_property
    def entity(self) -> Mapping[str, Entity]:
        """Entity by id."""
        return {e.id: e for e in self.entities}

    @cached_property
    def passage(self) -> Mapping[str, Passage]:
        """Passage by id."""
        return {p.id: p for p in self.passages}

    @cached_property
    def facts_of(self) -> Mapping[str, Mapping[str, Fact]]:
        """Entity id -> relation -> fact: what the entity's passage says of it."""
        out: dict[str, dict[str, Fact]] = {e.id: {} for e in self.entities}
        for fact in self.facts:
            out[fact.subject][fact.relation] = fact
        return out

    @cached_property
    def subject_of(self) -> Mapping[str, Entity]:
        """Passage id -> the entity that it is about."""
        return {e.passage_id: e for e in self.entities}

    @cached_property
    def by_name(self) -> Mapping[str, tuple[Entity, ...]]:
        """Full name -> all entities that bear it."""
        out: dict[str, list[Entity]] = {}
        for entity in self.entities:
            out.setdefault(entity.name, []).append(entity)
        return {name: tuple(bearers) for name, bearers in out.items()}


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


def _published(
    name: str, number: int, things: Sequence[Thing], share: float
) -> tuple[list[Entity], list[Fact]]:
    """A block's entities and facts, in the public types; share: of the facts that are taught."""
    random = Random(f"{PRESETS[name].seed}/{WORLDS.index(name)}/{number}/lots").random
    entities, facts, first = [], [], number * BLOCK
    ids = {id(t): f"{name}-e{i:06d}" for i, t in enumerate(things, first)}
    links = dict.fromkeys(ids, 0)
    for thing in things:
        for other, _, _ in thing.facts.values():
            if other is not None:
                links[id(other)] += 1
    for i, thing in enumerate(things, first):
        # A Pareto draw is Zipf-like; what others refer to is known better.
        views = int(20 * (1 + links[id(thing)]) * (1.0 - random()) ** -0.9)
        lots = [random() for _ in thing.facts]
        # A fixed share inside each entity (rounded by lot), the lowest lots win.
        taught = int(share * len(lots) + random())
        bar = sorted(lots)[taught - 1] if taught else -1.0
        own, passage, whose = ids[id(thing)], f"{name}-p{i:06d}", (thing.gender, thing.occupation)
        named = (thing.kind, thing.name, thing.title)
        entities.append(Entity(own, *named, passage, number, views, *whose, thing.about))
        for lot, (relation, (other, text, key)) in zip(lots, thing.facts.items(), strict=True):
            known, said = (None, text) if other is None else (ids[id(other)], other.title)
            facts.append(Fact(own, relation, known, said, key, passage, lot <= bar))
    return entities, facts


@lru_cache(maxsize=8)
def _world(name: str, n_passages: int, dials: Dials) -> World:
    seed = PRESETS[name].seed
    writer = Writer(name, seed, dials)
    entities: list[Entity] = []
    facts: list[Fact] = []
    passages: list[Passage] = []
    for number in range(n_passages // BLOCK):
        things = make_block(WORLDS.index(name), seed, number, dials)
        passages += writer.block(number, things)
        known, told = _published(name, number, things, dials.taught)
        entities += known
        facts += told
    return World(name, n_passages, dials, tuple(entities), tuple(facts), tuple(passages))


def world(name: str, n_passages: int = 4_000, *, dials: Dials | None = None) -> World:
    """The world of that name and size; kept, so that asking again costs nothing.

    Raises WorldError for a name outside WORLDS or a size outside 1,000 to
    1,000,000 in steps of 500.
    """
    check_size(name, n_passages)
    return _world(name, n_passages, dials or PRESETS[name].dials)
