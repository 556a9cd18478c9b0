"""Downloads against a server that drops, cuts, stalls, refuses and lies."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
from collections import namedtuple

import pytest

from rag_repro import bars
from rag_repro.data import download as module
from rag_repro.data import transfer
from rag_repro.data.download import DownloadError, Patience, download

from .server import (
    FileServer,
    chunked,
    cut,
    drip,
    drop,
    endless,
    headed,
    labelled,
    misplaced,
    stall,
    status,
    then,
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
    monkeypatch.setattr(transfer.time, "sleep", slept.append)
    return slept


@pytest.fixture
def target(tmp_path):
    return tmp_path / "folder" / "data.json"


def part_of(target):
    return target.with_name("data.json.part")


def get(server, target, **settings):
    return download(server.url, target, **({"sha256": HASH, "size": len(CONTENT)} | settings))


def put_part(server, target, content):
    """As an earlier download that was stopped leaves it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part_of(target).write_bytes(content)
    note = {"url": server.url, "version": '"v1"'}
    target.with_name("data.json.part.json").write_text(json.dumps(note))


def only(target):
    return [p.name for p in target.parent.iterdir()] == ["data.json"]


def refused(server, target, *parts, **settings):
    with pytest.raises(DownloadError) as caught:
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
        assert waits == [1, 1, 2]  # doubled only while nothing comes
    assert {h.get("if-range") for _, h in server.asked[1:]} <= {'"v1"', None}


def test_goes_on_after_a_stall(server, target):
    server.plan = [stall(100_000)]
    assert get(server, target, patience=Patience(stall=0.3)) == HASH
    assert server.ranges[:2] == [None, "bytes=100000-"]
    assert server.silent  # it was we who had enough of it


def test_busy_and_broken_servers_are_asked_again(server, target, waits):
    server.plan = [status(429, Retry_After="7"), status(503), status(500), status(429)]
    assert get(server, target) == HASH
    assert waits == [7, 4, 8, 16]


def test_no_server_makes_us_wait_longer_than_we_like(server, target, waits):
    server.plan = [status(429, Retry_After="86400")]
    get(server, target, patience=Patience(longest=5))
    assert waits == [5]


def test_gives_up_when_nothing_new_comes_and_keeps_the_part(server, target):
    server.plan = [cut(100_000)] + [cut(0)] * 10
    refused(
        server,
        target,
        *(server.url, "gave up after 3 tries without a new byte", "data.json.part is kept"),
        patience=Patience(retries=2),
    )
    assert part_of(target).read_bytes() == CONTENT[:100_000]
    server.plan = []
    assert get(server, target) == HASH
    assert server.ranges[-1] == "bytes=100000-"


def test_many_breaks_are_no_failure_while_bytes_come(server, target):
    server.plan = [cut(20_000)] * 14
    assert get(server, target, patience=Patience(retries=1)) == HASH
    assert len(server.asked) == 15


def test_gives_up_on_a_dead_server_and_leaves_nothing(server, target):
    server.plan = [status(500)] * 9
    refused(server, target, "status 500", patience=Patience(retries=1))
    assert list(target.parent.iterdir()) == []


def test_nobody_listens(target):
    with FileServer() as gone:
        pass
    refused(gone, target, "gave up after 2 tries", patience=Patience(retries=1))


# ------------------------------------------------------------------- going on, or afresh


def test_a_server_without_ranges_sends_it_all_again(server, target):
    server.plan = [cut(100_000), without_ranges]
    assert get(server, target) == HASH
    assert len(server.asked) == 2


@pytest.mark.parametrize("start", [99_990, 100_010])
def test_a_server_that_goes_on_at_another_place_is_not_believed(server, target, start):
    server.plan = [cut(100_000), misplaced(start)]
    assert get(server, target, sha256=None) == HASH
    assert server.ranges == [None, "bytes=100000-", None]


def test_a_range_that_nobody_asked_for_is_not_believed(server, target):
    """A part that nothing is known of is not gone on with, whatever the server says."""

    put_part(server, target, OTHER[:1000])
    target.with_name("data.json.part.json").unlink()
    server.etag = None
    server.plan = [misplaced(1000)]
    assert get(server, target, sha256=None) == HASH
    assert server.ranges == [None, None]


@pytest.mark.parametrize("answer", [whole, without_ranges, misplaced(10)])
def test_a_file_that_changed_is_taken_afresh(server, target, answer):
    """Whether or not the server looks at If-Range."""

    def change(server):
        server.content, server.etag = OTHER, '"v2"'

    server.plan = [cut(100_000), then(change, answer)]
    got = get(server, target, sha256=None)
    assert got == hashlib.sha256(OTHER).hexdigest()
    assert target.read_bytes() == OTHER


