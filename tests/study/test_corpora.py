"""Corpora in Milvus by name: the command, the workshop, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rag_repro import cli
from rag_repro.retrieval.milvus_server import MilvusError
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus
from rag_repro.study import corpora, names
from rag_repro.study.conditions import Condition
from rag_repro.study.names import UnknownService
from rag_repro.study.services import Workshop

WORLD = "world-B@1000"
WHY = "pymilvus and milvus-lite are not installed: pip install 'rag-repro[milvus]'"
SMALL = Corpus("small", tuple(Passage(f"p{i}", "", f"red dog {i}") for i in range(5)))


@pytest.fixture
def milvus(tmp_path, monkeypatch):
    """A cache of its own, where there is a Milvus to embed."""
    pytest.importorskip("pymilvus", reason=WHY)
    pytest.importorskip("milvus_lite", reason=WHY)
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path))
    return tmp_path / "milvus"


def corpus(capsys, *words):
    """Status and what is printed by `rag-repro corpus`."""
    status = cli.main(["corpus", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_build_loads_once_card_tells_of_it_and_check_compares(milvus, capsys):
    status, out, _ = corpus(capsys, "build", WORLD)
    assert (status, out.splitlines()[0]) == (
        0,
        f"1,000 passages of {WORLD}, 1,000 of them put in now",
    )
    assert list(milvus.glob("*.db"))
    status, out, _ = corpus(capsys, "build", WORLD)
    assert out.startswith(f"1,000 passages of {WORLD}, 0 of them put in now")

    status, out, _ = corpus(capsys, "card", WORLD)
    card = json.loads(out)
    assert (status, card["held"], card["corpus"]["passages"]) == (0, 1000, 1000)
    assert card["at"].startswith(str(milvus))
    assert card["finished"]

    status, out, _ = corpus(capsys, "check", WORLD, "--sample", "50", "--queries", "20")
    assert status == 0
    told = out.splitlines()
    assert told[:2] == ["passages: 1,000, as the corpus has", "read back: 50 of 50 equal"]
    # At 1,000 passages all of bm25s's hits were found, in its order.
    assert (
        told[2] == "overlap at 10 with bm25s: 1.000 (least 1.0), in the same order 100%, 20 queries"
    )

    status, out, _ = corpus(capsys, "build", WORLD, "--anew")
    assert out.startswith(f"1,000 passages of {WORLD}, 1,000 of them put in now")


def test_what_is_not_loaded_is_told_with_what_loads_it(milvus, capsys):
    for action in ("card", "check"):
        status, out, err = corpus(capsys, action, WORLD)
        assert (status, out) == (2, "")
        assert f"is not there; `rag-repro corpus build {WORLD}` loads it" in err


def test_a_passage_that_changed_is_named(milvus):
    made = corpora.place("milvus-bm25", SMALL, Workshop())
    made.load()
    row = {"id": "p3", "title": "", "text": "blue", "searched": "blue"}
    made.server._client.upsert(made.name, [row])
    lines, differing = corpora.check(made, ["red dog"])
    assert differing == ("p3",)
    assert "read back: 4 of 5 equal" in lines
    assert "in the same order 0%" in lines[2]


def test_the_workshop_fills_the_embedded_one_at_its_first_use(milvus):
    workshop = Workshop()
    condition = Condition(WORLD, "single_step", {"k": 2}, retriever="milvus-bm25")
    assert workshop.lacks(condition) == "an index"
    assert not list(milvus.parent.iterdir())  # only looked
    dataset = workshop.dataset(WORLD, None)
    found = workshop.retriever("milvus-bm25", dataset.corpus)
    assert workshop.retriever("milvus-bm25", dataset.corpus) is found
    assert not workshop.lacks(condition)
    queries = [q.text for q in dataset.questions[:5]]
    ours, theirs = (
        [
            [h.passage.id for h in hits]
            for hits in workshop.retriever(n, dataset.corpus).search(queries, 5)
        ]
        for n in ("milvus-bm25", "bm25")
    )
    assert ours == theirs
    assert workshop.fingerprint(condition)["retriever"] == found.fingerprint


def test_a_server_of_others_is_filled_by_the_command_alone(milvus, tmp_path):
    from milvus_lite.server_manager import server_manager_instance as manager

    where = str(tmp_path / "served.db")
    name = f"milvus:{manager.start_and_get_uri(where)}"
    try:
        with pytest.raises(MilvusError, match="`rag-repro corpus build small` loads it"):
            Workshop().retriever(name, SMALL)
        address = name.removeprefix("milvus:")
        assert corpora.place("milvus-bm25", SMALL, Workshop(), address).load() == 5
        [hits] = Workshop().retriever(name, SMALL).search(["4"], 1)
        assert hits[0].passage.id == "p4"
    finally:
        manager.release_server(where)


def test_a_named_retriever_at_an_address_is_filled_where_its_milvus_is(milvus, tmp_path):
    from milvus_lite.server_manager import server_manager_instance as manager

    where = str(tmp_path / "served.db")
    settings = {"kind": "milvus", "mode": "bm25", "where": manager.start_and_get_uri(where)}
    workshop = Workshop(retrievers={"ours": settings})
    try:
        assert not corpora.is_filled("ours", SMALL, workshop)
        corpora.place("ours", SMALL, workshop).load()
        assert corpora.is_filled("ours", SMALL, workshop)
    finally:
        manager.release_server(where)


# ------------------------------------------------------------------------------------ by name


def test_names_say_what_is_searched_and_where():
    at = "http://127.0.0.1:19530"
    assert names.in_milvus(f"milvus:{at}") == {"kind": "milvus", "mode": "bm25", "where": at}
    assert names.in_milvus(f"milvus:{at}/#hybrid") == {
        **{"kind": "milvus", "mode": "hybrid", "where": at, "encoder": "minilm"}
    }
    assert names.in_milvus(f"milvus:{at}#dense=some/folder")["encoder"] == "some/folder"
    assert Workshop().settings_of(f"milvus:{at}#dense")["mode"] == "dense"
    assert not names.is_outside(f"milvus:{at}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("milvus:127.0.0.1:19530", "no address of a Milvus server"),
        ("milvus:http://a:19530#hybird", "did you mean 'hybrid'?"),
        ("milvus:http://a:19530#bm25=minilm", "behind the address stands #bm25, #dense"),
        ("milvus-bm52", "did you mean 'milvus-bm25'?"),
    ],
)
def test_names_that_say_nothing_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        names.check_retriever(name)


def test_other_retrievers_do_not_lie_in_milvus():
    with pytest.raises(
        UnknownService, match="'bm25' does not lie in Milvus; there are: milvus-bm25"
    ):
        corpora.place("bm25", SMALL, Workshop())


def test_an_encoder_that_is_fitted_anew_cannot_be_kept():
    workshop = Workshop(retrievers={"m": {"kind": "milvus", "mode": "dense", "encoder": "lsa"}})
    with pytest.raises(UnknownService, match="'lsa' is fitted anew each time"):
        corpora.place("m", SMALL, workshop)


def test_anew_goes_with_build_alone(capsys):
    assert cli.main(["corpus", "check", WORLD, "--anew"]) == 2
    assert "--anew goes with: rag-repro corpus build" in capsys.readouterr().err


# ------------------------------------------------------------------------------------ overlap


class Ranked:
    """A retriever that finds what it was told to."""

    def __init__(self, *rankings):
        self.rankings = rankings

    def search(self, queries, k, within=None):
        from rag_repro.schema import Hit

        found = zip(queries, self.rankings, strict=True)
        return [
            [Hit(Passage(i, "", ""), 0.0, rank) for rank, i in enumerate(ids[:k], 1)]
            for _, ids in found
        ]


def test_overlap_is_the_share_of_the_others_hits():
    found = corpora.overlap(Ranked("abcd", "efgh"), Ranked("abdc", "exyz"), ["q", "r"], k=4)
    assert found == corpora.Overlap(mean=0.625, least=0.25, same_order=0.0)
    assert corpora.overlap(Ranked("ab"), Ranked("ab"), ["q"]).same_order == 1.0
    assert replace(found, least=0.0) != found


def test_without_a_question_there_is_nothing_to_compare():
    with pytest.raises(MilvusError, match="no query to compare with"):
        corpora.overlap(Ranked(), Ranked(), [])
