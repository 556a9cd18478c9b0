"""`rag-repro data fetch`: from an address to a data set that loads."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from rag_repro import cli, data
from rag_repro.data import cards
from rag_repro.data import fetch as module
from rag_repro.data.fetch import FetchError, fetch
from rag_repro.data.public import registry
from rag_repro.data.public.loading import FORMATS
from rag_repro.data.sources import parse, sources
from tests.data.server import FileServer, cut, stall

OFFICIAL = Path(__file__).parent / "files" / "official"
HOTPOT = (OFFICIAL / "hotpot_dev_distractor_v1.json").read_bytes()
NAME = "hotpot_dev_distractor_v1.json"


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with FileServer(HOTPOT) as made:
        yield made


@pytest.fixture
def local(server, monkeypatch):
    """A sources.yaml whose files are all on the test's server; files: name -> facts."""

    def use(files, releases):
        known = {n: {"url": f"{server.url}/{n}", **facts} for n, facts in files.items()}
        made = {n: {"page": "https://a.example/", "take": take} for n, take in releases.items()}
        text = json.dumps({"files": known, "releases": made, "ours": {}})
        monkeypatch.setattr(module, "sources", lambda: parse(text))

    return use


def run(*words):
    return cli.main(["data", *map(str, words)])


# ------------------------------------------------------------------ on the command line


def test_a_release_is_fetched_and_loaded(server, tmp_path, capsys, caplog, monkeypatch):
    caplog.set_level("INFO")
    monkeypatch.delenv("RAG_REPRO_DATA", raising=False)
    folder = tmp_path / "new" / "folder"
    server.plan = [cut(200)]
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    words = ("--data", folder, "--url", server.url, "--sha256", digest(HOTPOT))
    assert run("fetch", "hotpotqa", *words) == 0
    out, err = capsys.readouterr()
    assert out == f"{folder / NAME}\n"
    assert "licence CC BY-SA 4.0; see https://hotpotqa.github.io/" in caplog.text
    assert "received 200 bytes" in caplog.text
    assert err == ""  # no bar for what takes no time
    made = data.load("hotpotqa", data_dir=folder)
    assert [q.id for q in made.questions] == ["h1", "h2"]
    assert made.card["files"] == {NAME: digest(HOTPOT)}
    # A second time nothing is asked for.
    n = len(server.asked)
    assert run("fetch", "hotpotqa", *words) == 0
    assert capsys.readouterr().out == f"{folder / NAME}\n"
    said = f"already here: {folder / NAME}: SHA-256 {digest(HOTPOT)}, as expected"
    assert said in caplog.text
    assert len(server.asked) == n


def test_the_known_hash_holds_wherever_the_file_comes_from(server, tmp_path, capsys):
    server.content = bytes(1061383)  # the right length
    assert run("fetch", "ambignq", "--data", tmp_path, "--url", server.url) == 2
    err = capsys.readouterr().err
    assert "wrong bytes" in err
    assert "3f5dada69dec05cef1533a64945cd7bafde1aa94b0cdd6fa9a22f881206220db was expected" in err
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fetch"], "name a data set: rag-repro data fetch NAME"),
        (["fetch", "hotpotq"], "no data set 'hotpotq', did you mean 'hotpotqa'?"),
        (["card", "world_b"], "no data set 'world_b', did you mean 'world-"),
        (["fetch", "world-B"], "is generated or your own, not downloaded"),
        (["fetch", "ircot_demos"], "ircot_demos.jsonl.gz was made for this project"),
        (["fetch", "musique"], "has to be got by hand: open https://drive.google.com"),
        (["fetch", "nq", "--url", "file:///etc/passwd"], "must begin with http:// or https://"),
        (["fetch", "nq", "--sha256", "abc"], "64 small hex digits are wanted"),
        (["fetch", "iirc", "--url", "http://a.example/x.tgz"], "has several files"),
        (["fetch", "iirc", "--sha256", "0" * 64], "has several files"),
        (["fetch", "nq", "--json"], "--json goes with"),
        (["list", "--url", "http://a.example/"], "go with: rag-repro data fetch"),
        (["list", "nq"], "`list` takes no name"),
    ],
)
def test_what_cannot_be_fetched_is_said_in_one_line(tmp_path, capsys, words, message):
    assert run(*words, "--data", tmp_path / "folder") == 2
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert out == ""
    assert last.startswith("rag-repro: ")
    assert message in last
    assert not (tmp_path / "folder").exists() or not list((tmp_path / "folder").iterdir())


