"""The places and bodies of a block: countries, cities, clubs, companies and more."""

from __future__ import annotations

from collections.abc import Sequence

from rag_repro.data.synthworld.draft import STEMS, Maker, Thing
from rag_repro.data.synthworld.wordings import read_table

COMPANIES = ("studio", "label", "publisher", "firm")


def _namestem(maker: Maker) -> str:
    """A stem that people or works bear as well, or, at low density, one of its own."""
    if not maker.chance(maker.dials.distractors):
        return maker.fresh_stem()
    return maker.pick(maker.surnames if maker.chance(0.5) else maker.title_stems)


def _name(maker: Maker, nouns: Sequence[str]) -> str:
    return maker.new_name(lambda: f"{_namestem(maker)} {maker.pick(nouns)}")


def make_places(maker: Maker) -> dict[str, list[Thing]]:
    """All places and bodies, named but without facts; "company" holds all companies."""
    places: dict[str, list[Thing]] = {}
    for kind in ("country", "city"):
        places[kind] = [Thing(kind, maker.stem(kind, i)) for i in range(STEMS[kind])]
    for role, body in read_table("words.yaml")["bodies"].items():
        kind = "company" if role in COMPANIES else role
        named = role != "award"  # these are named after people, later
        names = [_name(maker, body["nouns"]) if named else "" for _ in range(body["count"])]
        places[role] = [Thing(kind, name) for name in names]
    places["company"] = [c for role in COMPANIES for c in places[role]]
    return places


def add_place_facts(maker: Maker, places: dict[str, list[Thing]], people: list[Thing]) -> None:
    """Founders, seats, grounds, numbers. People are drawn without regard to age."""
    of: dict[str, list[Thing]] = {}
    for person in people:
        of.setdefault(person.occupation, []).append(person)
    cities = places["city"]
    capitals = maker.shuffled(cities)[: len(places["country"])]
    for i, (country, capital) in enumerate(zip(places["country"], capitals, strict=True)):
        country.to("capital", capital)
        country.number("population", maker.between(1_100_000, 48_000_000), comma=True)
        maker.link(country, "head_of_state", of["politician"])
        country.literal("currency", maker.stem("currency", i).lower())
    for city in cities:
        # A capital's country is said in the country's passage: a fact has one home.
        if city not in capitals:
            maker.link(city, "country", places["country"])
        city.number("population", maker.between(21_000, 990_000), comma=True)
        maker.link(city, "mayor", of["politician"], 0.65)
    for company in places["company"]:
        founder = maker.pick(of["entrepreneur"])
        if maker.chance(0.85):
            company.to("founder", founder)
        maker.link(company, "headquarters", cities)
        company.number("inception", founder.born + maker.between(23, 45))
        maker.link(company, "chief_executive", of["entrepreneur"], 0.55)
    for club, stadium in zip(places["club"], maker.shuffled(places["stadium"]), strict=True):
        club.to("stadium", stadium)
        maker.link(club, "location", cities, 0.6)
        club.number("inception", maker.between(1868, 1960))
        maker.link(club, "coach", of["footballer"])
    for stadium in places["stadium"]:
        stadium.number("capacity", maker.between(4_000, 89_000), comma=True)
        maker.link(stadium, "location", cities, 0.7)
        maker.link(stadium, "architect", of["architect"], 0.7)
        if maker.chance(0.6):
            stadium.number("inception", maker.between(1890, 2010))
    for university in places["university"]:
        maker.link(university, "location", cities)
        university.number("inception", maker.between(1480, 1950))
        maker.link(university, "rector", of["scientist"])
        maker.link(university, "founder", of["politician"], 0.5)
    nouns = read_table("words.yaml")["bodies"]["award"]["nouns"]
    for award in places["award"]:
        honoured = maker.pick(people)
        surname = honoured.name.split(" ", 1)[1]
        award.name = award.title = maker.new_name(lambda s=surname: f"{s} {maker.pick(nouns)}")
        award.to("named_after", honoured)
        award.number("inception", honoured.born + maker.between(60, 110))
