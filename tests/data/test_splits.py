"""The frozen split file: what it promises, and that it can be made again."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter

import pytest

from rag_repro import data
from rag_repro.data import splits
from rag_repro.schema import Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.study.exhibits import Grid
from tests.data import split_file
from tests.data.split_file import Item, components, pairs, same

SIZES = {  # name -> (train, tune, test)
    "hotpotqa": (0, 0, 252),
    "hotpotqa_fullwiki": (0, 0, 325),
    "hotpotqa_train": (325, 81, 0),
    "2wikimultihopqa": (0, 0, 393),
    "2wikimultihopqa_open": (0, 0, 280),
    "2wikimultihopqa_train": (219, 55, 0),
    "musique": (0, 0, 240),
    "nq": (1051, 263, 269),
    "nq20": (0, 0, 269),
    "popqa": (200, 100, 299),
    "ambignq": (0, 233, 933),
    "ambignq_nq": (0, 132, 548),
    "strategyqa": (2, 40, 225),
    "dureader": (60, 10, 51),
    "iirc": (10, 0, 0),
    "ircot_demos": (41, 0, 0),
}


def test_sizes():
    assert set(splits.frozen()["sets"]) == set(SIZES)
    for name, sizes in SIZES.items():
        assert tuple(len(splits.ids(name, s)) for s in splits.SPLITS) == sizes, name


def test_no_id_is_in_two_parts_nor_trained_on_here_and_tested_there():
    used = {i for n in SIZES for s in ("train", "tune") for i in splits.ids(n, s)}
    test = {i for n in SIZES for i in splits.ids(n, "test")}
    assert not used & test
    for name in SIZES:
        parts = [set(splits.ids(name, s)) for s in splits.SPLITS]
        assert sum(map(len, parts)) == len(set().union(*parts))


def test_nq_tests_on_nq20_and_drops_what_shares_its_gold():
    assert splits.ids("nq", "test") == splits.ids("nq20", "test") == splits.ids("nq10", "test")
    five = {f"nq-oracle-{n}" for n in ("0862", "1185", "1326", "1472", "2007")}
    assert five < set(splits.frozen()["dropped"]["nq"])


def test_unknown_names_are_refused():
    with pytest.raises(splits.SplitError, match="did you mean 'train'"):
        splits.ids("nq", "trian")
    with pytest.raises(splits.SplitError, match="did you mean 'musique'"):
        splits.ids("musiqe", "test")


def questions(name, ids, **kwargs):
    made = tuple(Question(i, f"{i}?", ("a",), **kwargs) for i in ids)
    return Dataset(name, made, Corpus(name, ()), {"name": name})


def test_only_keeps_file_order_leaves_unlisted_out_and_names_what_is_absent():
    listed = splits.ids("dureader", "tune")
    d = splits.only(questions("dureader", ["new", *listed]), "tune")
    assert tuple(q.id for q in d.questions) == listed
    assert d.card["frozen_split"] == "tune"
    with pytest.raises(splits.SplitError, match=f"1 of {len(listed)} tune questions"):
        splits.only(questions("dureader", listed[1:]), "tune")
    with pytest.raises(splits.SplitError, match="has no train questions; it has test"):
        splits.only(questions("musique", ["x"]), "train")


def test_worlds():
    a = questions("world-A", [f"q{i}" for i in range(500)])
    tune, train = (splits.only_of_world(a, "A", s).questions for s in ("tune", "train"))
    assert len(tune) + len(train) == 500
    assert 70 < len(tune) < 130  # a fifth by lot
    assert splits.only_of_world(a.first(50), "A", "tune").questions == tuple(
        q for q in tune if int(q.id[1:]) < 50
    )
    assert len(splits.only_of_world(a, "B", "test").questions) == 500
    assert [splits.of_world(w) for w in "AZ"] == [("train", "tune")] * 2
    assert [splits.of_world(w) for w in "BCDEF"] == [("test",)] * 5
    for world, split in (("A", "test"), ("B", "train"), ("Z", "test"), ("E", "tune")):
        with pytest.raises(splits.SplitError, match="train and tune on A"):
            splits.only_of_world(a, world, split)
    together = questions("world-A", [f"q{i}" for i in range(9)], cluster="c")
    sizes = {len(splits.only_of_world(together, "A", s).questions) for s in ("train", "tune")}
    assert sizes == {0, 9}


def test_world_zs_questions_are_made_for_their_split_and_share_no_block():
    train, tune = (data.load("world-Z", split=s) for s in ("train", "tune"))
    assert len(train.questions) == len(tune.questions) == 1_000
    assert train.corpus.sha256 == tune.corpus.sha256 == data.load("world-Z").corpus.sha256
    blocks = [
        {int(i.partition("-p")[2]) // 500 for q in d.questions for i in q.gold_ids}
        for d in (train, tune)
    ]
    assert blocks == [{0, 2, 3, 4, 5, 7}, {1, 6}]
    assert data.load("world-Z-10", split="tune").questions[0].candidates
    assert tune.card["frozen_split"] == "tune"


# ----------------------------------------------------------------- same passages

LONG = "one two three four five six seven eight nine ten eleven twelve"


@pytest.mark.parametrize(
    ("a", "b", "lead", "expected"),
    [
        (("A", "The quay, old."), ("B", "the  Quay old"), False, True),
        (("A", "The quay."), ("A", "The pier."), False, False),
        (("A", "The quay."), ("A", "The pier."), True, True),
        (("A (film)", "The quay."), ("A (song)", "The pier."), True, False),
        # 12 words have 5 runs of 8; a tail of 10 has 3, all of them shared.
        (("A (film)", LONG), ("A", LONG.split(" ", 2)[2]), False, True),
        (("A", LONG), ("B", LONG.split(" ", 2)[2]), False, False),
        # Runs shared: 1 of 3, then 2 of 3.
        (("A", LONG), ("A", "x y " + LONG.rsplit(" ", 4)[0]), False, False),
        (("A", LONG), ("A", "x " + LONG.rsplit(" ", 3)[0]), False, True),
    ],
)
def test_same_passage(a, b, lead, expected):
    x, y = Item(("s", "1"), *a, lead), Item(("t", "2"), *b, lead)
    assert same(x, y) is same(y, x) is expected
    assert bool(list(pairs([x, y]))) is expected
    assert not list(pairs([x, Item(("s", "1"), *b, lead)]))  # the same question's own


def test_components():
    assert components("abcde", [("a", "c"), ("c", "e")]) == [["a", "c", "e"], ["b"], ["d"]]


# --------------------------------------------------------------- made, and dealt


def test_groups_stay_whole_and_go_where_there_is_room():
    groups = [[("s", "a"), ("s", "b")], [("s", "c")], [("s", "d"), ("s", "e")], [("s", "f")]]
    assert split_file._fill(groups, (3, 2)) == [["a", "b", "c"], ["d", "e"]]
    assert split_file._fill(groups, (1, 1)) == [["c"], ["f"]]


def test_every_beginning_of_a_drawn_list_has_each_kind_by_its_share():
    made = [Question(f"{kind}{i}", "?", ("a",), kind=kind) for kind in "ab" for i in range(40)]
    made += [Question(f"c{i}", "?", ("a",), kind="c") for i in range(10)]
    drawn = split_file._drawn(made)
    assert sorted(q.id for q in drawn) == sorted(q.id for q in made)
    for n in range(1, 91):
        counts = Counter(q.kind for q in drawn[:n])
        assert all(abs(counts[kind] - n * m / 90) < 1 for kind, m in (("a", 40), ("b", 40)))
        assert abs(counts["c"] - n * 10 / 90) < 1
    # By lot, and by nothing that the order given could change.
    assert split_file._drawn(made[::-1]) == drawn
    of_a = [q.id for q in drawn if q.kind == "a"]
    assert of_a != sorted(of_a, key=lambda i: int(i[1:]))


def test_written_and_read_back():
    made = splits.frozen()
    text = split_file.dumps(made)
    assert json.loads(text) == made
    assert max(len(line) for line in text.splitlines() if '"test"' not in line) < 60_000


# ------------------------------------------------------------------ split confirm


def _written(folder, rows):
    """An invented file of MuSiQue: (id, question, title and text of its one gold passage)."""
    folder.mkdir(exist_ok=True)
    lines = [
        {
            "id": ident,
            "question": question,
            "answers": ["Ann"],
            "type": "2hop",
            "docs": [
                {"title": title, "text": text, "gold": True},
                {"title": f"Other {ident}", "text": f"Nothing of {ident}.", "gold": False},
            ],
        }
        for ident, question, title, text in rows
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "musique.jsonl.gz").write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def invented(tmp_path):
    _written(tmp_path, [("a", "Who built the quay?", "Quay", "Ann built it of stone.")])
    _written(tmp_path / "confirm", [("b", "Who sank the boat?", "Boat", "Ann sank it at dawn.")])
    return tmp_path


def test_confirm_is_the_subfolder_with_a_corpus_of_its_own(invented):
    whole = data.load("musique", data_dir=invented)
    held = data.load("musique", data_dir=invented, split="confirm")
    assert [q.id for q in whole.questions] == ["a"]
    assert [q.id for q in held.questions] == ["b"]
    assert held.name == whole.name == "musique"
    assert {p.title for p in held.corpus.passages} == {"Boat", "Other b"}
    assert not {p.text for p in held.corpus.passages} & {p.text for p in whole.corpus.passages}
    assert held.corpus.name == f"{whole.corpus.name}/confirm"
    assert held.card["frozen_split"] == "confirm"
    assert Grid(tier="public", datasets=("musique",), methods=("m",), split="confirm")


def test_without_the_subfolder_there_is_nothing_to_confirm_on(tmp_path):
    _written(tmp_path, [("a", "Who built the quay?", "Quay", "Ann built it.")])
    with pytest.raises(data.public.MissingFile, match="confirm"):
        data.load("musique", data_dir=tmp_path, split="confirm")


def test_leaks_into_the_split_that_confirms_are_found(invented):
    assert split_file.leaks(invented) == []
    rows = [
        ("b", "Who built the QUAY?", "Boat", "Ann sank it at dawn."),  # the wording
        ("c", "Who is in it?", "Quay", "Ann built it, of stone."),  # the gold passage
        ("d", "Who is not in it?", "Sea", "Ben swam across it."),
    ]
    _written(invented / "confirm", rows)
    ours = ("musique", "a")
    assert split_file.leaks(invented) == [
        (("musique/confirm", "b"), ours),
        (("musique/confirm", "c"), ours),
    ]


# ------------------------------------------------------------------ on real data


def test_what_confirms_shares_nothing_with_any_other_split(data_dir):
    if not (data_dir / splits.CONFIRM).is_dir():
        pytest.skip("the folder of real data has no questions to confirm on")
    assert split_file.leaks(data_dir) == []


@pytest.fixture(scope="module")
def everything(data_dir):
    return {n: data.load(n, data_dir=data_dir) for n in SIZES}


def test_frozen_file_is_what_make_makes(data_dir):
    assert split_file.make(data_dir) == splits.frozen()


def test_no_gold_passage_is_trained_on_and_tested_on(everything):
    """The leak test, by plain text and by title, apart from `split_file`'s own rules."""

    def plain(text):
        return " ".join(re.findall(r"\w+", text.casefold()))

    def golds(name, split):
        d = everything[name]
        for i in splits.ids(name, split):
            yield from ((i, d.corpus.by_id[g]) for g in d.by_id[i].gold_ids)

    tests = {plain(p.text) for n in SIZES for _, p in golds(n, "test")}
    leads = [n for n in SIZES if n.startswith(("hotpotqa", "2wiki"))]
    pages = {p.title.casefold() for n in leads for _, p in golds(n, "test")}
    assert len(tests) > 2500
    for name in SIZES:
        for split in ("train", "tune"):
            for ident, passage in golds(name, split):
                assert plain(passage.text) not in tests, (name, ident)
                own = everything[name].by_id[ident].meta.get("dataset", name)
                if own.startswith(("hotpotqa", "2wiki")):
                    assert passage.title.casefold() not in pages, (name, ident)