def test_a_server_that_goes_on_with_another_version_is_not_believed(server, target):
    def confuse(handler):
        """206 with the new ETag, though the old one was asked for."""
        handler.server.content, handler.server.etag = OTHER, '"v2"'
        del handler.headers["If-Range"]
        whole(handler)

    server.plan = [cut(100_000), confuse]
    assert get(server, target, sha256=None) == hashlib.sha256(OTHER).hexdigest()
    assert server.ranges == [None, "bytes=100000-", None]


def test_the_date_serves_where_there_is_no_etag(server, target):
    server.etag, server.date = None, "Wed, 01 Jan 2020 00:00:00 GMT"
    server.plan = [cut(100_000)]
    assert get(server, target) == HASH
    assert server.asked[1][1]["if-range"] == server.date


def test_the_rest_need_not_repeat_the_date(server, target):
    def silent(handler):
        handler.server.date, date = None, handler.server.date
        del handler.headers["If-Range"]
        whole(handler)
        handler.server.date = date

    server.etag, server.date = None, "Wed, 01 Jan 2020 00:00:00 GMT"
    server.plan = [cut(100_000), silent]
    assert get(server, target, sha256=None) == HASH
    assert server.ranges == [None, "bytes=100000-"]


@pytest.mark.parametrize("etag", [None, 'W/"v1"'])
def test_nothing_is_put_together_without_a_sure_sign_of_the_version(server, target, etag):
    server.etag = etag
    server.plan = [cut(100_000)]
    assert get(server, target) == HASH
    assert server.ranges[1] is None


def test_an_earlier_part_is_gone_on_with(server, target):
    put_part(server, target, CONTENT[:200_000])
    assert get(server, target) == HASH
    assert server.ranges == ["bytes=200000-"]
    assert only(target)


@pytest.mark.parametrize(
    "note",
    [
        *("{}", "no JSON", "[1]", '{"url": "http://else/", "version": "v"}'),
        *('{"url": URL, "version": 1}', '{"url": URL, "version": "a\\r\\nb"}'),
        '{"url": URL, "version": "é"}',
    ],
)
def test_a_part_that_nobody_knows_is_thrown_away(server, target, note):
    put_part(server, target, OTHER[:1000])
    note = note.replace("URL", json.dumps(server.url))
    target.with_name("data.json.part.json").write_text(note)
    assert get(server, target) == HASH
    assert server.ranges == [None]


def test_a_part_that_is_longer_than_the_file(server, target):
    put_part(server, target, OTHER + b"x")
    server.plan = [status(416)]
    assert get(server, target) == HASH
    assert server.ranges == ["bytes=300001-", None]


def test_a_damaged_part_costs_a_download_not_the_file(server, target):
    put_part(server, target, OTHER[:200_000])
    assert get(server, target) == HASH
    assert target.read_bytes() == CONTENT
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


def test_more_chunks_than_expected_are_refused(server, target):
    server.plan = [chunked] * 9
    refused(server, target, "more than it announced", size=1000, patience=Patience(retries=1))


def test_a_length_that_nobody_tells_is_refused(server, target):
    server.plan = [without_length]
    refused(server, target, "does not say how long", sha256=None, size=None)


def test_a_length_that_we_know_is_enough(server, target):
    server.plan = [without_length]
    assert get(server, target) == HASH


def test_a_connection_that_ends_early_without_saying_so(server, target):
    """No length was announced: only the length that we know tells that it was cut."""

    def early(handler):
        handler.server.content = CONTENT[:1000]
        without_length(handler)
        handler.server.content = CONTENT

    server.plan = [early]
    assert get(server, target) == HASH
    assert len(server.asked) == 2


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
    refused(server, target, "in another form", sha256=None, size=None)


@pytest.mark.parametrize("goal", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x"])
def test_redirects_off_the_web_are_refused(server, target, goal):
    server.plan = [status(302, Location=goal)]
    refused(server, target, "redirects to", goal.split(":")[0], "refused")
    assert len(server.asked) == 1


def test_redirects_out_of_encryption_are_refused():
    import httpx

    asked = httpx.Request("GET", "https://a.example/x")
    answer = httpx.Response(302, headers={"Location": "http://a.example/y"}, request=asked)
    with pytest.raises(DownloadError, match=r"redirects to http://a\.example/y"):
        transfer._check_redirect(answer)
    answer.headers["Location"] = "https://b.example/y"
    transfer._check_redirect(answer)


def test_redirects_in_a_circle_end(server, target):
    server.plan = [status(302, Location="/again")] * 50
    refused(server, target, server.url, "redirects")


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://a.example/x", "a.example/x", "http://", "http:///x"]
)
def test_only_web_addresses(target, url):
    with pytest.raises(DownloadError, match="must begin with http"):
        download(url, target)


