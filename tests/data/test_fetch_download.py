"""Downloads against a server that drops, cuts, stalls, refuses and lies."""

from __future__ import annotations

import fcntl
import hashlib
import random

import pytest

from rag_repro import bars
from rag_repro.data import download as module
from rag_repro.data.download import FetchError, download
from tests.data.server import (
    FileServer,
    chunked,
    cut,
    drop,
    headed,
    labelled,
    misplaced,
    stall,
    status,
    whole,
    without_length,
    without_ranges,
)

CONTENT = random.Random(1).randbytes(300_000)
HASH = hashlib.sha256(CONTENT).hexdigest()
OTHER = random.Random(2).randbytes(300_000)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with FileServer(CONTENT) as made:
        yield made


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """The seconds that would have been slept between tries."""
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    return slept


@pytest.fixture
def target(tmp_path):
    return tmp_path / "folder" / "data.json"


def part_of(target):
    return target.with_name("data.json.part")


def get(server, target, **settings):
    return download(server.url, target, **({"sha256": HASH, "size": len(CONTENT)} | settings))


def put_part(target, content):
    """As an earlier download that was stopped leaves it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part_of(target).write_bytes(content)


def only(target):
    return [p.name for p in target.parent.iterdir()] == ["data.json"]


def refused(server, target, *parts, **settings):
    with pytest.raises(FetchError) as caught:
        get(server, target, **settings)
    for part in parts:
        assert part in str(caught.value)
    assert not target.exists()


# ------------------------------------------------------------------------- the good case


def test_a_whole_file_and_nothing_beside_it(server, target):
    assert get(server, target) == HASH
    assert target.read_bytes() == CONTENT
    assert only(target)
    assert server.asked[0][1]["accept-encoding"] == "identity"


def test_the_hash_is_told_where_none_is_known(server, target):
    assert get(server, target, sha256=None, size=None) == HASH


def test_chunks_need_no_length(server, target):
    server.plan = [chunked]
    assert get(server, target, size=None) == HASH
    assert only(target)


def test_redirects_on_the_web_are_followed(server, target):
    server.plan = [status(302, Location="/moved/evil.name")]
    assert get(server, target) == HASH
    assert only(target)  # the server does not name the file


def test_progress_goes_to_stderr_and_is_a_line_now_and_then(server, target, capsys, monkeypatch):
    monkeypatch.setattr(bars, "PATIENCE", 0.0)
    monkeypatch.setattr(bars, "PIPED", 0.0)
    get(server, target)
    out, err = capsys.readouterr()
    assert out == ""
    assert "data.json" in err
    assert "\r" not in err


# --------------------------------------------------------------- what is tried once more


@pytest.mark.parametrize("fault", [cut, drop])
def test_goes_on_where_the_connection_broke(server, target, waits, fault):
    server.plan = [fault(100_000), fault(50_000), fault(0)]
    assert get(server, target) == HASH
    assert only(target)
    starts = [int(r.removeprefix("bytes=").removesuffix("-")) for r in server.ranges[1:] if r]
    assert starts
    assert starts == sorted(starts)
    if fault is cut:  # a reset may take bytes with it that were on their way
        assert server.ranges == [None, "bytes=100000-", "bytes=150000-", "bytes=150000-"]
        assert waits == [1, 2, 4]


def test_goes_on_after_a_stall(server, target, monkeypatch):
    monkeypatch.setattr(module, "SILENCE", 0.3)
    server.plan = [stall(100_000)]
    assert get(server, target) == HASH
    assert server.ranges[:2] == [None, "bytes=100000-"]
    assert server.silent  # it was we who had enough of it


def test_busy_and_broken_servers_are_asked_again(server, target, waits):
    server.plan = [status(429), status(503), status(500), status(429)]
    assert get(server, target) == HASH
    assert waits == [1, 2, 4, 8]


def test_gives_up_in_the_end_and_keeps_the_part(server, target):
    server.plan = [cut(100_000)] + [cut(0)] * 10
    refused(server, target, server.url, "gave up after 8 tries", "data.json.part is kept")
    assert part_of(target).read_bytes() == CONTENT[:100_000]
    server.plan = []
    assert get(server, target) == HASH
    assert server.ranges[-1] == "bytes=100000-"


def test_gives_up_on_a_dead_server_and_leaves_nothing(server, target):
    server.plan = [status(500)] * 9
    refused(server, target, "status 500")
    assert list(target.parent.iterdir()) == []


def test_nobody_listens(target):
    with FileServer() as gone:
        pass
    refused(gone, target, "gave up after 8 tries")


# ------------------------------------------------------------------- going on, or afresh


def test_a_server_without_ranges_sends_it_all_again(server, target):
    server.plan = [cut(100_000), without_ranges]
    assert get(server, target) == HASH
    assert len(server.asked) == 2


@pytest.mark.parametrize("start", [99_990, 100_010])
def test_a_server_that_goes_on_at_another_place_is_not_believed(server, target, start):
    server.plan = [cut(100_000), misplaced(start)]
    assert get(server, target) == HASH
    assert server.ranges == [None, "bytes=100000-", None]


def test_nothing_is_put_together_where_no_hash_would_tell(server, target):
    put_part(target, OTHER[:1000])
    server.plan = [cut(100_000)]
    assert get(server, target, sha256=None) == HASH
    assert server.ranges == [None, None]


def test_an_earlier_part_is_gone_on_with(server, target):
    put_part(target, CONTENT[:200_000])
    assert get(server, target) == HASH
    assert server.ranges == ["bytes=200000-"]
    assert only(target)


def test_a_part_that_is_longer_than_the_file(server, target):
    put_part(target, OTHER + b"x")
    server.plan = [status(416)]
    assert get(server, target) == HASH
    assert server.ranges == ["bytes=300001-", None]


def test_a_damaged_part_costs_a_second_command(server, target):
    put_part(target, OTHER[:200_000])
    refused(server, target, "wrong bytes", "same command again")
    assert get(server, target) == HASH
    assert server.ranges == ["bytes=200000-", None]


# --------------------------------------------------------------------- what is refused


def test_wrong_bytes_are_deleted_and_both_hashes_named(server, target):
    server.content = OTHER
    refused(
        server,
        target,
        *("wrong bytes from", server.url, HASH, hashlib.sha256(OTHER).hexdigest(), "deleted"),
    )
    assert list(target.parent.iterdir()) == []
    assert len(server.asked) == 1


def test_another_length_is_refused_before_it_is_downloaded(server, target):
    server.content = OTHER * 2
    refused(server, target, "300,000 bytes were expected, the server has 600,000")


def test_a_length_that_nobody_tells_is_refused(server, target):
    server.plan = [without_length]
    refused(server, target, "does not say how long", sha256=None, size=None)


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_a_refusal_is_not_asked_again(server, target, code):
    server.plan = [status(code)]
    refused(server, target, f"status {code}", server.url)
    assert len(server.asked) == 1


def test_a_web_page_is_not_a_data_set(server, target):
    server.plan = [labelled(Content_Type="text/html; charset=utf-8")]
    refused(server, target, "a web page came", sha256=None, size=None)


def test_a_compressed_transfer_is_refused(server, target):
    server.plan = [labelled(Content_Encoding="gzip")]
    refused(server, target, "compresses the file", sha256=None, size=None)


@pytest.mark.parametrize("goal", ["file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_redirects_off_the_web_are_refused(server, target, goal):
    server.plan = [status(302, Location=goal)]
    refused(server, target, server.url, "unsupported protocol", goal.split(":")[0])
    assert len(server.asked) == 1


def test_redirects_in_a_circle_end(server, target):
    server.plan = [status(302, Location="/again")] * 50
    refused(server, target, server.url, "redirects")


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://a.example/x", "a.example/x", "http://", "http:///x"]
)
def test_only_web_addresses(target, url):
    with pytest.raises(FetchError, match="must begin with http"):
        download(url, target)


def test_no_passwords_in_addresses(target):
    with pytest.raises(FetchError, match="no name and password") as caught:
        download("http://me:secret@a.example/x", target)
    assert "secret" not in str(caught.value)


def test_a_folder_that_cannot_be_made(server, tmp_path):
    (tmp_path / "file").write_text("")
    refused(server, tmp_path / "file" / "data.json", "cannot be written")


@pytest.mark.parametrize(
    "head",
    [
        *(
            "HTTP/1.1 200 OK\r\nContent-Length: -5",
            "HTTP/1.1 200 OK\r\nContent-Length: " + "9" * 400,
        ),
        *("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 8", "HTTP/1.1 206 OK"),
        "HTTP/1.1 206 OK\r\nContent-Range: bytes 0-1/2",
    ],
)
def test_lengths_that_cannot_be_are_one_sentence(server, target, head):
    server.plan = [headed(head)] * 9
    refused(server, target, server.url, "gave up")


def test_a_token_behind_the_address_is_sent_and_told_nowhere(server, target, caplog):
    caplog.set_level("DEBUG", "rag_repro")
    server.plan = [cut(1000), status(404)]
    with pytest.raises(FetchError) as caught:
        download(f"{server.url}?token=s3cret", target)
    assert server.asked[0][0].endswith("?token=s3cret")
    assert "s3cret" not in f"{caught.value}{caplog.text}"
    for url in ("me:s3cret@a.example/x", "ftp://me:s3cret@a.example/?s3cret"):
        with pytest.raises(FetchError) as caught:
            download(url, target)
        assert "s3cret" not in str(caught.value)


# ------------------------------------------------------------------------- two at once


def test_two_downloads_of_one_file_are_refused(server, target):
    put_part(target, CONTENT[:1000])
    with part_of(target).open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        refused(server, target, "data.json.part", "another process is downloading")
    assert part_of(target).read_bytes() == CONTENT[:1000]
    assert get(server, target) == HASH


def test_while_it_downloads_nobody_else_can(server, target):
    tried = []

    def look(handler):
        with part_of(target).open("ab") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                tried.append("locked")
        whole(handler)

    server.plan = [look]
    assert get(server, target) == HASH
    assert tried == ["locked"]
