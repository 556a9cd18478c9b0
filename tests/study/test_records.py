"""Record files: appended, resumed, repaired, refused by name."""

from __future__ import annotations

import json
import multiprocessing
import time

import pytest

from rag_repro.study import lines, records
from rag_repro.study.conditions import Condition
from rag_repro.study.records import RecordError, open_record

CONDITION = Condition("world-B", "qdc", {"k": 4}, retriever="minilm")
PRINT = {"corpus": "c0ffee", "retriever": "minilm@1"}


def line(name, recall=1.0):
    return {"id": name, "cluster": name, "hits": ["p"], "scores": {"recall": recall}}


def write(root, *names, condition=CONDITION, fingerprint=PRINT):
    with open_record(root, condition, fingerprint) as record:
        for name in names:
            record.append(line(name))


def test_identity_names_everything_decided_and_n_is_no_part_of_it():
    assert CONDITION.identity == {
        "dataset": "world-B",
        "split": "test",
        "method": "qdc",
        "version": 1,
        "settings": {
            "k": 4,
            "own_candidates": False,
            "prompt": None,
            "max_new_tokens": 64,
            "k1": 2,
        },
        "retriever": "minilm",
        "reader": None,
        "seed": 0,
    }
    assert CONDITION.path == f"world-B/qdc-minilm-k4-{CONDITION.hash}"


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "world-C"},
        {"method": "single_step"},
        {"settings": {"k": 3}},
        {"settings": {"k": 4, "k1": 1}},
        {"retriever": "bm25"},
        {"reader": "smollm2-135m"},
        {"split": "tune"},
        {"seed": 1},
    ],
)
def test_every_decision_changes_the_name(change):
    given = {
        "dataset": "world-B",
        "method": "qdc",
        "settings": {"k": 4},
        "retriever": "minilm",
        **change,
    }
    assert Condition(**given).hash != CONDITION.hash


def test_spelling_out_a_default_changes_nothing():
    spelt = Condition("world-B", "qdc", {"k": 4, "k1": 2, "prompt": None}, retriever="minilm")
    assert spelt.hash == CONDITION.hash


def test_what_is_written_is_read_back(tmp_path):
    write(tmp_path, "a", "b")
    [path] = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert path.name.endswith(".jsonl")
    record = records.load(tmp_path, CONDITION)
    assert [entry["id"] for entry in record.lines] == ["a", "b"]
    assert record.header["fingerprint"] == PRINT


