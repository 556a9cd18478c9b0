"""The people of a block: clans of three generations, singles, and their lives."""

from __future__ import annotations

from rag_repro.data.synthworld.draft import Maker, Thing
from rag_repro.data.synthworld.wordings import read_table

CLANS = 14  # of seven people each
PEOPLE = 230
LAST_YEAR = 2019


def make_people(maker: Maker) -> list[Thing]:
    """PEOPLE named people with years of birth and family ties."""
    people: list[Thing] = []
    for _ in range(CLANS):
        people += _clan(maker)
    while len(people) < PEOPLE:
        gender = "male" if maker.chance(0.55) else "female"
        people.append(_person(maker, gender, maker.between(1880, 1970)))
    # A dealt deck, not dice: each block has every occupation in full strength.
    shares = read_table("words.yaml")["occupations"]
    deck = maker.shuffled([name for name, share in shares.items() for _ in range(share)])
    for person, occupation in zip(people, deck, strict=True):
        person.occupation = occupation
    return people


def _person(maker: Maker, gender: str, born: int, surname: str | None = None) -> Thing:
    def draw() -> str:
        return f"{maker.first_name(gender)} {surname or maker.deal('surname')}"

    person = Thing("person", maker.new_name(draw))
    person.gender = gender
    person.born = born
    if born < 1930 or maker.chance(0.45):
        person.died = min(born + maker.between(48, 92), LAST_YEAR)
    return person


def _surname(person: Thing) -> str:
    return person.name.split(" ", 1)[1]


def _couple(maker: Maker, born: int) -> tuple[Thing, Thing]:
    him = _person(maker, "male", born)
    theirs = _surname(him) if maker.chance(0.5) else None
    her = _person(maker, "female", born + maker.between(-4, 6), theirs)
    _marry(maker, him, her)
    return him, her


def _marry(maker: Maker, one: Thing, two: Thing) -> None:
    """One of both passages says it, by lot: a fact has one home."""
    if maker.chance(0.5):
        one, two = two, one
    one.to("spouse", two)


def _descend(maker: Maker, child: Thing, father: Thing, mother: Thing) -> None:
    """Either the child's passage names the parent, or the parent's the child."""
    for relation, parent in (("father", father), ("mother", mother)):
        if maker.chance(0.78):
            child.to(relation, parent)
        else:
            parent.to("child", child)


def _clan(maker: Maker) -> list[Thing]:
    """Two couples, a son of one married to a daughter of the other, a grandchild."""
    year = maker.between(1868, 1902)
    a1, a2 = _couple(maker, year)
    b1, b2 = _couple(maker, year + maker.between(-3, 5))
    son = _person(maker, "male", year + maker.between(24, 32), _surname(a1))
    daughter = _person(maker, "female", year + maker.between(24, 34), _surname(b1))
    gender = "male" if maker.chance(0.5) else "female"
    grandchild = _person(
        maker, gender, max(son.born, daughter.born) + maker.between(22, 32), _surname(son)
    )
    _marry(maker, son, daughter)
    _descend(maker, son, a1, a2)
    _descend(maker, daughter, b1, b2)
    _descend(maker, grandchild, son, daughter)
    return [a1, a2, b1, b2, son, daughter, grandchild]


def add_lives(maker: Maker, people: list[Thing], places: dict[str, list[Thing]]) -> None:
    """Dates, places, studies, work, honours."""
    cities, countries = places["city"], places["country"]
    for person in people:
        text, key = maker.date(person.born)
        if maker.chance(0.9):
            person.literal("birth_date", text, key)
        birth_place = maker.pick(cities)
        if maker.chance(0.6):
            person.to("birth_place", birth_place)
        if person.died is not None:
            text, key = maker.date(person.died)
            if maker.chance(0.85):
                person.literal("death_date", text, key)
            maker.link(person, "death_place", cities, 0.35)
        maker.link(person, "nationality", countries, 0.35)
        if person.occupation == "footballer":
            maker.link(person, "team", places["club"])
        elif maker.chance(0.35):
            maker.link(person, "educated_at", places["university"])
        if person.occupation in ("scientist", "architect", "composer") and maker.chance(0.8):
            maker.link(person, "employer", places["university"] + places["company"])
        maker.link(person, "award", places["award"], 0.25)
