"""What commands keep: the same text until a file that counts changes."""

from __future__ import annotations

import argparse
import os

import pytest

from rag_repro.commands import folders
from rag_repro.lm import hub
from rag_repro.study import papers

COUNTS = (
    "results/records/file",
    "results/times/file",
    "results/registered/file",
    "results/registration.yaml",
    "papers/file",
    "artifacts/file",
)


@pytest.fixture
def ground(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(papers.ENVIRONMENT, str(tmp_path / "papers"))
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    for name in COUNTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    return tmp_path


def asked(ground, **given):
    calls = []

    def make():
        calls.append(1)
        return "made"

    arguments = argparse.Namespace(run=make, **given)
    assert folders.kept(arguments, ground / "results/records", make) == "made"
    return len(calls)


def test_a_text_is_made_once_until_something_changes(ground):
    assert [asked(ground, tier=None), asked(ground, tier=None)] == [1, 0]
    assert asked(ground, tier="public") == 1
    for name in COUNTS:
        path = ground / name
        stat = path.stat()
        path.write_text("2")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
        assert [asked(ground, tier=None), asked(ground, tier=None)] == [1, 0]
    (ground / "results/records/new").write_text("")
    assert asked(ground, tier=None) == 1


def test_old_texts_go_and_a_cache_that_cannot_be_written_is_done_without(ground, monkeypatch):
    monkeypatch.setattr(folders, "KEPT", 2)
    for tier in "abcd":
        assert asked(ground, tier=tier) == 1
    assert len(list((ground / "cache" / "shown").iterdir())) == 2
    monkeypatch.setenv("RAG_REPRO_CACHE", str(ground / "results/records/file"))
    assert [asked(ground, tier="a"), asked(ground, tier="a")] == [1, 1]
