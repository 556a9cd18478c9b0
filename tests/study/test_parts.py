"""Shards of a record: what they hold counts, and joining them loads nothing."""

from __future__ import annotations

import os
import signal

import pytest

from rag_repro.study import campaign, files, manifests, records, runner
from rag_repro.study.names import Untrained
from rag_repro.study.papers import Cell, StudyError
from tests.study.scripted import Shop, condition, use_methods


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
    with records.find(root, condition(), runner.shard_name(shard)).open("ab") as file:
        file.write(b'{"id":"q')


def test_parts_are_found_by_name_whether_they_are_finished_or_not(tmp_path):
    assert runner.recorded(tmp_path, condition()) == runner.Recorded(None, {})
    runner.run(condition(), Shop(), tmp_path, shard=(2, 3))
    killed(tmp_path, (1, 2), n=1)
    held = runner.recorded(tmp_path, condition()).parts
    assert held.keys() == {"1-of-2", "2-of-3"}
    assert [line["id"] for line in held["2-of-3"].lines] == ["q1", "q4"]


def test_a_shard_need_not_ask_what_the_record_and_parts_that_nobody_writes_hold(tmp_path):
    runner.run(condition(), Shop(), tmp_path, n=2)
    runner.run(condition(), Shop(), tmp_path, shard=(3, 3))
    assert runner.recorded(tmp_path, condition()).ids() == {"q0", "q1", "q2", "q5"}
    killed(tmp_path, (2, 2), n=4)
    assert runner.recorded(tmp_path, condition()).ids() == {"q0", "q1", "q2", "q3", "q5"}
    with files.alone(tmp_path / f"{condition().path}.shard-2-of-2.lock"):
        assert runner.recorded(tmp_path, condition()).written == {"2-of-2"}
        assert runner.recorded(tmp_path, condition()).ids() == {"q0", "q1", "q2", "q5"}
        assert runner.recorded(tmp_path, condition()).ids((2, 2)) == {"q0", "q1", "q2", "q3", "q5"}


def test_a_worker_killed_between_its_last_answer_and_the_seal_loses_nothing(tmp_path):
    child = os.fork()
    if child == 0:
        records.RecordWriter.close = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
        runner.run(condition(), Shop(), tmp_path, shard=(1, 2))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    runner.run(condition(), Shop(), tmp_path, shard=(2, 2))
    wanted = {f"q{i}" for i in range(6)}
    held = runner.recorded(tmp_path, condition())
    assert (held.ids(), held.written, held.is_complete(wanted)) == (wanted, frozenset(), False)
    assert runner.join(condition(), Closed(), tmp_path) == 6
    assert runner.recorded(tmp_path, condition()).is_complete(wanted)
    names = sorted(path.name.split(".", 1)[1] for path in tmp_path.rglob("*.*"))
    assert names == ["jsonl", "manifest.json"]


def test_a_part_that_is_being_written_is_joined_by_nobody(tmp_path, caplog):
    runner.run(condition(), Shop(), tmp_path, shard=(2, 2))
    with records.open_record(tmp_path, condition(), {"corpus": "c1"}, "1-of-2") as record:
        for i in (0, 2, 4):
            record.append({"id": f"q{i}", "cluster": "c", "hits": [], "scores": {}})
        keys = {"dataset": "little", "method": "walk"}
        cell = Cell("mini.t", "public", "primary", keys, condition(), None)
        assert campaign.join([cell], Closed(), tmp_path) == 3
        assert "is not complete: 1-of-2 is being written; join again" in caplog.text
        assert len(records.load(tmp_path, condition())) == 3
        record.append({"id": "extra", "cluster": "c", "hits": [], "scores": {}})
    assert runner.join(condition(), Closed(), tmp_path) == 4


def test_a_part_without_an_answer_holds_nobody_up(tmp_path):
    runner.run(condition(), Shop(), tmp_path)
    torn = tmp_path / f"{condition().path}.shard-1-of-2.jsonl"
    torn.write_bytes(b'{"format": 1, "iden')
    assert runner.recorded(tmp_path, condition()).is_complete({f"q{i}" for i in range(6)})
    assert runner.join(condition(), Closed(), tmp_path) == 0


class Bare(Shop):
    """Its weights are not here."""

    def services(self, condition):
        raise Untrained("there are no weights")


def test_what_is_complete_needs_no_weights(tmp_path):
    keys = {"dataset": "little", "method": "walk"}
    cells = [Cell("mini.t", "public", "primary", keys, condition(), None)]
    runner.run(condition(), Shop(), tmp_path, n=4)
    killed(tmp_path, (2, 2), n=6)
    assert campaign.run(cells, Bare(), tmp_path, n=4) == 0
    with pytest.raises(StudyError, match="passed over: 1 since there are no weights"):
        campaign.run(cells, Bare(), tmp_path)
    assert campaign.run(cells, Bare(), tmp_path, shard=(2, 2)) == 0
    runner.run(condition(), Shop(), tmp_path, shard=(1, 2))
    assert campaign.run(cells, Bare(), tmp_path) == 0
    assert runner.recorded(tmp_path, condition()).is_complete({f"q{i}" for i in range(6)})


def test_an_estimate_calls_complete_what_is_joined_and_nothing_else(tmp_path):
    keys = {"dataset": "little", "method": "walk"}
    cells = [Cell("mini.t", "public", "primary", keys, condition(), None)]

    def line():
        return next(campaign.estimate(cells, Closed(), tmp_path, n=None)).partition(": ")[2]

    runner.run(condition(), Shop(), tmp_path, shard=(1, 2))
    killed(tmp_path, (2, 2), n=6)
    assert line() == "all answered, to be joined"
    runner.join(condition(), Closed(), tmp_path)
    assert line() == "complete"


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
    assert runner.join(condition(), Closed(), apart) == 6
    assert runner.join(condition(), Closed(), apart) == 0
    found = [records.find(root, condition()).read_bytes() for root in (tmp_path / "whole", apart)]
    assert found[0] == found[1]
    shards = [entry["shard"] for entry in manifests.read(apart, condition())]
    assert sorted(shards) == ["1-of-3", "2-of-3", "3-of-3"]
    assert not [path for path in apart.rglob("*shard*") if path.is_file()]


def test_joining_nothing_makes_no_record(tmp_path):
    assert runner.join(condition(), Closed(), tmp_path) == 0
    assert records.find(tmp_path, condition()) is None


def test_a_campaign_joins_every_cell(tmp_path):
    keys = {"dataset": "little", "method": "walk"}
    cells = [
        Cell("mini.t", "public", "primary", keys, condition(m), None) for m in ("walk", "fall")
    ]
    campaign.run(cells[:1], Shop(), tmp_path, shard=(1, 2))
    assert campaign.join(cells, Closed(), tmp_path) == 3