def test_no_passwords_in_addresses(target):
    with pytest.raises(DownloadError, match="no name and password") as caught:
        download("http://me:secret@a.example/x", target)
    assert "secret" not in str(caught.value)


def test_a_full_disk_is_noticed_before(server, target, monkeypatch):
    usage = namedtuple("usage", "total used free")(9, 9, 250_000)
    monkeypatch.setattr(transfer.shutil, "disk_usage", lambda folder: usage)
    refused(server, target, "needs 300,000 more bytes, 250,000 are free")
    put_part(server, target, CONTENT[:100_000])
    assert get(server, target) == HASH  # only what is missing needs room


def test_a_folder_that_cannot_be_made(server, tmp_path):
    (tmp_path / "file").write_text("")
    refused(server, tmp_path / "file" / "data.json", "cannot be written")


def test_what_is_there_is_not_overwritten(server, target):
    target.parent.mkdir()
    target.write_text("mine")
    with pytest.raises(DownloadError, match="is there already"):
        get(server, target)
    assert target.read_text() == "mine"
    assert only(target)


def test_a_server_that_drips_is_given_up_and_the_part_is_kept(server, target):
    server.plan = [drip] * 9
    patience = Patience(stall=5, grace=0.3, slowest=1e6)
    refused(server, target, "are too few", "data.json.part is kept", patience=patience)
    assert part_of(target).stat().st_size


def test_chunks_without_end_are_refused(server, target):
    server.plan = [endless] * 9
    patience = Patience(largest=1 << 20)
    refused(server, target, "more than 1,048,576 bytes", size=None, sha256=None, patience=patience)
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize(
    "head",
    [
        *(
            "HTTP/1.1 200 OK\r\nContent-Length: -5",
            "HTTP/1.1 200 OK\r\nContent-Length: " + "9" * 400,
        ),
        *("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 8", "HTTP/1.1 206 OK"),
        "HTTP/1.1 206 OK\r\nContent-Range: bytes 0-1/" + "9" * 5000,
    ],
)
def test_lengths_that_cannot_be_are_one_sentence(server, target, head):
    server.plan = [headed(head)] * 9
    refused(server, target, server.url, "gave up", patience=Patience(retries=1))


def test_a_token_behind_the_address_is_sent_and_told_nowhere(server, target, caplog):
    caplog.set_level("DEBUG", "rag_repro")
    server.plan = [cut(1000), status(404)]
    with pytest.raises(DownloadError) as caught:
        download(f"{server.url}?token=s3cret", target)
    kept = target.with_name("data.json.part.json").read_text()
    assert server.asked[0][0].endswith("?token=s3cret")
    assert "s3cret" not in f"{caught.value}{kept}{caplog.text}"
    for url in ("me:s3cret@a.example/x", "ftp://me:s3cret@a.example/?s3cret"):
        with pytest.raises(DownloadError) as caught:
            download(url, target)
        assert "s3cret" not in str(caught.value)


def test_no_proxy_leads_to_this_machine(server, target, monkeypatch):
    monkeypatch.delenv("no_proxy")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert get(server, target) == HASH


def test_a_redirect_from_elsewhere_to_this_machine_is_refused():
    import httpx

    asked = httpx.Request("GET", "http://a.example/x")
    for goal in ("https://127.0.0.1/y", "https://localhost/y", "https://[::1]/y"):
        answer = httpx.Response(302, headers={"Location": goal}, request=asked)
        with pytest.raises(DownloadError, match="redirects to https"):
            transfer._check_redirect(answer)


# ------------------------------------------------------------------------- two at once


def test_two_downloads_of_one_file_are_refused(server, target):
    put_part(server, target, CONTENT[:1000])
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


def test_a_part_renamed_between_opening_and_locking_is_left_alone(server, target, monkeypatch):
    """The other download finished just then: what we opened is its finished file."""
    put_part(server, target, OTHER)
    elsewhere = target.with_name("finished")
    plain = fcntl.flock

    def late(file, how):
        if part_of(target).stat().st_size == len(OTHER):
            os.replace(part_of(target), elsewhere)
        plain(file, how)

    monkeypatch.setattr(module.fcntl, "flock", late)
    assert get(server, target) == HASH
    assert elsewhere.read_bytes() == OTHER
