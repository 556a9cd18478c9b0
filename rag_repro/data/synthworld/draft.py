"""What a block of a world is made of before it is written down.

A world is a row of closed blocks of `BLOCK` entities: entities refer only to
entities of their own block, and each block can be made alone from the seed.
That is why blocks can be divided between training and tuning without a shared entity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from rag_repro.data.synthworld import invented_names
from rag_repro.data.synthworld.dials import Dials

BLOCK = 500
# Stems of each family that one block owns; bounds a world at 1,041,000 passages.
STEMS = {"surname": 240, "title": 330, "city": 56, "country": 10, "currency": 10, "circle": 110}
# First names of each gender in a world, from the densest to the sparsest.
FIRST_NAMES = (60, 3_000)

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(slots=True, eq=False)
class Thing:
    """A mutable entity in the making.

    facts: relation -> (Thing, text, key); Thing is None for a literal, text is
    None for an entity (its title is only known once all are named); key is a
    number to compare by, or None. hook: what its passage alludes to: words of a name,
    and what the thing of that name is about. about: the subject of makers and works.
    """

    kind: str
    name: str = ""
    title: str = ""
    gender: str | None = None
    occupation: str | None = None
    born: int = 0
    died: int | None = None
    year: int = 0
    about: str = ""
    hook: tuple[tuple[str, str], ...] = ()
    facts: dict[str, tuple[Thing | None, str | None, int | None]] = field(default_factory=dict)

    def __post_init__(self):
        self.title = self.name

    def to(self, relation: str, other: Thing) -> None:
        self.facts[relation] = (other, None, None)

    def literal(self, relation: str, text: str, key: int | None = None) -> None:
        self.facts[relation] = (None, text, key)

    def number(self, relation: str, value: int, *, comma: bool = False) -> None:
        self.facts[relation] = (None, f"{value:,}" if comma else str(value), value)


class Maker:
    """Random choices and names of one block.

    Only `Random.random` is used: Python promises its numbers for a seed across
    versions, which it does not for `choice` or `shuffle`.
    """

    def __init__(self, world: int, seed: int, block: int, dials: Dials):
        self.world, self.seed, self.block, self.dials = world, seed, block, dials
        self.random = Random(f"{seed}/{world}/{block}/facts").random
        self.taken: set[str] = set()
        # The stems that people and works share are dealt like cards: each comes
        # as often as the others, which keeps chance from piling bearers on one.
        sharing = 1 + 12 * dials.distractors
        self.surnames = [self.stem("surname", i) for i in range(round(230 / sharing))]
        self.title_stems = [self.stem("title", i) for i in range(round(240 / sharing))]
        self._dealt = {"surname": 0, "title": 0}
        self._fresh = len(self.title_stems)

    def deal(self, family: str) -> str:
        """The next surname or title stem in turn."""
        stems = self.surnames if family == "surname" else self.title_stems
        self._dealt[family] += 1
        return stems[self._dealt[family] % len(stems)]

    def stem(self, family: str, i: int) -> str:
        return invented_names.stem(family, self.world, self.block * STEMS[family] + i, self.seed)

    def first_name(self, gender: str) -> str:
        dense, sparse = FIRST_NAMES
        many = sparse * (dense / sparse) ** self.dials.distractors
        number = int(self.random() * many)
        return invented_names.stem(gender, self.world, number, self.seed)

    def fresh_stem(self) -> str:
        self._fresh += 1
        return self.stem("title", self._fresh - 1)

    def chance(self, p: float) -> bool:
        return self.random() < p

    def below(self, n: int) -> int:
        return int(self.random() * n)

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self.random() * (high - low + 1))

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.random() * len(items))]

    def link(
        self, thing: Thing, relation: str, pool: Sequence[Thing], share: float | None = None
    ) -> None:
        """Have a relation lead to one of the pool; share: by this chance, else in any case."""
        if share is None or self.chance(share):
            thing.to(relation, self.pick(pool))

    def near(self, pool: Sequence[Any], place: float) -> Any:
        """One of the pool close to a relative place in its order (0..1)."""
        at = place * len(pool) + (self.random() - 0.5) * 4
        return pool[min(len(pool) - 1, max(0, int(at)))]

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = int(self.random() * (i + 1))
            items[i], items[j] = items[j], items[i]
        return items

    def date(self, year: int) -> tuple[str, int]:
        month, day = self.below(12), self.between(1, 28)
        return f"{day} {MONTHS[month]} {year}", year * 10000 + (month + 1) * 100 + day

    def new_name(self, draw) -> str:
        """Draw names until one is new in this block, and remember it."""
        for _ in range(200):
            name = draw()
            if name not in self.taken:
                self.taken.add(name)
                return name
        name = f"{self.fresh_stem()} {name}"
        self.taken.add(name)
        return name
