"""The works of a block (films, songs, albums, books), their titles and makers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from rag_repro.data.synthworld.draft import Maker, Thing
from rag_repro.data.synthworld.wordings import options, read_table


@cache
def _words() -> Mapping[str, Sequence[str]]:
    """What titles are made of, and the genres of each kind of work."""
    table = read_table("words.yaml")
    lists = {name: table[name].split() for name in ("nouns", "adjectives")}
    genres = {kind: options(line) for kind, line in table["genres"].items()}
    return {"patterns": options(table["patterns"]), **lists, **genres}


def _title(maker: Maker) -> str:
    words = _words()
    return maker.pick(words["patterns"]).format(
        n=maker.pick(words["nouns"]),
        a=maker.pick(words["adjectives"]),
        s=maker.deal("title"),
        t=maker.deal("title"),
    )


def _cast(maker: Maker, work: Thing, pools: dict[str, list[Thing]]) -> None:
    """Give posts to people of like age; the work is made while they are alive."""
    place, youngest, oldest_death = maker.random(), 0, 9999
    for relation, occupation, share in read_table("words.yaml")["works"][work.kind]["posts"]:
        if not maker.chance(share):
            continue
        person = maker.near(pools[occupation], place)
        work.to(relation, person)
        youngest = max(youngest, person.born)
        oldest_death = min(oldest_death, person.died or 9999)
    year = youngest + maker.between(22, 40)
    work.year = min(year, max(youngest + 18, oldest_death), 2019)


def give_subjects(maker: Maker, works: list[Thing]) -> None:
    """What makers and their works are about: "lonely beekeeper and a lighthouse"."""
    words = read_table("words.yaml")["subjects"]
    adjectives, beings, things = (words[k].split() for k in ("adjectives", "beings", "things"))
    for work in works:
        post = next(r for r in ("director", "performer", "author") if r in work.facts)
        person = work.facts[post][0]
        if not person.about and maker.chance(maker.dials.subjects):
            being = f"{maker.pick(adjectives)} {maker.pick(beings)}"
            person.about = f"{being} and a {maker.pick(things)}"
        work.about = person.about


def make_works(
    maker: Maker, people: list[Thing], places: dict[str, list[Thing]]
) -> dict[str, list[Thing]]:
    """The works of each kind with their facts."""
    pools: dict[str, list[Thing]] = {}
    for person in sorted(people, key=lambda p: p.born):
        pools.setdefault(person.occupation, []).append(person)
    made: dict[str, list[Thing]] = {}
    for kind, facts in read_table("words.yaml")["works"].items():
        made[kind] = [_work(maker, kind, pools, places, made) for _ in range(facts["count"])]
    return made


def _work(
    maker: Maker,
    kind: str,
    pools: dict[str, list[Thing]],
    places: dict[str, list[Thing]],
    made: dict[str, list[Thing]],
) -> Thing:
    work = Thing(kind, maker.new_name(lambda: _title(maker)))
    _cast(maker, work, pools)
    if kind == "song" and maker.chance(0.55):
        # The album decides singer and year, so that both passages agree.
        album = maker.pick(made["album"])
        work.to("album", album)
        work.to("performer", album.facts["performer"][0])
        work.year = album.year
    if maker.chance(0.85 if kind == "song" else 0.9):
        work.number("release_year", work.year)
    for relation, pool, share in read_table("words.yaml")["works"][kind]["facts"]:
        if relation == "genre" and maker.chance(share):
            work.literal(relation, maker.pick(_words()[kind]))
        elif relation != "genre":
            maker.link(work, relation, places[pool], share)
    return work
