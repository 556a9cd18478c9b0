"""A world in memory: its entities, facts and passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from random import Random

from rag_repro.data.synthworld.block import make_block
from rag_repro.data.synthworld.dials import PRESETS, Dials, WorldError
from rag_repro.data.synthworld.draft import BLOCK, Thing
from rag_repro.data.synthworld.invented_names import WORLDS
from rag_repro.data.synthworld.passages import Writer
from rag_repro.schema import Passage

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
