"""Growth measured size by size: what is written, continued, stopped and refused."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import tempfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from rag_repro import cli
from rag_repro.retrieval import RetrievalError
from rag_repro.study import growth, timed_runs
from rag_repro.study.growth import GrowthError, Size

HERE = {"machine": "a machine", "cores": 2, "threads": 1, "versions": {"bm25s": "1"}}


@pytest.fixture(autouse=True)
def here(monkeypatch):
    monkeypatch.setattr(timed_runs, "surroundings", lambda: {**HERE, "versions": {"bm25s": "1"}})


class Measured:
    """In place of a measurement; `stops`: sizes that go beyond a limit."""

    def __init__(self, *stops):
        self.asked, self.stops = [], stops

    def __call__(self, retriever, n, *, queries, minutes, gigabytes):
        self.asked.append((retriever, n, queries, minutes, gigabytes))
        if n in self.stops:
            return Size(n, stopped=growth.MEMORY, when="now")
        return Size(n, build=1.5, index=10 * n, overlap={"bm25s": 1.0}, when="now")


def ran(*given, measured, **named):
    """`growth.run`, with this in place of a process that measures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growth, "measure_in_subprocess", measured)
        return growth.run(*given, **named)


def test_each_size_is_written_and_not_measured_again(tmp_path):
    first, second = Measured(), Measured()
    made = ran("bm25", [20, 10, 10], tmp_path, queries=5, measured=first)
    assert [size.passages for size in made.sizes] == [10, 20]
    assert first.asked == [("bm25", 10, 5, 10, 6), ("bm25", 20, 5, 10, 6)]
    assert growth.load(tmp_path / "bm25.json") == made
    again = ran("bm25", [10, 15, 20], tmp_path, measured=second)
    assert [n for _, n, *_ in second.asked] == [15]
    assert [size.passages for size in again.sizes] == [10, 15, 20]
    assert growth.load_all(tmp_path) == [again]
    assert growth.load_all(tmp_path / "nothing") == []


def test_what_is_measured_is_kept_when_the_next_size_fails(tmp_path):
    class Failing(Measured):
        def __call__(self, retriever, n, **given):
            if n == 20:
                raise KeyboardInterrupt
            return super().__call__(retriever, n, **given)

    with pytest.raises(KeyboardInterrupt):
        ran("bm25", [10, 20, 30], tmp_path, measured=Failing())
    assert [s.passages for s in growth.load(tmp_path / "bm25.json").sizes] == [10]


def test_beyond_the_first_limit_no_size_is_tried(tmp_path, caplog):
    caplog.set_level("INFO")
    measured = Measured(20)
    made = ran("bm25", [10, 20, 30], tmp_path, measured=measured)
    assert [size.stopped for size in made.sizes] == [None, "memory"]
    assert [size.passages for size in made.measured] == [10]
    ran("bm25", [5, 20], tmp_path, measured=measured)
    assert [n for _, n, *_ in measured.asked] == [10, 20, 5]
    assert "bm25: beyond its memory at 20 passages" in caplog.messages


@pytest.mark.parametrize(
    ("change", "word"),
    [({"machine": "another"}, "machine"), ({"versions": {"bm25s": "2"}}, "versions")],
)
def test_a_record_of_another_machine_is_not_continued(tmp_path, monkeypatch, change, word):
    ran("bm25", [10], tmp_path, measured=Measured())
    monkeypatch.setattr(timed_runs, "surroundings", lambda: {**HERE, **change})
    with pytest.raises(GrowthError, match=f"measured with other {word} than here"):
        ran("bm25", [20], tmp_path, measured=Measured())


def test_a_record_of_other_limits_is_not_continued(tmp_path):
    ran("bm25", [10], tmp_path, measured=Measured())
    with pytest.raises(GrowthError, match="other limits"):
        ran("bm25", [20], tmp_path, minutes=3, measured=Measured())


@pytest.mark.parametrize(
    "change",
    [
        lambda told: "[]",
        lambda told: "{",
        lambda told: json.dumps(told | {"speed": 1}),
        lambda told: json.dumps(told | {"sizes": [{"passages": "many"}]}),
        lambda told: json.dumps(told | {"sizes": [{"pasages": 10}]}),
        lambda told: json.dumps({k: v for k, v in told.items() if k != "machine"}),
    ],
)
def test_a_damaged_record_is_told(tmp_path, change):
    path = tmp_path / "bm25.json"
    ran("bm25", [10], tmp_path, measured=Measured())
    path.write_text(change(json.loads(path.read_text())))
    with pytest.raises(GrowthError, match="is no record of growth"):
        ran("bm25", [20], tmp_path, measured=Measured())