def test_no_folder_is_named(monkeypatch, capsys):
    monkeypatch.delenv("RAG_REPRO_DATA", raising=False)
    assert run("fetch", "hotpotqa") == 2
    assert "set RAG_REPRO_DATA" in capsys.readouterr().err


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_fetch_is_gone_on_with(server, tmp_path, blow):
    server.content = json.dumps(json.loads(HOTPOT) * 500).encode()
    words = ["fetch", "hotpotqa", "--data", str(tmp_path), "--url", server.url]
    words += ["--sha256", digest(server.content)]
    # What is started in a shell's background inherits a SIGINT that is ignored.
    code = "import signal, sys, rag_repro.cli as c; "
    code += "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(c.main())"
    command = [sys.executable, "-c", code, "data"]
    # More silences than one: under load the command may try again before it is struck.
    server.plan = [stall(200_000)] * 9
    part = tmp_path / f"{NAME}.part"
    with subprocess.Popen([*command, *words], stderr=subprocess.PIPE, text=True) as running:
        while running.poll() is None and not (part.exists() and part.stat().st_size > 100_000):
            time.sleep(0.02)
        running.send_signal(blow)
        _, err = running.communicate(timeout=60)
    assert running.returncode == (130 if blow == signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in err
    server.plan = []
    have = part.stat().st_size
    assert have > 100_000
    quiet = os.environ | {"TQDM_DISABLE": "1"}
    done = subprocess.run([*command, *words], capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path / NAME}\n"
    assert "licence CC BY-SA 4.0" in done.stderr
    assert "%" not in done.stderr
    assert (server.ranges[0], server.ranges[-1]) == (None, f"bytes={have}-")
    assert (tmp_path / NAME).read_bytes() == server.content


# ------------------------------------------------------------- no hash that others state


@pytest.fixture
def popqa(local, server):
    server.content = (OFFICIAL / "popQA.tsv").read_bytes()
    local({"popQA.tsv": {}}, {"popqa": {"popQA.tsv": "popQA.tsv"}})
    return server


def test_a_file_without_a_known_hash(popqa, tmp_path, caplog):
    caplog.set_level("INFO")
    [path] = fetch("popqa", tmp_path)
    said = f"{path}: SHA-256 {digest(popqa.content)}; nobody has stated what it should be"
    assert said in caplog.text
    assert data.load("popqa", data_dir=tmp_path).questions
    assert fetch("popqa", tmp_path) == [path]
    assert f"already here: {said}" in caplog.text
    assert len(popqa.asked) == 1


def test_a_file_that_was_put_there_by_hand_is_kept(popqa, tmp_path, caplog):
    caplog.set_level("INFO")
    (tmp_path / "popQA.tsv").write_bytes(b"by hand")
    fetch("popqa", tmp_path)
    assert popqa.asked == []
    assert "already here" in caplog.text
    assert digest(b"by hand") in caplog.text
    assert (tmp_path / "popQA.tsv").read_bytes() == b"by hand"


def test_the_projects_own_file_goes_first_and_that_is_said(popqa, tmp_path, caplog):
    caplog.set_level("INFO")
    (tmp_path / "popqa.jsonl.gz").write_bytes(b"")
    fetch("popqa", tmp_path)
    assert "popqa.jsonl.gz is there as well, and is what `load` takes by name" in caplog.text


# ----------------------------------------------------------------------------- archives


def zip_of(*names, folder="", junk=True):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in names:
            archive.writestr(folder + name, (OFFICIAL / name).read_bytes())
        if junk:
            archive.writestr("__MACOSX/._x", b"")
    return made.getvalue()


def tgz_of(source, name):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        archive.add(source, name)
    return made.getvalue()


def test_a_zip_with_two_members(server, tmp_path, capsys):
    names = ("strategyqa_train.json", "strategyqa_train_paragraphs.json")
    server.content = zip_of(*names)
    words = ("--data", tmp_path, "--url", server.url, "--sha256", digest(server.content))
    assert run("fetch", "strategyqa", *words) == 0
    assert capsys.readouterr().out == "".join(f"{tmp_path / name}\n" for name in names)
    assert data.load("strategyqa", data_dir=tmp_path).questions
    assert (tmp_path / "downloads" / "strategyqa_dataset.zip").is_file()


def test_members_that_are_there_are_kept_and_the_rest_unpacked(server, tmp_path):
    names = ("strategyqa_train.json", "strategyqa_train_paragraphs.json")
    server.content = zip_of(*names)
    order = {"url": server.url, "sha256": digest(server.content)}
    first, second = fetch("strategyqa", tmp_path, **order)
    second.unlink()
    inode = first.stat().st_ino
    fetch("strategyqa", tmp_path, **order)
    assert len(server.asked) == 1  # the archive was still there
    assert first.stat().st_ino == inode
    assert second.read_bytes() == (OFFICIAL / names[1]).read_bytes()
    second.unlink()
    place = tmp_path / "downloads" / "strategyqa_dataset.zip"
    place.write_bytes(server.content + b" ")
    with pytest.raises(FetchError, match=r"strategyqa_dataset\.zip is there but is another file"):
        fetch("strategyqa", tmp_path, **order)


def test_an_archive_that_is_no_longer_needed_may_go(server, tmp_path):
    server.content = zip_of("dev_light.json", folder="release/")
    order = {"url": server.url, "sha256": digest(server.content)}
    [path] = fetch("ambignq", tmp_path, **order)
    (tmp_path / "downloads" / "ambignq_light.zip").unlink()
    assert fetch("ambignq", tmp_path, **order) == [path]
    assert len(server.asked) == 1
    assert data.load("ambignq", data_dir=tmp_path).questions


def test_two_archives_from_a_mirror(local, server, tmp_path):
    files = {"iirc_train_dev.tgz": "dev.json", "context_articles.tar.gz": "context_articles.json"}
    release = {n: {member: f"iirc/{member}"} for n, member in files.items()}
    local({name: {"url": "http://127.0.0.1:9/gone"} for name in files}, {"iirc": release})
    for name, member in files.items():
        content = tgz_of(OFFICIAL / "iirc" / member, f"iirc_train_dev/{member}")
        server.files[f"/mirror/{name}"] = content
    mirror = server.url.replace("data.json", "mirror/")
    assert [p.name for p in fetch("iirc", tmp_path, url=mirror)] == list(files.values())
    assert data.load("iirc", data_dir=tmp_path).questions


def test_an_archive_that_was_got_by_hand(local, server, tmp_path, caplog):
    """What no program may download is checked and unpacked all the same."""
    content = zip_of("musique_ans_v1.0_dev.jsonl", folder="data/")
    local(
        {"m.zip": {"url": None, "by_hand": "ask for it", "sha256": digest(content)}},
        {"musique": {"m.zip": {"musique_ans_v1.0_dev.jsonl": "musique_ans_v1.0_dev.jsonl"}}},
    )
    place = tmp_path / "downloads" / "m.zip"
    with pytest.raises(FetchError, match="by hand: ask for it; put it at") as caught:
        fetch("musique", tmp_path)
    assert str(place) in str(caught.value)
    place.parent.mkdir()
    place.write_bytes(content[:-5])
    with pytest.raises(FetchError, match=f"{digest(content)} was expected"):
        fetch("musique", tmp_path)
    place.write_bytes(content)
    fetch("musique", tmp_path)
    assert data.load("musique", data_dir=tmp_path).questions
    assert server.asked == []


def test_an_archive_s_own_paths_lead_nowhere(local, server, tmp_path):
    local({"a.zip": {}}, {"ambignq": {"a.zip": {"dev_light.json": "ambignq/dev_light.json"}}})
    server.content = zip_of("dev_light.json", folder="../../")
    fetch("ambignq", tmp_path / "data")
    kept = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert kept == ["data/ambignq/dev_light.json", "data/downloads/a.zip"]


# --------------------------------------------------------------------------- sources.yaml


def test_every_release_ends_where_the_official_reader_looks():
    for name, release in sources().releases.items():
        official = {o.file: o.format for o in registry()[name].official}
        targets = [target for part in release.parts for target in part.targets]
        assert official.keys() & set(targets), name
        assert all(official[t] in FORMATS for t in targets if t in official)
    assert {s.name for s in registry().values() if s.official} == sources().releases.keys()
    assert sources().ours.keys() <= registry().keys()


def test_every_set_of_the_project_says_what_it_was_made_from():
    assert registry().keys() - sources().ours.keys() == {"nq30"}
    assert all(" @ " in line for lines in sources().ours.values() for line in lines)


GOOD = {
    "files": {"a.json": {"url": "https://a.example/a.json", "bytes": 5, "sha256": "0" * 64}},
    "releases": {"x": {"page": "https://a.example/", "take": {"a.json": "x/a.json"}}},
    "ours": {"x": ["a/b @ 0123"]},
}


def changed(path, value):
    made = json.loads(json.dumps(GOOD))
    *folders, last = path.split("/")
    inner = made
    for folder in folders:
        inner = inner[folder]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return made


def test_the_good_one():
    made = parse(json.dumps(GOOD))
    assert made.releases["x"].parts[0].targets == ("x/a.json",)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("fils", {}, "fils"),
        ("ours", None, "ours"),
        ("files/a.json/sha", "0", "files.`a.json`.sha"),
        ("files/a.json/sha256", "0" * 63, "files.`a.json`.sha256"),
        ("files/a.json/sha256", 5, "files.`a.json`.sha256"),
        ("files/a.json/bytes", "5", "files.`a.json`.bytes"),
        ("files/a.json/bytes", True, "files.`a.json`.bytes"),
        ("files/a.json/bytes", 0, "greater than or equal to 1"),
        ("files/a.json/url", "file:///a.json", "files.`a.json`.url"),
        ("files/a.json/url", None, "give either url or by_hand"),
        ("files/a.json/by_hand", "ask", "give either url or by_hand"),
        ("files/b", 3, "files.b"),
        ("files/..", {"url": "https://a.example/"}, "files.`..`"),
        ("releases/x/pag", "https://a.example/", "releases.x.pag"),
        ("releases/x/page", None, "releases.x.page"),
        ("releases/x/page", "", "releases.x.page"),
        ("releases/x/take", {"b.json": "b.json"}, "no file 'b.json', did you mean 'a.json'?"),
        ("releases/x/take", {"a.json": "../a.json"}, "releases.x.take"),
        ("releases/x/take", {"a.json": "/a.json"}, "releases.x.take"),
        ("releases/x/take", {"a.json": "x/../a.json"}, "releases.x.take"),
        ("releases/x/take", {"a.json": "x\\a.json"}, "releases.x.take"),
        ("releases/x/take", {"a.json": {"b": "b"}}, "members are taken of archives"),
        ("releases/x/take", {"a.json": 3}, "releases.x.take"),
        ("ours/x", "a/b", "ours.x"),
    ],
)
def test_sources_are_read_strictly(path, value, said):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse(json.dumps(changed(path, value)))
    assert said in str(caught.value)


def test_the_home_folder_may_be_written_short(monkeypatch, tmp_path, server, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_REPRO_DATA", "~/d")
    words = ("--url", server.url, "--sha256", digest(HOTPOT))
    assert run("fetch", "hotpotqa", *words) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'd' / NAME}\n"
    assert data.load("hotpotqa").questions
    assert cards.card("hotpotqa")["here"] == str(tmp_path / "d" / NAME)
    assert run("fetch", "hotpotqa", "--data", "~/e", *words) == 0
    assert (tmp_path / "e" / NAME).is_file()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("Red apples.")
    assert data.label("folder:~/texts") == data.label(f"folder:{tmp_path}/texts")
    assert not (tmp_path / "~").exists()
    monkeypatch.setenv("RAG_REPRO_DATA", "~no-such-user/d")
    assert run("fetch", "hotpotqa") == 2
    assert "no such home folder" in capsys.readouterr().err
