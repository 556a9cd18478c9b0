"""Data sets in words."""

from __future__ import annotations

from rag_repro.data import cards


def test_every_data_set_is_listed_with_where_it_is(tmp_path, monkeypatch):
    monkeypatch.delenv("RAG_REPRO_DATA", raising=False)
    (tmp_path / "musique.jsonl.gz").write_bytes(b"")
    lines = cards.listing(tmp_path).splitlines()
    by_name = {line.split()[0]: line for line in lines}
    assert by_name["musique"].endswith("musique.jsonl.gz")
    assert by_name["hotpotqa"].endswith("-")
    assert {"world-A", "world-D", "nq20", "dureader"} <= by_name.keys()
    assert "names no folder" in cards.listing(None).splitlines()[-1]


def test_a_card_says_licence_counts_and_hash():
    text = cards.describe("world-B@1000")
    assert "licence: MIT" in text
    assert "passages: 1000" in text
    assert "corpus sha256: " in text
    assert "  compositional2: " in text
