"""Whatever happens to a record's file: a clear error or a correct wait, and nothing is lost."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from rag_repro import cli
from rag_repro.digest import write_whole
from rag_repro.study import campaign, files, manifests, records, runner
from rag_repro.study import lines as form
from rag_repro.study.records import RecordError, open_record
from tests.study.scripted import Shop, condition, use_methods

CALLS = ("write", "fsync", "replace", "unlink", "ftruncate", "open", "mkdir")
KILLED = 86


@pytest.fixture(autouse=True)
def _methods(monkeypatch):
    use_methods(monkeypatch)
    monkeypatch.setattr(manifests, "commit", lambda: None)  # asks git, which takes its time


def run(root, shop=None, **options):
    return runner.run(condition(), shop or Shop(), root, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Lines that an undisturbed run leaves, header first."""
    with pytest.MonkeyPatch.context() as patch:
        use_methods(patch)
        root = tmp_path_factory.mktemp("whole")
        run(root)
        return lines(root)


def lines(root) -> list[bytes]:
    data = records.find(root, condition()).read_bytes()
    return data[: data.rfind(b"\n") + 1].splitlines()


def kept(root) -> set[bytes]:
    return set(lines(root)) if records.find(root, condition()) else set()


def left(root) -> list[str]:
    """Kinds of the files there, but for the empty locks of shards that are gone."""
    names = [p.name.split(".", 1)[1] for p in root.rglob("*") if p.is_file()]
    return sorted(name for name in names if not name.startswith("shard-") or ".lock" not in name)


DONE = ["jsonl", "manifest.json"]


