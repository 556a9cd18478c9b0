"""The benchmark of BM25, run tiny: what it says is whole and equal; never how fast."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest

from benchmarks import bm25, timing
from rag_repro import data
from rag_repro.retrieval import BM25, RankBM25

SIDES = {"rank_bm25", "bm25s", "bm25s robertson"}
FEW = ["--questions", "12", "--repeats", "1"]


@pytest.fixture(autouse=True)
def little(monkeypatch):
    """Worlds are made once, bm25s asks but twice over, and no index is made only to be weighed."""
    monkeypatch.setattr(bm25, "ROUNDS", 2)
    monkeypatch.setattr(bm25, "megabytes", lambda make: 1.0)
    monkeypatch.setattr(data, "load", made)


made = lru_cache(data.load)
megabytes = bm25.megabytes


def json_of(capsys, *sizes):
    bm25.main(["--passages", *sizes, *FEW, "--json"])
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_it_ends_in_one_line_of_json_and_ranks_alike(capsys):
    told = json_of(capsys, "1500", "1000")
    assert told["equal_top10"] is True
    assert told["passages"] == [1000, 1500]
    assert (told["questions"], told["repeats"], told["rounds"]) == (12, 1, 2)
    assert {"bm25s", "rank-bm25", "python"} <= set(told["versions"])
    assert set(told["sizes"]) == {"1000", "1500"}
    for one in told["sizes"].values():
        assert one["equal_top10"] is True
        assert set(one["ratios"]) == SIDES - {"rank_bm25"}
        for fact in ("queries_per_second", "index_seconds", "index_mb"):
            assert set(one[fact]) == SIDES
    largest = told["sizes"]["1500"]
    assert told["ratio"] == largest["ratios"]["bm25s"]["ratio"]


def test_speeds_are_a_querys_though_bm25s_is_asked_more_of_them(monkeypatch, capsys):
    found = {}

    def one_second(sides, repeats, *, warm=1):
        times = timing.Times((1.0,) * repeats, (1.0,) * repeats)
        found.update({name: side() for name, side in sides.items()})
        return dict.fromkeys(sides, times), dict(found)

    monkeypatch.setattr(timing, "interleave", one_second)
    told = json_of(capsys, "1000")
    assert [len(found[name]) for name in ("rank_bm25", "bm25s")] == [12, 24]
    speed = told["sizes"]["1000"]["queries_per_second"]
    assert speed == {"rank_bm25": 12, "bm25s": 24, "bm25s robertson": 24}
    assert (told["ratio"], told["ratio_cpu"]) == (2, 2)


def test_without_json_it_is_a_table(capsys):
    bm25.main(["--passages", "1000", *FEW])
    text = capsys.readouterr().out
    assert "1,000 bm25s robertson" in text
    assert "the same first ten: True" in text
    assert "goal: 50 times" in text


def test_an_order_that_differs_is_seen_in_any_size(monkeypatch, capsys):
    # bm25s' default variant weighs frequent terms otherwise than rank_bm25 does.
    def wrong(corpus, variant="lucene"):
        return BM25(corpus, variant="lucene" if len(corpus) == 1000 else variant)

    monkeypatch.setattr(bm25, "BM25", wrong)
    told = json_of(capsys, "1000", "1500")
    assert [told["sizes"][size]["equal_top10"] for size in ("1000", "1500")] == [False, True]
    assert told["equal_top10"] is False


def test_what_the_floor_of_rank_bm25_changes_is_told_apart(monkeypatch, capsys):
    assert json_of(capsys, "1000")["sizes"]["1000"]["equal_with_floor"] < 1
    monkeypatch.setattr(bm25, "RankBM25", lambda corpus, epsilon=0: RankBM25(corpus, epsilon=0))
    assert json_of(capsys, "1000")["sizes"]["1000"]["equal_with_floor"] == 1


@pytest.mark.parametrize("number", ["0", "5000"])
def test_more_questions_than_there_are_is_an_error(number):
    with pytest.raises(ValueError, match=f"questions is {number}; world-B@1000 has from 1 to"):
        bm25.main(["--passages", "1000", "--questions", number])


def test_what_is_weighed_is_what_is_held():
    def make():
        bytes(5 * 2**20)  # gone at once
        return bytes(3 * 2**20)

    assert megabytes(make) == pytest.approx(3, abs=0.2)
