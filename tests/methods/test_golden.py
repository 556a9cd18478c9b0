"""A method whose results change has a new version, or this fails."""

from __future__ import annotations

import dataclasses
import json

import pytest

from rag_repro.methods import base, reading
from rag_repro.methods.drrag import concatenation
from tests.methods import golden


@pytest.mark.parametrize("name", base.METHODS)
def test_what_a_method_does_changes_only_with_its_version(name):
    assert golden.problem(base.get(name)) is None


def test_every_stored_trace_is_of_a_method():
    assert {file.stem for file in golden.FOLDER.glob("*.json")} == set(base.METHODS)


def test_the_traces_hold_calls_of_every_kind_that_these_methods_make():
    cases = golden.stored("qdc")["cases"]
    made = {key for case in cases for wish in case["calls"] for key in _keys(wish)}
    assert {"retrieve", "generate"} <= made
    assert all(case["error"] is None for case in cases)
    assert {case["prediction"] for case in cases} > {None}


def _keys(wish):
    return {key for call in (wish if isinstance(wish, list) else [wish]) for key in call}


def change_turns(monkeypatch):
    """Second stage first: hits in another order."""
    real = concatenation.two_stages

    def turned(*given):
        return tuple(reversed((yield from real(*given))))

    monkeypatch.setattr(concatenation, "two_stages", turned)


def change_query(monkeypatch):
    monkeypatch.setattr(concatenation, "concat", lambda query, p: f"{query}  {p.text}")


def change_prompt(monkeypatch):
    short = reading.PROMPTS["short"]
    longer = dataclasses.replace(short, exemplars=short.exemplars + " ")
    monkeypatch.setattr("rag_repro.methods.stages.PROMPTS", {**reading.PROMPTS, "short": longer})


def change_extraction(monkeypatch):
    monkeypatch.setattr("rag_repro.methods.stages.extract", lambda text, template: text)


@pytest.mark.parametrize("change", [change_turns, change_query, change_prompt, change_extraction])
def test_a_change_without_a_new_version_is_told_with_the_remedy(monkeypatch, change):
    change(monkeypatch)
    told = golden.problem(base.get("qdc"))
    assert "qdc does something else than at version 1" in told
    assert "raise the version in its `builtin` line to 2" in told
    assert "python -m tests.methods.golden" in told


def test_a_new_version_asks_for_a_new_trace(monkeypatch):
    raised = dataclasses.replace(base.get("qdc"), version=2)
    told = golden.problem(raised)
    assert "qdc is at version 2, its stored trace at 1: run `python -m tests" in told


def test_settings_that_keep_their_version_keep_their_answers(monkeypatch):
    change_turns(monkeypatch)
    raised = dataclasses.replace(base.get("qdc"), version=2, since=lambda settings: 1)
    assert "its `since` must say" in golden.problem(raised)
    changed = dataclasses.replace(raised, since=lambda settings: 2)
    assert "qdc is at version 2, its stored trace at 1" in golden.problem(changed)


def test_renewing_refuses_a_method_that_kept_its_version(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(golden, "FOLDER", tmp_path / "golden")
    assert golden.renew() == 0
    before = {f.name: f.read_bytes() for f in golden.FOLDER.iterdir()}
    assert set(before) == {f"{name}.json" for name in base.METHODS}
    change_turns(monkeypatch)
    assert golden.renew() == 1
    assert "qdc does something else" in capsys.readouterr().err
    assert {f.name: f.read_bytes() for f in golden.FOLDER.iterdir()} == before

    raised = dataclasses.replace(base.get("qdc"), version=2)
    real = base.get
    monkeypatch.setattr(base, "get", lambda name: raised if name == "qdc" else real(name))
    assert golden.renew() == 0
    assert json.loads((golden.FOLDER / "qdc.json").read_text())["version"] == 2
