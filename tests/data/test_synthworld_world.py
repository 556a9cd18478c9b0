"""Worlds: same bytes, unique names, facts and passages that agree, dials that turn."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from itertools import combinations

import pytest

from rag_repro.data import synthworld
from rag_repro.data.synthworld import invented_names
from rag_repro.data.synthworld.dials import PRESETS
from rag_repro.data.synthworld.draft import FIRST_NAMES, STEMS
from rag_repro.data.synthworld.wordings import options, read_table, wordings

WORLDS = invented_names.WORLDS
SETS = ("A", "held", "plain")
# A change of these is a change of every number on the testbed: say so.
PINNED = {
    "A": "e2c6249516d9dfd9335837d4be7973fca91acd8ab86483a92ffb09231824f5f8",
    "B": "0287e5f6232b6bf6a56ba35a8fb786fc4ef1540f4064da97b321a90702768c7c",
    "C": "969d680e8f44338f982ff402fcb0eba46d779b5f58f09ba640d820d2aa151638",
    "D": "0fb53aa200fe7f3424215392bdccc18c8d583545885ac18f559daa7200dac22d",
    "Z": "e52e9f4de9c2a6b16f928afe67097e8a707bf81d507268c1984c735004fb621e",
    "E": "220c762c7b313ee0f7fc970368c1f78dac66e6beb81e47858ec79804f94675bf",
    "F": "f12611482fc797eb0d57a33f75eb3f3d116d12160ca8723b2e38ce9abbb58f1b",
}


@pytest.fixture(scope="module", params=WORLDS)
def world(request):
    return synthworld.world(request.param, 2_000)


def digest(passages) -> str:
    whole = hashlib.sha256()
    for p in passages:
        whole.update(f"{p.id}\x1f{p.title}\x1f{p.text}\x1e".encode())
    return whole.hexdigest()


@pytest.mark.parametrize("name", WORLDS)
def test_the_same_seed_gives_the_same_bytes(name):
    assert digest(synthworld.world(name, 1_500).passages) == PINNED[name]


def test_a_world_begins_as_a_smaller_one_does():
    assert synthworld.world("B", 3_000).passages[:1_000] == synthworld.world("B", 1_000).passages


def test_the_last_of_a_million_can_be_made_alone():
    from rag_repro.data.synthworld.world import make_block

    last = make_block(1, synthworld.world("B", 1_000).seed, 1_999, synthworld.DEFAULT)
    assert len(last) == 500
    first = {e.name for e in synthworld.world("B", 1_000).entities}
    assert not first & {t.name for t in last}


def test_stems_differ_between_numbers_worlds_and_families():
    for family in invented_names.families():
        every = range(len(WORLDS))
        stems = [invented_names.stem(family, w, i, 5) for w in every for i in range(0, 3_000, 3)]
        assert len(set(stems)) == len(stems)
    for world in (WORLDS.index("A"), WORLDS.index("Z"), WORLDS.index("E")):
        everything = [
            invented_names.stem(f, world, i, 5)
            for f in invented_names.families()
            for i in range(500)
        ]
        assert len(set(everything)) == len(everything)


def test_no_ending_of_a_name_occurs_twice_and_a_million_passages_have_names():
    sets = {preset.syllables for preset in PRESETS.values()}
    endings = [
        e for which in sets for f in invented_names.families(which).values() for e in f.parts[-1]
    ]
    assert len(set(endings)) == len(endings) > 200
    for which in sets:
        for family, own in invented_names.families(which).items():
            most = STEMS[family] * 2_000 if family in STEMS else max(FIRST_NAMES)
            assert own.size >= most, (which, family)


def test_no_two_worlds_share_a_name():
    seen: dict[str, str] = {}
    for name in WORLDS:
        for entity in synthworld.world(name, 2_000).entities:
            assert seen.setdefault(entity.name, name) == name


def test_titles_are_unique_and_shared_names_are_told_apart(world):
    assert len({p.title for p in world.passages}) == len(world.passages)
    shared = [bearers for bearers in world.by_name.values() if len(bearers) > 1]
    assert {len(b) for b in shared} == {2}
    assert all(e.title.startswith(f"{e.name} (") for pair in shared for e in pair)
    people = [e for e in world.entities if e.kind == "person"]
    namesakes = [e for pair in shared for e in pair if e.kind == "person"]
    assert 0.06 < len(namesakes) / len(people) < 0.1  # the dial says 0.08


def test_each_passage_has_three_to_six_sentences_and_one_subject(world):
    for passage in world.passages:
        assert 3 <= len(re.findall(r"\.(?: |$)", passage.text)) <= 6
        subject = world.subject_of[passage.id]
        assert passage.title == subject.title
        assert subject.name in passage.text
        assert "{" not in passage.text
        assert "  " not in passage.text


def test_each_fact_is_stated_in_its_subjects_passage(world):
    for fact in world.facts:
        assert fact.passage_id == world.entity[fact.subject].passage_id
        assert fact.value in world.passage[fact.passage_id].text
        if fact.object is not None:
            assert world.entity[fact.object].title == fact.value


def test_relations_are_functional_and_families_consistent(world):
    assert len({(f.subject, f.relation) for f in world.facts}) == len(world.facts)
    for fact in world.facts:
        if fact.relation in ("father", "mother"):
            gender = "male" if fact.relation == "father" else "female"
            assert world.entity[fact.object].gender == gender
            # The other direction is said nowhere else: a fact has one home.
            back = world.facts_of[fact.object].get("child")
            assert back is None or back.object != fact.subject
        if fact.relation == "spouse":
            assert "spouse" not in world.facts_of[fact.object]


def test_an_albums_song_agrees_with_its_album(world):
    for fact in world.facts:
        if fact.relation == "album":
            song, album = world.facts_of[fact.subject], world.facts_of[fact.object]
            assert song["performer"].object == album["performer"].object


def test_death_follows_birth(world):
    for entity in world.entities:
        facts = world.facts_of[entity.id]
        if {"birth_date", "death_date"} <= facts.keys():
            assert facts["death_date"].key - facts["birth_date"].key > 400_000  # forty years
    assert any("death_date" in facts for facts in world.facts_of.values())


def test_taught_is_a_lot_inside_each_entity(world):
    for entity in world.entities:
        facts = list(world.facts_of[entity.id].values())
        assert abs(sum(f.taught for f in facts) - len(facts) / 2) <= 0.5
    # The lot does not favour a relation.
    directors = [f.taught for f in world.facts if f.relation == "director"]
    assert 0.35 < sum(directors) / len(directors) < 0.65


def test_popularity_has_a_long_tail(world):
    views = sorted((e.popularity for e in world.entities), reverse=True)
    assert sum(views[: len(views) // 100]) > 0.2 * sum(views)
    assert views[-1] >= 20


def test_there_are_enough_relations_and_wordings():
    table = read_table("wordings.yaml")
    assert len(table) >= 40
    for lines in table.values():
        said = [w for s in SETS for w in options(lines[s]["says"])]
        asked = [w for s in SETS for k in ("near", "far") for w in options(lines[s][k])]
        assert len(set(said)) == len(said) >= 8
        assert len(set(asked)) == len(asked) >= 8
        assert all(text.count("{o}") == 1 for text in said)
        assert all(text.count("{x}") == 1 for text in asked)


def _lines(node, which):
    """All wordings under the key `which` in a table, as single texts."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == which:
                yield from _leaves(value)
            elif key not in SETS:
                yield from _lines(value, which)