def test_no_question_is_trained_on_and_tested_on(everything):
    def wordings(*parts):
        return {
            " ".join(re.findall(r"\w+", d.by_id[i].text.casefold()))
            for n, d in everything.items()
            for s in parts
            for i in splits.ids(n, s)
        }

    assert not wordings("train", "tune") & wordings("test")


def test_train_and_tune_of_a_set_share_no_gold_passage(everything):
    for name, d in everything.items():
        train, tune = (
            {g for i in splits.ids(name, s) for g in d.by_id[i].gold_ids} for s in ("train", "tune")
        )
        assert not train & tune, name


def test_split_of_a_load_keeps_the_corpus_whole(data_dir):
    whole = data.load("popqa", data_dir=data_dir)
    tune = data.load("popqa", data_dir=data_dir, split="tune")
    assert len(tune.questions) == 100
    assert tune.corpus.sha256 == whole.corpus.sha256
    assert Counter(q.kind for q in tune.questions) == {"place of birth": 53, "occupation": 47}


@pytest.mark.parametrize("n", [20, 60, 100, 150])
def test_the_first_questions_of_a_test_list_are_a_sample(data_dir, n):
    """Kinds of the first n as of all, within four standard errors of a draw by lot."""
    for name in SIZES:
        asked = splits.ids(name, "test")
        if len(asked) <= n:
            continue
        d = data.load(name, data_dir=data_dir)
        shares = Counter(d.by_id[i].kind for i in asked)
        first = Counter(d.by_id[i].kind for i in asked[:n])
        for kind, m in shares.items():
            p = m / len(asked)
            error = (p * (1 - p) / n) ** 0.5
            assert abs(first[kind] / n - p) <= 4 * error, (name, kind)
