"""What of Milvus is refused or told without it, installed or not."""

from __future__ import annotations

from importlib import util

import pytest

from rag_repro import retrieval
from rag_repro.retrieval import Milvus, RetrievalError, milvus_server
from rag_repro.retrieval.interface import check_address
from rag_repro.retrieval.milvus_server import HOW, MilvusError, id_filter
from tests.retrieval.conftest import corpus_of


@pytest.mark.parametrize(
    ("where", "missing"),
    [("m.db", "pymilvus and milvus-lite"), ("http://127.0.0.1:19530", "pymilvus")],
)
def test_what_is_missing_is_told_with_what_installs_it(tmp_path, monkeypatch, where, missing):
    there = util.find_spec
    monkeypatch.setattr(
        milvus_server.util, "find_spec", lambda name: None if "milvus" in name else there(name)
    )
    where = where if where.startswith("http") else tmp_path / where
    with pytest.raises(MilvusError) as told:
        Milvus(corpus_of("red"), where)
    assert str(told.value) == f"{missing} not installed: pip install 'rag-repro[milvus]'"


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1:19530", "ftp://127.0.0.1", "http://", "http://:19530", "http://a:x"),
        *("http://a?b=c", "http://a:19530#dense", "http://a:99999999"),
    ],
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(RetrievalError, match="no address of a Milvus server; write as http://"):
        check_address(address, *HOW)


def test_an_address_ends_without_a_stroke():
    assert check_address("https://milvus.example:19530/", *HOW) == "https://milvus.example:19530"


def test_a_folder_has_the_ending_that_makes_it_embedded(tmp_path):
    with pytest.raises(MilvusError, match=r"ends in \.db"):
        Milvus(corpus_of("red"), tmp_path / "milvus")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "bm52"}, "no mode 'bm52', did you mean 'bm25'?"),
        ({"mode": "dense"}, "need an encoder"),
        ({"encoder": object()}, "'bm25' takes none"),
        ({"b": 1.5}, r"b in \[0, 1\]"),
        ({"k1": 0}, "k1 is above 0"),
        ({"modus": "bm25"}, "no setting 'modus', did you mean 'mode'?"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_opened(tmp_path, settings, message):
    with pytest.raises(RetrievalError, match=message):
        retrieval.build("milvus", corpus_of("red"), where=tmp_path / "m.db", **settings)
    assert not (tmp_path / "m.db").exists()


def test_a_filter_quotes_what_an_id_may_hold():
    assert id_filter(['a "b"', "c\\d", "e'f"]) == 'id in ["a \\"b\\"", "c\\\\d", "e\'f"]'
