"""The works of a block (films, songs, albums, books), their titles and makers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from rag_repro.data.synthworld.draft import Maker, Thing
from rag_repro.data.synthworld.wordings import options, read_table

FILMS, SONGS, ALBUMS, BOOKS = 54, 30, 20, 21


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


def _work(maker: Maker, kind: str) -> Thing:
    return Thing(kind, maker.new_name(lambda: _title(maker)))


def _cast(maker: Maker, work: Thing, pools: dict[str, list[Thing]], posts) -> None:
    """Give posts to people of like age; the work is made while they are alive."""
    place, youngest, oldest_death = maker.random(), 0, 9999
    for relation, occupation, share in posts:
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
    """FILMS, SONGS, ALBUMS and BOOKS with their facts."""
    pools: dict[str, list[Thing]] = {}
    for person in sorted(people, key=lambda p: p.born):
        pools.setdefault(person.occupation, []).append(person)
    films = [_film(maker, pools, places) for _ in range(FILMS)]
    albums = [_album(maker, pools, places) for _ in range(ALBUMS)]
    songs = [_song(maker, pools, albums) for _ in range(SONGS)]
    books = [_book(maker, pools, places) for _ in range(BOOKS)]
    return {"film": films, "album": albums, "song": songs, "book": books}


def _dated(maker: Maker, work: Thing, share: float = 0.9) -> None:
    if maker.chance(share):
        work.number("release_year", work.year)


def _film(maker: Maker, pools, places) -> Thing:
    film = _work(maker, "film")
    posts = (
        ("director", "film director", 1.0),
        ("screenwriter", "screenwriter", 0.4),
        ("composer", "composer", 0.4),
        ("lead_actor", "actor", 0.4),
    )
    _cast(maker, film, pools, posts)
    _dated(maker, film)
    if maker.chance(0.4):
        film.to("studio", maker.pick(places["studio"]))
    if maker.chance(0.6):
        film.literal("genre", maker.pick(_words()["film"]))
    if maker.chance(0.25):
        film.to("setting", maker.pick(places["city"]))
    return film


def _album(maker: Maker, pools, places) -> Thing:
    album = _work(maker, "album")
    _cast(maker, album, pools, (("performer", "singer", 1.0),))
    _dated(maker, album)
    if maker.chance(0.75):
        album.to("record_label", maker.pick(places["label"]))
    if maker.chance(0.7):
        album.literal("genre", maker.pick(_words()["album"]))
    return album


def _song(maker: Maker, pools, albums: list[Thing]) -> Thing:
    song = _work(maker, "song")
    posts = (
        ("performer", "singer", 1.0),
        ("lyricist", "novelist", 0.4),
        ("composer", "composer", 0.4),
    )
    _cast(maker, song, pools, posts)
    if maker.chance(0.55):
        # The album decides singer and year, so that both passages agree.
        album = maker.pick(albums)
        song.to("album", album)
        song.to("performer", album.facts["performer"][0])
        song.year = album.year
    _dated(maker, song, 0.85)
    return song


def _book(maker: Maker, pools, places) -> Thing:
    book = _work(maker, "book")
    _cast(maker, book, pools, (("author", "novelist", 1.0),))
    _dated(maker, book)
    if maker.chance(0.75):
        book.to("publisher", maker.pick(places["publisher"]))
    if maker.chance(0.6):
        book.literal("genre", maker.pick(_words()["book"]))
    if maker.chance(0.35):
        book.to("setting", maker.pick(places["city"]))
    return book