def _leaves(node):
    if isinstance(node, dict):
        for value in node.values():
            yield from _leaves(value)
    else:
        yield from options(node)


@pytest.mark.parametrize("table", ["wordings.yaml", "phrases.yaml"])
@pytest.mark.parametrize(("one", "other"), list(combinations(SETS, 2)))
def test_no_wording_occurs_in_two_sets(table, one, other):
    ours, theirs = (set(_lines(read_table(table), which)) for which in (one, other))
    bare = {"{x}", "the {x}"}  # a bare name is no wording
    assert len(ours) > 50 < len(theirs)
    assert ours & theirs <= bare


@pytest.mark.parametrize(("one", "other"), [("A", "B"), ("A", "E"), ("Z", "E")])
def test_sentences_of_a_world_do_not_occur_in_one_of_another_set(one, other):
    """On the finished passages: with names and numbers masked, few patterns are common."""

    def patterns(name):
        masked = set()
        for passage in synthworld.world(name, 1_000).passages:
            for sentence in passage.text.split(". "):
                masked.add(re.sub(r"\b[A-Z0-9]\S*", "#", sentence))
        return masked

    assert not patterns(one) & patterns(other)


SMALL = (
    "a an the of in on to by for was is were has had did does do which what who whom whose "
    "when where how with from at as and its it one there"
)