def test_a_misspelt_retriever_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match=r"did you mean 'bm25'\?"):
        ran("bm52", [10], tmp_path / "growth", measured=Measured())
    assert not (tmp_path / "growth").exists()


def test_the_command_hands_on_what_is_asked_and_prints_what_it_found(tmp_path, monkeypatch, capsys):
    seen = []
    sizes = (Size(1000, build=2.5, index=3_000_000), Size(2000, stopped=growth.MEMORY))

    def run(*given, **named):
        seen.append((given, named))
        return SimpleNamespace(sizes=sizes)

    monkeypatch.setattr(growth, "run", run)
    words = ["growth", "bm25", "--sizes", "1000", "2000", "--queries", "7", "--minutes", "3"]
    assert cli.main([*words, "--memory", "2", "--results", str(tmp_path / "records")]) == 0
    assert seen == [
        (("bm25", [1000, 2000], tmp_path / "growth"), {"queries": 7, "minutes": 3, "gigabytes": 2})
    ]
    assert capsys.readouterr().out.splitlines() == [
        "1,000 passages: built in 2.5 s, index 3.0 MB on the disk",
        "2,000 passages: beyond the limit of memory",
        str(tmp_path / "growth" / "bm25.json"),
    ]


# ------------------------------------------------------------------------------------ one size


def test_one_size_is_measured_for_real():
    size = growth.measure("bm25", 1000, queries=5)
    assert (size.passages, size.queries, size.stopped) == (1000, 5, None)
    assert 250_000 < size.text < 400_000
    assert 200_000 < size.index < 1_000_000  # eight bytes and four for each of 30 words a passage
    assert 0 < size.empty <= size.corpus <= size.memory
    assert size.build > 0
    assert 0 < size.search <= size.search_95
    assert size.encoding_cpu is None


@pytest.mark.parametrize("name", ["rank-bm25", "random", "web-bm25", "lsa", "http://127.0.0.1:1"])
def test_an_index_without_files_has_no_growth(name):
    with pytest.raises(RetrievalError, match="its index has no files here"):
        growth.measure(name, 1000, queries=5)


def test_milvus_is_measured_with_its_count_and_overlap(monkeypatch, tmp_path):
    pytest.importorskip("pymilvus", reason="pymilvus is not installed")
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    size = growth.measure("milvus-bm25", 1000, queries=5)
    assert size.held == 1000
    assert size.overlap == {"bm25s": 1.0}
    assert size.index > 100_000


def killed(pipe, *given):
    os.kill(os.getpid(), signal.SIGKILL)


def failing(pipe, *given):
    sys.exit(3)


def refused(pipe, *given):
    pipe.send(ValueError("no such thing"))


@pytest.mark.slow
def test_how_the_process_of_a_size_ends_is_told(monkeypatch):
    limits = {"queries": 5, "minutes": 10, "gigabytes": 6}
    monkeypatch.setattr(growth, "_child", killed)
    assert growth.measure_in_subprocess("bm25", 1000, **limits).stopped == growth.MEMORY
    monkeypatch.setattr(growth, "_child", failing)
    with pytest.raises(GrowthError, match="ended with status 3"):
        growth.measure_in_subprocess("bm25", 1000, **limits)
    monkeypatch.setattr(growth, "_child", refused)
    with pytest.raises(ValueError, match="no such thing"):
        growth.measure_in_subprocess("bm25", 1000, **limits)


def killed_at_work(pipe, *given):
    tempfile.mkdtemp(dir=given[-1])
    killed(pipe)


def without_memory(*given, **named):
    raise OSError(errno.ENOMEM, "Cannot allocate memory")


def test_what_a_killed_process_leaves_behind_is_removed(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(growth, "_child", killed_at_work)
    size = growth.measure_in_subprocess("bm25", 1000, queries=5, minutes=10, gigabytes=6)
    assert size.stopped == growth.MEMORY
    assert list(tmp_path.iterdir()) == []


def test_a_system_without_memory_is_a_size_beyond_its_limit(monkeypatch):
    told = []
    pipe = SimpleNamespace(send=told.append, close=lambda: None)
    monkeypatch.setattr(growth.resource, "setrlimit", lambda *given: None)
    monkeypatch.setattr(growth, "measure", without_memory)
    growth._child(pipe, "bm25", 1000, 5, 10, 6, "")
    assert told == [growth.MEMORY]


@pytest.mark.slow
def test_a_size_beyond_its_minutes_is_ended():
    size = growth.measure_in_subprocess("bm25", 1000, queries=5, minutes=0, gigabytes=6)
    assert replace(size, when="", load=None, commit=None) == Size(1000, stopped=growth.PROCESSOR)
    assert size.when