def in_child(work) -> int:
    """Exit status of work() in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            status = work() or 0
        except RecordError:
            status = 2
        except BaseException:
            logging.exception("in the child")
            status = 1
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# ------------------------------------------------------------------------- kills


def at_call(number: int, act) -> None:
    """Have act(call, its first two arguments) come before file operation `number` of a process."""
    count = 0

    def counted(name):
        real = getattr(os, name)

        def called(*given, **options):
            nonlocal count
            count += 1
            if count == number:
                act(real, *given[:2])
            return real(*given, **options)

        return called

    for name in CALLS:
        setattr(os, name, counted(name))


def killed(real, *given):
    os._exit(KILLED)


def killed_half_way(real, *given):
    """A write reaches the file in part; what is no write does not happen."""
    if real.__name__ == "write":
        real(given[0], bytes(given[1])[: len(given[1]) // 2])
    os._exit(KILLED)


@pytest.mark.parametrize("act", [killed, killed_half_way])
@pytest.mark.parametrize("first", [0, 3, 6])
def test_a_run_killed_at_any_file_operation_goes_on(tmp_path, whole, act, first):
    number = 0
    while True:
        number += 1
        root = tmp_path / str(number)
        if first:
            run(root, n=first)
        before = kept(root)

        def work(number=number, root=root):
            at_call(number, act)
            run(root, batch_size=2)

        status = in_child(work)
        if status == 0:
            break
        assert status == KILLED
        assert before <= kept(root) <= set(whole)
        run(root)
        assert lines(root) == whole
        assert left(root) == DONE
    assert number > (12 if first < 6 else 2)


def test_a_kill_while_shards_are_joined_loses_and_doubles_nothing(tmp_path, whole):
    number = 0
    while True:
        number += 1
        root = tmp_path / str(number)
        for i in (1, 2):
            run(root, shard=(i, 2))

        def work(number=number, root=root):
            at_call(number, killed)
            run(root)

        status = in_child(work)
        if status == 0:
            break
        assert status == KILLED
        assert run(root) == 0
        assert lines(root) == whole
        assert left(root) == DONE
        told = manifests.read(root, condition())
        assert sorted(entry["shard"] for entry in told) == ["1-of-2", "2-of-2"]
    assert number > 15


def test_a_killed_run_has_told_which_machine_it_was(tmp_path):
    def work():
        run(tmp_path, report=lambda progress: progress.done == 3 and os._exit(KILLED))

    assert in_child(work) == KILLED
    [told] = manifests.read(tmp_path, condition())
    assert told["questions"] == 1  # written at the first answer; the next ones follow by and by
    assert told["machine"] == manifests.machine()
    assert "end" not in told
    run(tmp_path)
    assert [("end" in e, e["questions"]) for e in manifests.read(tmp_path, condition())] == [
        (False, 1),
        (True, 3),
    ]


def test_the_entry_of_a_long_run_is_renewed(tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "OFTEN", 0)

    def work():
        run(tmp_path, report=lambda progress: progress.done == 3 and os._exit(KILLED))

    assert in_child(work) == KILLED
    assert [e["questions"] for e in manifests.read(tmp_path, condition())] == [3]


# --------------------------------------------------------------------- torn and foreign


def torn(root, cut, tail=b""):
    """A record whose last line has lost `cut` bytes, with `tail` in their place."""
    path = records.find(root, condition())
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - cut] + tail)


@pytest.mark.parametrize("tail", [b"", b"\0", b"\0" * 4096])
def test_a_last_line_cut_at_any_byte_is_asked_again(tmp_path, whole, tail):
    run(tmp_path / "whole")
    for cut in (*range(1, 20), *range(20, len(whole[-1]), 23), len(whole[-1]), len(whole[-1]) + 1):
        root = tmp_path / str(cut)
        shutil.copytree(tmp_path / "whole", root)
        torn(root, cut, tail)
        assert len(records.load(root, condition())) == 5
        assert run(root) == 1
        assert lines(root) == whole


def test_a_line_cut_within_a_character_is_asked_again(tmp_path):
    plain = {"cluster": "q", "hits": [], "scores": {}}
    odd = "né 漢字 \U0001f642 \ud83d"  # the last is half a character: an odd reader's
    with open_record(tmp_path, condition(), {}) as record:
        record.append({"id": "a", **plain})
        record.append({"id": "b", **plain, "text": odd})
    assert records.load(tmp_path, condition()).by_question["b"]["text"] == odd
    data = records.find(tmp_path, condition()).read_bytes()
    assert data.decode()  # UTF-8 for every other program, too
    for cut in range(1, len(data) - data.index(b"\n", data.index(b'"a"'))):
        root = tmp_path / str(cut)
        shutil.copytree((tmp_path / condition().path).parent, (root / condition().path).parent)
        torn(root, cut)
        with open_record(root, condition(), {}) as record:
            assert list(record.done) == ["a"]


def test_a_header_cut_at_any_byte_starts_anew_and_is_no_record_meanwhile(tmp_path, whole):
    for length in (*range(40), *range(40, len(whole[0]) + 1, 9)):
        root = tmp_path / str(length)
        path = root / (condition().path + ".jsonl")
        path.parent.mkdir(parents=True)
        path.write_bytes(whole[0][:length] + b"\0" * (length % 3))
        assert records.load(root, condition()) is None
        assert run(root, n=1) == 1


@pytest.mark.parametrize(
    "content",
    [
        *(b"my notes", b"my notes\n", b"[1]\n", b"{}\n", b"\xff\xfe\n", b"[" * 9999 + b"\n"),
        b'{"format": 1, "identity": {}}\n',
        b'{"format": 2, "identity": {}, "fingerprint": {}}\n',
    ],
)
def test_a_foreign_file_is_refused_by_name_and_stays(tmp_path, content):
    path = tmp_path / (condition().path + form.ENDING)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for use in (run, lambda root: records.load(root, condition())):
        with pytest.raises(RecordError, match="is no record file of format 1") as caught:
            use(tmp_path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_a_refused_record_is_left_as_it_was(tmp_path):
    run(tmp_path, n=2)
    path = records.find(tmp_path, condition())
    before = path.read_bytes()
    with pytest.raises(RecordError, match="corpus: stored 'c1', now 'c2'"):
        run(tmp_path, Shop(corpus="c2"))
    assert (path.read_bytes(), left(tmp_path)) == (before, DONE)


def test_a_complete_record_is_not_written_again(tmp_path):
    run(tmp_path)
    path = records.find(tmp_path, condition())
    before = path.stat()
    run(tmp_path)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


# ------------------------------------------------------------------------ the disk


def test_a_disk_that_is_full_at_any_byte_loses_nothing(tmp_path, whole):
    size = sum(map(len, whole)) + 800
    stopped = 0
    for limit in range(0, size, 101):
        root = tmp_path / str(limit)

        def work(limit=limit, root=root):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            run(root, batch_size=2)

        status = in_child(work)
        assert status in (0, 2)
        stopped += status == 2
        before = kept(root)
        assert before <= set(whole)
        run(root)
        assert before <= kept(root)
        assert lines(root) == whole
        assert left(root) == DONE
    assert stopped > 12


def full(monkeypatch, after: int, code=errno.ENOSPC):
    """A disk that takes `after` bytes through os.write, and part of the write that is too much."""
    room, real = after, os.write

    def write(descriptor, data):
        nonlocal room
        if not room:
            raise OSError(code, os.strerror(code))
        written = real(descriptor, bytes(data)[:room])
        room -= written
        return written

    monkeypatch.setattr(os, "write", write)


def test_a_full_disk_is_told_with_what_is_saved_and_what_to_do(tmp_path, whole, monkeypatch):
    with monkeypatch.context() as patch:
        full(patch, len(whole[1]) + len(whole[2]) + 30)
        with pytest.raises(RecordError) as caught:
            run(tmp_path, batch_size=1)
    path = tmp_path / (condition().path + ".jsonl")
    assert str(caught.value) == (
        f"{path} cannot be written (No space left on device; make room on the disk, and run the "
        "same command again); its 2 finished answers are saved"
    )
    assert lines(tmp_path) == whole[:3]
    run(tmp_path)
    assert lines(tmp_path) == whole


def test_after_a_full_disk_the_same_writer_can_go_on(tmp_path, monkeypatch):
    good = {"cluster": "c", "hits": [], "scores": {}}
    with open_record(tmp_path, condition(), {}) as record:
        record.append({"id": "a", **good})
        with monkeypatch.context() as patch:
            full(patch, 20)
            with pytest.raises(RecordError, match="its 1 finished answers are saved"):
                record.append({"id": "b", **good})
        record.append({"id": "b", **good})
    assert list(records.load(tmp_path, condition()).by_question) == ["a", "b"]


def test_the_disk_is_named_also_where_the_record_cannot_be_put_in_order(
    tmp_path, whole, monkeypatch, caplog
):
    def fails(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    def backwards():
        with open_record(tmp_path, condition(), {"corpus": "c1"}, order=["q2"]) as record:
            for text in whole[3:5]:
                record.append(json.loads(text))

    with monkeypatch.context() as patch:
        patch.setattr(records, "write_whole", fails)
        with pytest.raises(RecordError, match="cannot be written"):
            run(tmp_path)
    run(tmp_path, n=2)
    with monkeypatch.context() as patch:
        full(patch, len(whole[3]) + 5)
        patch.setattr(records, "write_whole", fails)
        with pytest.raises(RecordError, match="its 3 finished answers are saved"):
            backwards()
    assert "its 3 finished answers are saved" in caplog.text  # of what could not be put in order
    run(tmp_path)
    assert lines(tmp_path) == whole


def test_who_reads_a_file_while_it_is_replaced_sees_the_old_one_whole(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")
    with path.open("rb") as reader:
        write_whole(path, b"new and longer")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new and longer"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch, code):
    real = os.mkdir

    def mkdir(path, *given, **options):
        if str(path).startswith(str(tmp_path)):
            raise OSError(code, os.strerror(code), str(path))
        return real(path, *given, **options)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(RecordError, match=rf"{os.strerror(code)}; .*name a.*again") as caught:
        run(tmp_path / "records")
    assert str(tmp_path / "records" / condition().path) in str(caught.value)


def test_a_read_only_folder_is_named_and_its_records_are_read():
    """For root no folder is read-only, so root asks as somebody else."""
    nobody = 65534
    root = Path(tempfile.mkdtemp())
    try:
        run(root, n=2)
        folder = (root / condition().path).parent
        for path in (root, folder):
            path.chmod(0o555)

        def work():
            if os.getuid() == 0:
                os.setuid(nobody)
            assert len(records.load(root, condition())) == 2
            try:
                with open_record(root, condition(), Shop().fingerprint(None)):
                    return 1
            except RecordError as error:
                return 0 if "Permission denied; make it writable" in str(error) else 3

        assert in_child(work) == 0
        assert len(lines(root)) == 3
    finally:
        for path in (root, folder):
            path.chmod(0o755)
        shutil.rmtree(root)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device; make room"),
        (
            PermissionError(errno.EACCES, "Permission denied", "results"),
            "results: Permission denied",
        ),
        (OSError(errno.EIO, "Input/output error", "x"), "x: Input/output error; mend that"),
    ],
)
def test_the_command_line_prints_trouble_with_the_disk_as_one_line(
    tmp_path, monkeypatch, capsys, error, told
):
    def fails(*given, **options):
        raise error

    monkeypatch.setattr(campaign, "select", fails)
    assert cli.main(["run", "drrag.table5", "--results", str(tmp_path)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"rag-repro: {told}")
    assert line.endswith("what was finished is saved")


# ------------------------------------------------------------------------ two at once


class Slow(Shop):
    """Takes its time, so that two runs meet."""

    def services(self, condition):
        real = self.retriever.search

        def search(*given, **options):
            time.sleep(0.05)
            return real(*given, **options)

        self.retriever.search = search
        return super().services(condition)


def at_once(*works) -> list[int]:
    children = []
    for work in works:
        child = os.fork()
        if child == 0:
            try:
                os._exit(work())
            except BaseException:
                logging.exception("in the child")
                os._exit(99)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def test_of_two_runs_on_one_record_one_waits_and_asks_nothing_twice(tmp_path, whole):
    asked = at_once(*[lambda: run(tmp_path, Slow())] * 3)
    assert sorted(asked) == [0, 0, 6]
    assert lines(tmp_path) == whole
    assert left(tmp_path) == DONE


def test_who_waits_says_so(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    ready, go = os.pipe()
    child = os.fork()  # before the lock is held: a child would inherit it
    if child == 0:
        os.read(ready, 1)
        with files.alone(tmp_path / "lock"):
            os._exit(0 if "another run is at work on this; waiting" in caplog.text else 1)
    with files.alone(tmp_path / "lock"):
        os.write(go, b"!")
        time.sleep(0.2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_two_runs_that_join_the_same_shards_join_them_once(tmp_path, whole):
    for i in (1, 2, 3):
        run(tmp_path, shard=(i, 3))
    assert at_once(*[lambda: run(tmp_path, Slow())] * 3) == [0, 0, 0]
    assert lines(tmp_path) == whole
    assert left(tmp_path) == DONE
    assert len(manifests.read(tmp_path, condition())) == 3


def test_a_shard_that_another_run_joined_meanwhile_is_passed_over(tmp_path, whole, monkeypatch):
    run(tmp_path, n=4)
    run(tmp_path, shard=(1, 3))
    run(tmp_path, shard=(3, 3))

    @contextlib.contextmanager
    def late(lock, wait):
        lock.with_name(lock.name.removesuffix(".lock") + ".jsonl").unlink(missing_ok=True)
        yield True

    real = files.alone
    monkeypatch.setattr(
        records,
        "alone",
        lambda lock, wait=True: (late if "1-of-3" in lock.name else real)(lock, wait),
    )
    assert records.absorb(tmp_path, condition()) == 1  # the third's one of two that was new
    assert lines(tmp_path) == [*whole[:5], whole[6]]


def test_many_writers_in_turn_lose_nothing(tmp_path):
    def work(writer):
        for i in range(15):
            with open_record(tmp_path, condition(), {}) as record:
                name = f"{writer}-{i}"
                record.append({"id": name, "cluster": name, "hits": [], "scores": {}})
        return 0

    assert at_once(*[lambda w=w: work(w) for w in range(4)]) == [0] * 4
    assert len(records.load(tmp_path, condition())) == 60


def test_a_record_can_be_read_while_it_is_written(tmp_path):
    def write():
        for i in range(60):
            with open_record(tmp_path, condition(), {}) as record:
                record.append({"id": str(i), "cluster": "c", "hits": [], "scores": {}})
        return 0

    def look():
        seen = 0
        while seen < 60:
            record = records.load(tmp_path, condition())
            found = len(record) if record else 0
            assert found >= seen
            seen = found
        return 0

    assert at_once(write, look) == [0, 0]


def test_a_record_that_cannot_be_read_back_is_not_written(tmp_path):
    with open_record(tmp_path, condition(), {}) as record:
        good = {"id": "a", "cluster": "a", "hits": [], "scores": {}}
        for bad in ({"scores": {"em": float("nan")}}, {"cluster": None}, {"text": b"bytes"}):
            with pytest.raises(RecordError, match="'a'"):
                record.append({**good, **bad})
        for pair in (["a", "b", 0.5], ["a", 1, 0.5, 0], ["a", "b", 1.5, 0], ["a", "b", 0.5, 3]):
            with pytest.raises(RecordError, match="judged"):
                record.append({**good, "judged": [pair]})
        for gold in (["static", 1], ["static", 1, 0], ["static", 1, "2"], "p1x"):
            with pytest.raises(RecordError, match="gold"):
                record.append({**good, "hits": ["p1"], "gold": [gold]})
        record.append(
            {**good, "hits": ["p1"], "gold": [[None, 1, 1]], "judged": [["a", "b", 1, None]]}
        )
    assert len(records.load(tmp_path, condition())) == 1


ENTRY = {"start": "2026-01-01T00:00:00+00:00", "questions": 2, "machine": "x86_64"}
WRONG = [
    {"questions": -1}, {"questions": 10**400}, {"questions": True}, {"machine": "m\x1b"},
    {"machine": 7}, {"start": "today"}, {"start": "2026-01-01T00:00:00"}, {"end": 1e9},
]  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [b"", b"[", b"{}", b"[1]", b"\xff", b"[" * 9999, b"[NaN]", b"[{}]"]
    + [json.dumps([ENTRY | wrong]).encode() for wrong in WRONG],
)
def test_a_damaged_manifest_is_named_before_a_run_and_stays(tmp_path, content):
    run(tmp_path, n=2)
    path = tmp_path / (condition().path + form.MANIFEST)
    path.write_bytes(content)
    shop = Shop()
    with pytest.raises(RecordError, match=r"is no manifest .*restore it") as caught:
        run(tmp_path, shop)
    assert str(path) in str(caught.value)
    assert shop.retriever.asked == []
    assert path.read_bytes() == content
    assert len(lines(tmp_path)) == 3


# ------------------------------------------------------------------ values and sizes

LINE = {"id": "q1", "cluster": "c", "hits": ["p"], "scores": {"recall": 1.0}}


def stored(tmp_path, text: str) -> Path:
    header = {"format": 1, "identity": {}, "fingerprint": {}}
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(header)}\n{text}\n")
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"scores": {"recall": 7}}, {"scores": {"em": -0.5}}, {"scores": {"f1": True}},
        {"scores": {"length": 1e301}}, {"cost": {"searches": -1}}, {"cost": {"searches": 1.5}},
        {"cost": {"prompt_tokens": 10**400}}, {"cost": {"prompt_tokens": True}}, {"hops": True},
        {"id": "q\x1b[2J"}, {"id": "q\x00"}, {"id": "q\n"}, {"entropy": True}, {"entropy": -1},
        {"hops": -1}, {"hops": 10**400}, {"gold": [["static", 1, 10**400]]},
        {"gold": [["static", -1, 1]]}, {"gold": [[7, 1, 1]]}, {"scores": {"length": -1}},
        {"scores": {"passages": -1}}, {"cluster": "c\x1b[2J"}, {"kind": "k\x00"},
        {"id": "q\u202e"}, {"hits": ["p\x1b"]}, {"hits": ["p", 7]}, {"remembered": ["p\u2028"]},
        {"judged": [["p", "p\x00", 0.5, 1]]}, {"critique": [["p\x00", 0.5, 1]]},
    ],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_a_line_with_a_value_out_of_range_is_named(tmp_path, changes):
    path = stored(tmp_path, json.dumps(LINE | changes))
    with pytest.raises(RecordError, match=r"a\.jsonl, line 2: .*restore the file") as caught:
        records.form.read(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
@pytest.mark.parametrize("line", [LINE, LINE | {"scores": {}, "entropy": 1.0}], ids=len)
def test_a_line_with_what_is_no_number_is_named(tmp_path, number, line):
    path = stored(tmp_path, json.dumps(line).replace("1.0", number))
    with pytest.raises(RecordError, match=r"a\.jsonl, line 2: "):
        records.form.read(path)


def test_a_whole_line_is_read(tmp_path):
    more = {"scores": {"recall": 0, "length": 250.0}, "cost": {"prompt_tokens": 10**6}}
    assert records.form.read(stored(tmp_path, json.dumps(LINE | more))).lines[0]["id"] == "q1"