def _content(text: str) -> set[str]:
    words = re.findall(r"[a-z]+", re.sub(r"\{.\}", "", text.lower()))
    return set(words) - set(SMALL.split())


@pytest.mark.parametrize("which", SETS)
def test_near_questions_share_words_with_passages_and_far_ones_do_not(which):
    shares = {"near": [], "far": []}
    for wording in wordings(which).values():
        said = set().union(*(_content(before + after) for before, after in wording.says))
        for kind, forms in (
            ("near", wording.near + wording.np_near),
            ("far", wording.far + wording.np_far),
        ):
            shares[kind] += [bool(_content(form) & said) for form in forms]
    near, far = (sum(s) / len(s) for s in shares.values())
    assert near > 0.8
    assert far < 0.2


def test_the_tables_fit_each_other():
    table = read_table("phrases.yaml")
    kinds = {e.kind for e in synthworld.world("A", 1_000).entities}
    assert kinds == set(table["leads"])
    assert set(table["mentions"]) <= kinds
    for section in ("compare", "same", "differ", "roles"):
        assert set(table[section]) <= set(wordings("A"))


def test_dials_turn_what_they_say():
    def make(**dials):
        return synthworld.world("B", 1_000, dials=synthworld.Dials(**dials))

    none, many = make(shared_names=0.0), make(shared_names=0.4)
    assert all(len(b) == 1 for b in none.by_name.values())
    assert sum(len(b) > 1 for b in many.by_name.values()) > 100

    def surnames(world):
        people = [e for e in world.entities if e.kind == "person"]
        return len({e.name.rsplit(" ", 1)[1] for e in people}) / len(people)

    assert surnames(make(distractors=0.0)) > 4 * surnames(make(distractors=1.0))
    taught = make(taught=0.25)
    assert 0.22 < sum(f.taught for f in taught.facts) / len(taught.facts) < 0.28
    assert taught.passages == make().passages  # the lots leave the text alone

    def words(world):
        return sum(len(p.text.split()) for p in world.passages)

    assert words(make(hooks=0.0)) < words(make(hooks=1.0))
    assert words(make(fillers=0.0)) < words(make(fillers=1.0))


def test_marks_name_dials():
    assert synthworld.DEFAULT.mark() == ""
    one, two = synthworld.Dials(hooks=0.1).mark(), synthworld.Dials(hooks=0.2).mark()
    assert one != two
    assert re.fullmatch(r"~[0-9a-f]{8}", one)
    # As records of dials that were turned before there was a later one are named.
    assert synthworld.Dials(hooks=0.0, ties=0.0).mark() == "~7cce2d26"
    assert synthworld.Dials(whole_names=0.5).mark() != synthworld.DEFAULT.mark()
    own = PRESETS["Z"].dials
    assert own.mark(own) == "" != synthworld.DEFAULT.mark(own)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: synthworld.world("G"), "worlds are A, B, C, D, Z, E, F"),
        (lambda: synthworld.world("B", 10), "1,000 to 1,000,000"),
        (lambda: synthworld.world("B", 1_234), "ask for 1,000"),
        (lambda: synthworld.world("B", 2_000_000), "1,000 to 1,000,000"),
        (lambda: synthworld.world("B", 1_000).blocks("train"), "has no split 'train'"),
        (lambda: synthworld.world("A", 1_000).blocks("test"), "train, tune"),
        (lambda: synthworld.build("Z", 1_000, split="test"), "train, tune"),
    ],
)
def test_what_does_not_exist_is_refused(call, says):
    with pytest.raises(synthworld.WorldError, match=says):
        call()


def test_a_dial_out_of_range_is_refused():
    with pytest.raises(synthworld.WorldError, match=r"shared_names is 1\.5"):
        synthworld.Dials(shared_names=1.5)


def test_invented_names_are_no_titles_of_the_public_corpora(data_dir):
    titles: set[str] = set()
    for path in sorted(data_dir.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                docs = record.get("docs") or [record]
                titles.update(d["title"].lower() for d in docs if d.get("title"))
    assert len(titles) > 10_000
    for name in WORLDS:
        entities = synthworld.world(name, 4_000).entities
        sample = [e for e in entities if e.kind in ("person", "film", "song", "album", "book")]
        clash = [e.name for e in sample if e.name.lower() in titles or e.title.lower() in titles]
        assert not clash