def test_a_resumed_record_goes_on_and_equals_an_undisturbed_one(tmp_path):
    write(tmp_path / "whole", "a", "b", "c")
    write(tmp_path / "parts", "a")
    with open_record(tmp_path / "parts", CONDITION, PRINT) as record:
        assert record.done == {"a"}
        record.append(line("b"))
        record.append(line("c"))
    whole, parts = (records.find(tmp_path / n, CONDITION) for n in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()


def test_an_interrupt_keeps_what_was_appended(tmp_path):
    def interrupted():
        with open_record(tmp_path, CONDITION, PRINT) as record:
            record.append(line("a"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert records.load(tmp_path, CONDITION).by_question.keys() == {"a"}


def test_a_run_stopped_before_its_first_answer_leaves_no_record(tmp_path):
    with pytest.raises(OSError, match="gone"), open_record(tmp_path, CONDITION, PRINT):
        raise OSError("the service is gone")
    assert records.find(tmp_path, CONDITION) is None


def test_a_run_stopped_before_another_answer_keeps_the_record(tmp_path):
    write(tmp_path, "a")
    with pytest.raises(OSError, match="gone"), open_record(tmp_path, CONDITION, PRINT):
        raise OSError("the service is gone")
    assert records.load(tmp_path, CONDITION).by_question.keys() == {"a"}


def killed(tmp_path, tail: bytes):
    """A record as a killed run leaves it, with `tail` torn off its end."""
    write(tmp_path, "a", "b")
    path = records.find(tmp_path, CONDITION)
    path.write_bytes(path.read_bytes() + tail)
    return path


@pytest.mark.parametrize("tail", [b'{"id":"c","hi', b"{", b""])
def test_a_torn_last_line_is_cut_off_and_asked_again(tmp_path, tail):
    killed(tmp_path, tail)
    assert len(records.load(tmp_path, CONDITION)) == 2
    write(tmp_path, "c")
    assert list(records.load(tmp_path, CONDITION).by_question) == ["a", "b", "c"]


def test_a_record_torn_inside_its_header_starts_anew(tmp_path):
    plain = killed(tmp_path, b"")
    plain.write_bytes(plain.read_bytes()[:20])
    assert not records.load(tmp_path, CONDITION)
    write(tmp_path, "a")
    assert list(records.load(tmp_path, CONDITION).by_question) == ["a"]


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    plain = killed(tmp_path, b"")
    plain.write_bytes(plain.read_bytes().replace(b'{"id":"a"', b'{"id:"a"'))
    with pytest.raises(RecordError, match=r"\.jsonl, line 2: not JSON"):
        records.load(tmp_path, CONDITION)
    with pytest.raises(RecordError, match="line 2"):
        write(tmp_path, "c")
    assert plain.exists()


def test_a_question_recorded_twice_is_named(tmp_path):
    plain = killed(tmp_path, b"")
    plain.write_bytes(plain.read_bytes() + json.dumps(line("a")).encode() + b"\n")
    with pytest.raises(RecordError, match="line 4: question 'a' is recorded twice"):
        records.load(tmp_path, CONDITION)
    with open_record(tmp_path / "new", CONDITION, PRINT) as record:
        record.append(line("a"))
        with pytest.raises(RecordError, match="recorded already"):
            record.append(line("a"))


def test_a_record_that_an_older_version_packed_is_not_passed_over(tmp_path):
    write(tmp_path, "a")
    path = records.find(tmp_path, CONDITION)
    path.rename(f"{path}.xz")
    for use in (lambda: records.load(tmp_path, CONDITION), lambda: write(tmp_path, "b")):
        with pytest.raises(RecordError, match=r"as older versions left it: unxz .*\.jsonl\.xz"):
            use()


@pytest.mark.parametrize("content", [b"hello\nworld\n", b'{"format": 99}\n', b"[1]\n"])
def test_a_foreign_file_is_refused_by_name(tmp_path, content):
    plain = killed(tmp_path, b"")
    plain.write_bytes(content)
    with pytest.raises(RecordError, match=plain.name):
        records.load(tmp_path, CONDITION)


def test_another_conditions_file_under_this_name_is_refused(tmp_path):
    other = Condition("world-B", "qdc", {"k": 6}, retriever="minilm")
    write(tmp_path, "a", condition=other)
    target = tmp_path / (CONDITION.path + ".jsonl")
    records.find(tmp_path, other).rename(target)
    with pytest.raises(RecordError, match=r"another condition.*settings"):
        records.load(tmp_path, CONDITION)


def test_a_changed_fingerprint_is_refused_and_loses_nothing(tmp_path):
    write(tmp_path, "a")
    with pytest.raises(RecordError, match="corpus: stored 'c0ffee', now 'beef'"):
        write(tmp_path, "b", fingerprint={**PRINT, "corpus": "beef"})
    assert list(records.load(tmp_path, CONDITION).by_question) == ["a"]


def _hold(root, started):
    with open_record(root, CONDITION, PRINT) as record:
        started.set()
        time.sleep(0.4)
        record.append(line("first"))


def test_two_runs_on_one_record_wait_for_each_other(tmp_path):
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    holder = context.Process(target=_hold, args=(tmp_path, started))
    holder.start()
    assert started.wait(30)
    with open_record(tmp_path, CONDITION, PRINT) as record:
        assert record.done == {"first"}
        record.append(line("second"))
    holder.join()
    assert list(records.load(tmp_path, CONDITION).by_question) == ["first", "second"]
    assert not list(tmp_path.rglob("*.lock"))


def test_shards_run_apart_and_are_joined(tmp_path):
    write(tmp_path, "a")
    for shard, name in (("1-of-2", "b"), ("2-of-2", "c")):
        with open_record(tmp_path, CONDITION, PRINT, shard) as record:
            assert record.done == set()
            record.append(line(name))
    assert records.absorb(tmp_path, CONDITION) == 2
    assert list(records.load(tmp_path, CONDITION).by_question) == ["a", "b", "c"]
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 1


def test_a_shard_made_with_other_data_is_not_joined(tmp_path):
    write(tmp_path, "a")
    with open_record(tmp_path, CONDITION, {**PRINT, "corpus": "beef"}, "1-of-2") as record:
        record.append(line("b"))
    with pytest.raises(RecordError, match="has changed"):
        records.absorb(tmp_path, CONDITION)
    assert list(records.load(tmp_path, CONDITION).by_question) == ["a"]


def test_what_a_shard_and_the_record_both_hold_is_joined_once(tmp_path):
    with open_record(tmp_path, CONDITION, PRINT, "1-of-2") as record:
        record.append(line("a", recall=0.0))
        record.append(line("b"))
    write(tmp_path, "a")
    assert records.absorb(tmp_path, CONDITION) == 1
    joined = records.load(tmp_path, CONDITION).by_question
    assert [(name, entry["scores"]["recall"]) for name, entry in joined.items()] == [
        ("a", 1.0),
        ("b", 1.0),
    ]


def test_a_shard_of_another_condition_is_not_joined(tmp_path):
    other = Condition("world-B", "qdc", {"k": 3}, retriever="minilm")
    with open_record(tmp_path, other, PRINT, "1-of-2") as record:
        record.append(line("b"))
    [shard] = [p for p in tmp_path.rglob("*") if p.is_file()]
    shard.rename(shard.with_name(shard.name.replace(other.path[8:], CONDITION.path[8:])))
    with pytest.raises(RecordError, match=r"made under another condition.*settings"):
        records.absorb(tmp_path, CONDITION)


def test_lines_are_left_in_the_order_of_the_questions(tmp_path):
    order = ["a", "b", "c", "d"]
    with open_record(tmp_path, CONDITION, PRINT, order=order) as record:
        for name in ("c", "stranger", "a"):
            record.append(line(name))
    assert list(records.load(tmp_path, CONDITION).by_question) == ["a", "c", "stranger"]
    with open_record(tmp_path, CONDITION, PRINT, order=order) as record:
        record.append(line("b"))
    assert list(records.load(tmp_path, CONDITION).by_question) == ["a", "b", "c", "stranger"]


def test_a_record_of_other_data_can_be_set_aside(tmp_path):
    write(tmp_path, "a")
    assert records.set_aside(tmp_path, CONDITION, PRINT) is None
    moved = records.set_aside(tmp_path, CONDITION, {**PRINT, "corpus": "beef"})
    assert moved.name.endswith(".stale")
    assert records.find(tmp_path, CONDITION) is None
    write(tmp_path, "b", fingerprint={**PRINT, "corpus": "beef"})
    assert list(records.load(tmp_path, CONDITION).by_question) == ["b"]
    first = moved.read_bytes()
    again = records.set_aside(tmp_path, CONDITION, PRINT)
    assert again.name.endswith(".stale-2")
    assert moved.read_bytes() == first


@pytest.mark.parametrize("cost", [{"reads": -1}, {"reads": 1.5}, {"reads": True}, {"reads": "1"}])
def test_a_cost_is_a_count(cost):
    line = {"id": "a", "cluster": "a", "hits": [], "scores": {}}
    lines.line_bytes({**line, "cost": {"reads": 3}})
    with pytest.raises(lines.RecordError, match=r"'cost\.reads' is"):
        lines.line_bytes({**line, "cost": cost})
