"""Milvus, embedded: what it finds beside bm25s and FAISS, and how a corpus gets into it whole."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import defaultdict
from unicodedata import normalize

import pytest

from rag_repro import data
from rag_repro.retrieval import BM25, Dense, Milvus, Retriever, StoreError, milvus_server
from rag_repro.retrieval.dense import LatentSemantics
from rag_repro.retrieval.milvus_server import MilvusError
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus
from rag_repro.study.corpora import overlap
from tests.retrieval.conftest import corpus_of, ids_of

WHY = "pymilvus and milvus-lite are not installed: pip install 'rag-repro[milvus]'"
pytest.importorskip("pymilvus", reason=WHY)
pytest.importorskip("milvus_lite", reason=WHY)

WORLD = data.load("world-B@1000")
CORPUS, N = WORLD.corpus, 1000
QUERIES = [question.text for question in WORLD.questions[:60]]

# Over 60 questions at 1,000 passages full text and vectors found just what bm25s and FAISS find, in
# the same order; a hit that is another would be a float32 sum on the other side of a tie.
LEAST = 0.99


@pytest.fixture(scope="module")
def encoder():
    return LatentSemantics(CORPUS, width=32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("milvus") / "world.db"


@pytest.fixture(scope="module")
def words(folder):
    made = Milvus(CORPUS, folder)
    made.load(batch=400)
    return made


@pytest.fixture(scope="module")
def vectors(folder, encoder):
    made = Milvus(CORPUS, folder, mode="dense", encoder=encoder)
    made.load()
    return made


# ------------------------------------------------------------------------------ what is found


def test_full_text_ranks_as_bm25s_does(words):
    found = overlap(words, BM25(CORPUS), QUERIES)
    assert found.mean >= LEAST
    assert found.same_order >= 0.95
    assert isinstance(words, Retriever)


def test_its_scores_are_bm25s_times_k1_plus_1(words):
    ours, theirs = (r.search(QUERIES[:5], 3) for r in (words, BM25(CORPUS)))
    for a, b in zip(ours, theirs, strict=True):
        assert [h.score for h in a] == pytest.approx([2.5 * h.score for h in b], rel=1e-3)


def test_a_corpus_without_blanks_ranks_as_in_bm25s(tmp_path):
    corpus = corpus_of(
        "博物馆收藏了许多旧船的模型。",
        "渡轮每天往返于北港和小岛之间。",
        "北港灯塔由工程师林海建造。",
        "นักบินขับเรือข้ามอ่าว",
        "नई दिल्ली, Zoé",
    )
    made = Milvus(corpus, tmp_path / "lighthouse.db")
    made.load()
    asked = ["北港灯塔是谁建造的？", "旧船", "ใครขับเรือ", normalize("NFD", "Zoé"), "दिल्ली", "द ल"]
    for a, b in zip(made.search(asked, 5), BM25(corpus).search(asked, 5), strict=True):
        assert ids_of(a) == ids_of(b)
        assert a[0].score == pytest.approx(2.5 * b[0].score, rel=1e-3)
    assert made.stored_passages(["p0"])["p0"] == corpus.passages[0]


def test_vectors_rank_as_in_faiss(vectors, encoder):
    found = overlap(vectors, Dense(CORPUS, encoder), QUERIES)
    assert found.mean >= LEAST
    assert found.same_order >= 0.95


def test_hybrid_fuses_the_two_rankings_by_reciprocal_rank(folder, encoder, words, vectors):
    made = Milvus(CORPUS, folder, mode="hybrid", encoder=encoder)
    made.load()
    fused = made.search(QUERIES[:20], 10)
    lists = [r.search(QUERIES[:20], 100) for r in (words, vectors)]
    for hits, *ranked in zip(fused, *lists, strict=True):
        scores: dict[str, float] = defaultdict(float)
        for one in ranked:
            for hit in one:
                # A passage that shares no word is in no ranking of Milvus's.
                scores[hit.passage.id] += (hit.score > 0) / (60 + hit.rank)
        best = sorted(scores.values(), reverse=True)[:10]
        assert [h.score for h in hits] == pytest.approx(best, abs=2e-4)
        assert scores[hits[0].passage.id] == pytest.approx(best[0], abs=2e-4)


def test_a_limited_search_keeps_to_its_passages_and_to_their_scores(words):
    whole = {h.passage.id: h.score for h in words.search(QUERIES[:1], N)[0]}
    pool = [p.id for p in CORPUS.passages[10:40]]
    limited, free, none = words.search(QUERIES[:1] * 3, 5, within=[pool, None, []])
    assert len(limited) == 5
    assert {h.passage.id for h in limited} <= set(pool)
    assert all(h.score == whole[h.passage.id] for h in limited)
    assert ids_of(free) == list(whole)[:5]
    assert none == []


def test_ties_and_passages_without_a_shared_word_stand_by_id(tmp_path):
    ids = ["d", "b", "a", "c", "e"]
    made = Milvus(corpus_of("red", "red", "dog", "red", "cat", ids=ids), tmp_path / "m.db")
    made.load()
    [hits] = made.search(["red"], 2)
    assert ids_of(hits) == ["b", "c"]
    assert hits[0].score == hits[1].score > 0
    [hits] = made.search(["dog"], 4)
    assert ids_of(hits) == ["a", "b", "c", "d"]
    assert [h.score for h in hits[1:]] == [0, 0, 0]
    assert ids_of(made.search(["the unicorn"], 9)[0]) == ["a", "b", "c", "d", "e"]
    assert made.search([], 3) == []


def test_any_id_is_found_and_read_back(tmp_path):
    odd = ["it's", 'a "b"', "c\\d", "straße-北京", "x in [1]"]
    corpus = Corpus("odd", tuple(Passage(i, f"t{i}", f"word{n}") for n, i in enumerate(odd)))
    made = Milvus(corpus, tmp_path / "m.db")
    made.load()
    assert made.stored_passages(odd) == dict(corpus.by_id)
    assert [h[0].passage.id for h in made.search([f"word{n}" for n in range(5)], 1)] == odd
    assert ids_of(made.search(["word2"], 1, within=[odd[1:4]])[0]) == ["c\\d"]


# ------------------------------------------------------------------------------------ loading


def test_all_is_in_exactly_once_and_a_second_load_puts_in_nothing(words):
    assert words.count() == N
    assert words.load() == 0
    assert words.count() == N
    assert words.stored_passages([p.id for p in CORPUS.passages]) == dict(CORPUS.by_id)


def test_the_card_tells_what_was_loaded_by_what_and_when(vectors, words, encoder):
    card = vectors.stored_card
    assert card["corpus"] == {"name": "world-B@1000", "sha256": CORPUS.sha256, "passages": N}
    assert card["fingerprint"] == vectors.fingerprint != words.fingerprint
    assert card["encoder"]["revision"] == card["settings"]["encoder"] == encoder.fingerprint
    assert "lite" in card["versions"]["milvus"]
    assert card["started"] <= card["finished"]


CHILD = """
import sys
from rag_repro import data
from rag_repro.retrieval import Milvus

