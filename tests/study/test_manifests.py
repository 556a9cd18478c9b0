"""Who made a record: one entry a run, without a path or a user's name."""

from __future__ import annotations

import getpass
import json
import re
from datetime import datetime
from pathlib import Path

import pytest

from rag_repro.study import manifests
from rag_repro.study.conditions import Condition

CONDITION = Condition("world-B", "single_step", {"k": 3}, retriever="bm25")


@pytest.fixture(autouse=True)
def _folder(tmp_path):
    """The folder that an open record has made before."""
    (tmp_path / CONDITION.path).parent.mkdir()


def test_an_entry_says_when_on_what_and_how_much(tmp_path):
    with manifests.written(tmp_path, CONDITION, batch_size=4) as entry:
        for _ in range(3):
            entry.answered()
    [told] = manifests.read(tmp_path, CONDITION)
    assert told.keys() == {
        *("start", "end", "questions", "machine", "python", "packages", "commit", "batch_size"),
    }
    assert (told["questions"], told["batch_size"]) == (3, 4)
    start, end = (datetime.fromisoformat(told[key]) for key in ("start", "end"))
    assert start <= end
    assert start.utcoffset().total_seconds() == 0
    assert set(told["packages"]) <= set(manifests.PACKAGES)
    assert "numpy" in told["packages"]


def test_each_run_adds_one_and_a_run_without_questions_none(tmp_path):
    for questions in (2, 0, 1):
        with manifests.written(tmp_path, CONDITION) as entry:
            for _ in range(questions):
                entry.answered()
    assert [told["questions"] for told in manifests.read(tmp_path, CONDITION)] == [2, 1]


def test_an_interrupted_run_leaves_its_entry(tmp_path):
    def interrupted():
        with manifests.written(tmp_path, CONDITION) as entry:
            entry.answered()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(manifests.read(tmp_path, CONDITION)) == 1


def test_without_a_run_there_is_none(tmp_path):
    assert manifests.read(tmp_path, CONDITION) == []
    manifests.absorb(tmp_path, CONDITION)
    assert manifests.read(tmp_path, CONDITION) == []


def test_entries_of_shards_wait_apart_and_are_joined(tmp_path):
    for shard, questions in (("", 1), ("1-of-2", 2), ("2-of-2", 3)):
        with manifests.written(tmp_path, CONDITION, shard) as entry:
            for _ in range(questions):
                entry.answered()
    assert len(manifests.read(tmp_path, CONDITION)) == 1
    manifests.absorb(tmp_path, CONDITION)
    told = manifests.read(tmp_path, CONDITION)
    assert [e["questions"] for e in told] == [1, 2, 3]
    assert [e.get("shard") for e in told] == [None, "1-of-2", "2-of-2"]
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 1


def test_the_environment_holds_no_path_and_no_users_name():
    text = json.dumps(manifests.environment())
    for private in (str(Path.cwd()), str(Path(manifests.__file__).parent), "\\\\"):
        assert private not in text
    # No absolute path of whatever kind, and nobody's name.
    assert not re.search(r'[" ]/\w', text)
    assert not re.search(rf"\b{re.escape(getpass.getuser())}\b", text)
