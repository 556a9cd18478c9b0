"""Shards of a record: what they hold counts, and joining them loads nothing."""

from __future__ import annotations

import lzma

import pytest

from rag_repro.study import campaign, manifests, parts, records, runner
from rag_repro.study.papers import Cell

from .scripted import Shop, condition, use_methods


@pytest.fixture(autouse=True)
def _methods(monkeypatch):
    use_methods(monkeypatch)


class Closed(Shop):
    """Its questions can be read, and nothing can be asked."""

    def services(self, condition):
        raise AssertionError("nothing is to be loaded")


def killed(root, shard, n):
    """What a run of the first n questions leaves where it is killed behind the last of them."""
    runner.run(condition(), Shop(), root, shard=shard, n=n)
    packed = records.find(root, condition(), parts.name(shard))
    packed.with_name(packed.name.removesuffix(".xz")).write_bytes(
        lzma.decompress(packed.read_bytes())
    )
    packed.unlink()


def test_parts_are_found_by_name_whether_they_are_finished_or_not(tmp_path):
    assert parts.held(tmp_path, condition()) == {}
    runner.run(condition(), Shop(), tmp_path, shard=(2, 3))
    killed(tmp_path, (1, 2), n=1)
    held = parts.held(tmp_path, condition())
    assert {name: parts.is_finished(part) for name, part in held.items()} == {
        "1-of-2": False,
        "2-of-3": True,
    }
    assert [line["id"] for line in held["2-of-3"].lines] == ["q1", "q4"]


def test_recorded_is_what_record_finished_parts_and_the_own_part_hold(tmp_path):
    runner.run(condition(), Shop(), tmp_path, n=2)
    runner.run(condition(), Shop(), tmp_path, shard=(3, 3))
    assert parts.recorded(tmp_path, condition()) == {"q0", "q1", "q2", "q5"}
    killed(tmp_path, (2, 2), n=4)
    assert parts.recorded(tmp_path, condition()) == {"q0", "q1", "q2", "q5"}
    assert parts.recorded(tmp_path, condition(), (2, 2)) == {"q0", "q1", "q2", "q3", "q5"}


def test_a_shard_asks_nothing_that_a_finished_part_of_another_split_holds(tmp_path):
    runner.run(condition(), Shop(), tmp_path, shard=(1, 3))  # q0, q3
    shop = Shop()
    assert runner.run(condition(), shop, tmp_path, shard=(2, 2)) == 2  # q1, q3, q5
    assert {query.split()[1] for query in shop.retriever.asked} == {"1", "5"}


def test_joining_leaves_what_an_undisturbed_run_leaves_and_loads_nothing(tmp_path):
    runner.run(condition(), Shop(), tmp_path / "whole")
    apart = tmp_path / "apart"
    for i in (3, 1, 2):
        runner.run(condition(), Shop(), apart, shard=(i, 3))
    assert parts.join(condition(), Closed(), apart) == 6
    assert parts.join(condition(), Closed(), apart) == 0
    found = [records.find(root, condition()).read_bytes() for root in (tmp_path / "whole", apart)]
    assert found[0] == found[1]
    shards = [entry["shard"] for entry in manifests.read(apart, condition())]
    assert sorted(shards) == ["1-of-3", "2-of-3", "3-of-3"]
    assert not [path for path in apart.rglob("*shard*") if path.is_file()]


def test_joining_nothing_makes_no_record(tmp_path):
    assert parts.join(condition(), Closed(), tmp_path) == 0
    assert records.find(tmp_path, condition()) is None


def test_a_campaign_joins_every_cell(tmp_path):
    keys = {"dataset": "little", "method": "walk"}
    cells = [
        Cell("mini.t", "public", "primary", keys, condition(m), None) for m in ("walk", "fall")
    ]
    campaign.run(cells[:1], Shop(), tmp_path, shard=(1, 2))
    assert campaign.join(cells, Closed(), tmp_path) == 3