def report(done):
    if done >= 200:
        print(done, flush=True)
        sys.stdin.read()  # until we are killed

Milvus(data.load("world-B@1000").corpus, sys.argv[1]).load(batch=40, report=report)
"""


def test_a_load_that_is_killed_goes_on_where_it_stopped(tmp_path, words):
    where = tmp_path / "killed.db"
    run = [sys.executable, "-c", CHILD, str(where)]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"200\n"
        with pytest.raises(MilvusError, match="another process may have it open"):
            Milvus(CORPUS, where)
        child.kill()
    made = Milvus(CORPUS, where)
    assert made.count() == 200
    assert not made.finished
    with pytest.raises(MilvusError, match="holds 200 of 1,000 passages: its load was interrupted"):
        made.search(QUERIES[:1], 3)
    assert made.load(batch=300) == 800  # batches that lie across the place where it stopped
    assert made.count() == N
    assert made.search(QUERIES[:10], 10) == words.search(QUERIES[:10], 10)


def test_a_load_that_ends_before_its_collection_is_there_begins_again(tmp_path, monkeypatch):
    made = Milvus(corpus_of("red", "dog"), tmp_path / "m.db")
    with monkeypatch.context() as patch:
        patch.setattr(type(made.server), "create", lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            made.load()
    assert made.count() == 0
    assert made.load() == 2


def test_a_missing_passage_is_told_with_both_numbers(tmp_path):
    corpus = corpus_of("red", "dog", "cat")
    made = Milvus(corpus, tmp_path / "m.db")
    made.load()
    made.server._client.delete(made.name, ids=["p1"])
    for again in (Milvus(corpus, tmp_path / "m.db").open, Milvus(corpus, tmp_path / "m.db").load):
        with pytest.raises(MilvusError, match="holds 2 passages where the corpus has 3") as told:
            again()
        assert "`rag-repro corpus build small` --anew" in str(told.value)
    made.drop()
    assert made.load() == 3


def test_a_drop_that_is_cut_short_leaves_no_card_of_what_is_gone(tmp_path, monkeypatch):
    made = Milvus(corpus_of("red", "dog"), tmp_path / "m.db")
    made.load()

    def killed(*given, **named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(made.server._client, "drop_collection", killed)
        with pytest.raises(KeyboardInterrupt):
            made.drop()
    with pytest.raises(StoreError, match=r"has no card.* --anew drops it and begins again"):
        made.load()
    made.drop()
    assert made.load() == 2


def test_a_card_without_its_collection_is_told_with_what_loads_it(tmp_path):
    made = Milvus(corpus_of("red", "dog"), tmp_path / "m.db")
    made.load()
    made.server._client.drop_collection(made.name)
    again = Milvus(corpus_of("red", "dog"), tmp_path / "m.db")
    for use in (again.load, again.open, lambda: again.search(["red"], 1)):
        with pytest.raises(MilvusError, match=r"holds 0 passages where .* 2; .* --anew"):
            use()


def test_a_collection_of_another_corpus_is_refused(tmp_path):
    Milvus(corpus_of("red", "dog"), tmp_path / "m.db").load()
    other = Milvus(corpus_of("red", "cat"), tmp_path / "m.db")
    for use in (other.load, other.open, lambda: other.search(["red"], 1)):
        with pytest.raises(StoreError, match=r"corpus\.sha256: expected") as told:
            use()
        assert "`rag-repro corpus build small` --anew drops it" in str(told.value)
    other.drop()
    assert other.load() == 2
    assert ids_of(other.search(["cat"], 1)[0]) == ["p1"]


def test_settings_reach_milvus_and_have_collections_of_their_own(tmp_path):
    corpus = corpus_of("red", "red dog red")
    both = [{"b": 0.75}, {"b": 0.0, "k1": 0.9}]
    made = [Milvus(corpus, tmp_path / "m.db", **settings) for settings in both]
    assert made[0].name != made[1].name
    for one, settings in zip(made, both, strict=True):
        one.load()
        ours, theirs = (r.search(["red"], 2)[0] for r in (one, BM25(corpus, **settings)))
        assert ids_of(ours) == ids_of(theirs)
        times = 1 + settings.get("k1", 1.5)
        assert [h.score for h in ours] == pytest.approx([times * h.score for h in theirs], abs=1e-3)
    assert ids_of(made[0].search(["red"], 1)[0]) != ids_of(made[1].search(["red"], 1)[0])


def test_a_collection_without_a_card_is_refused(tmp_path):
    made = Milvus(corpus_of("red"), tmp_path / "m.db")
    made.server.create(made.name, width=3)
    with pytest.raises(StoreError, match="has no card"):
        made.load()


def test_nothing_is_searched_before_it_is_loaded(tmp_path):
    made = Milvus(corpus_of("red"), tmp_path / "m.db")
    with pytest.raises(MilvusError, match="is not there; `rag-repro corpus build small` loads it"):
        made.search(["red"], 1)


def test_a_passage_that_is_too_long_is_told_before_anything_is_put_in(tmp_path):
    long = corpus_of("red", "é" * 40_000)
    made = Milvus(long, tmp_path / "m.db")
    with pytest.raises(MilvusError, match=r"'p1': its text has 80,000 bytes.*65,535"):
        made.load()
    assert made.stored_card is None


# ------------------------------------------------------------------------------- at an address


@pytest.fixture
def served(tmp_path):
    """An address, and what ends the server there."""
    from milvus_lite.server_manager import server_manager_instance as manager

    where = str(tmp_path / "served.db")
    yield manager.start_and_get_uri(where), lambda: manager.release_server(where)
    manager.release_server(where)


def test_a_server_is_used_by_its_address_and_its_end_is_told(served, monkeypatch):
    from rag_repro.retrieval import milvus_server

    address, end = served
    made = Milvus(corpus_of("red", "dog"), address)
    made.load()
    assert Milvus(corpus_of("red", "dog"), address + "/").search(["dog"], 1) == made.search(
        ["dog"], 1
    )
    assert not made.settings["embedded"]
    end()
    monkeypatch.setattr(milvus_server, "SHORT", 1.0)
    with pytest.raises(MilvusError, match=f"no Milvus answers at {address}"):
        made.search(["dog"], 1)


def test_a_server_that_is_down_is_told_at_once():
    with pytest.raises(MilvusError, match=r"no Milvus answers at http://127\.0\.0\.1:9 .*start it"):
        Milvus(corpus_of("red"), "http://127.0.0.1:9")


def test_a_request_of_many_searches_is_given_more_time():
    assert milvus_server._patience(["a"]) == milvus_server.SHORT
    assert milvus_server._patience(["a"] * 500) == 50 * milvus_server.SHORT
    assert milvus_server._patience(["a"] * 20, ["b"] * 20) == 4 * milvus_server.SHORT


@pytest.mark.parametrize("file", ["*.parquet", "schema.json", "manifest.json*"])
def test_a_damaged_folder_is_one_sentence_that_says_what_to_do(tmp_path, file):
    corpus, folder = corpus_of("red apples", "blue plums"), tmp_path / "milvus.db"
    code = (
        "import sys; from rag_repro.retrieval import Milvus;"
        "from tests.retrieval.conftest import corpus_of;"
        "made = Milvus(corpus_of('red apples', 'blue plums'), sys.argv[1]); made.load();"
        "made.search(['red'], 1)"
    )
    Milvus(corpus, folder).load()
    copy = tmp_path / "copy.db"  # this process holds the first one open
    shutil.copytree(folder, copy)
    [*damaged] = copy.rglob(file)
    assert damaged
    for path in damaged:
        path.write_bytes(b"damage")
    ran = subprocess.run(
        [sys.executable, "-c", code, str(copy)], capture_output=True, text=True, timeout=60
    )
    last = ran.stderr.strip().splitlines()[-1]
    assert last.startswith("rag_repro.retrieval.milvus_server.MilvusError: Milvus at")
    assert str(copy) in last
    assert "if its folder is damaged, delete it" in last
