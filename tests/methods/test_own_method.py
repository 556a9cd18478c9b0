"""Methods from outside the package: registered, refused, told apart by their source."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import dataclass

import pytest

from rag_repro import method
from rag_repro.methods import base
from rag_repro.methods.stages import read, retrieve
from rag_repro.schema import Answer
from rag_repro.study.conditions import Condition

TEXT = """
from rag_repro import method
from rag_repro.methods.stages import read, retrieve

@method("plain_copy"{more})
def plain_copy(question, settings):
    hits = yield from retrieve(question, settings)
    return (yield from read(question, {hits}, settings))
"""


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch):
    monkeypatch.setattr(base, "_OWN", {})


def module(tmp_path, hits="hits", more="", name="mine"):
    """A module with the method, loaded anew as a notebook's cell would be run again."""
    path = tmp_path / f"{name}_{hits}_{len(more)}.py".replace("[::-1]", "_back")
    path.write_text(TEXT.format(hits=hits, more=more))
    spec = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_a_registered_method_is_known_by_its_name(tmp_path):
    made = module(tmp_path)
    spec = base.get("plain_copy")
    assert spec.run is made.plain_copy
    assert (spec.version, spec.settings) == (1, base.Settings)
    with pytest.raises(ValueError, match="no setting 'kk', did you mean 'k'"):
        spec.configure({"kk": 3})
    with pytest.raises(ValueError, match="no method 'plain_cpy', did you mean 'plain_copy'"):
        base.get("plain_cpy")
    assert "plain_copy" not in base.METHODS


def test_an_edited_method_has_records_of_its_own(tmp_path):
    def identity():
        return Condition("world-B@1000", "plain_copy").identity

    module(tmp_path)
    first = identity()
    assert first["code"]
    module(tmp_path)
    assert identity() == first
    module(tmp_path, hits="hits[::-1]")
    assert identity()["code"] != first["code"]
    module(tmp_path, more=", version=2")
    assert identity()["version"] == 2


def test_functions_of_one_source_that_hold_other_values_have_records_of_their_own():
    def made(word):
        @method("holding")
        def holding(question, settings):
            hits = yield from retrieve(question, settings)
            return Answer(text=word, prediction=word, hits=tuple(hits))

        return Condition("world-B@1000", "holding").identity["code"]

    assert made("Rome") == made("Rome") != made("Oslo")


def test_methods_of_the_package_are_known_as_before():
    """Their identities, and so the committed records' names, have no code in them."""
    assert Condition("world-B@1000", "single_step", {"k": 3}, "bm25").hash == "60c162e309aa"


def test_settings_of_ones_own(tmp_path):
    @dataclass(frozen=True)
    class Mine(base.Settings):
        rounds: int = 2

    @method("with_rounds", settings=Mine)
    def with_rounds(question, settings):
        return (yield from retrieve(question, settings))

    assert base.get("with_rounds").configure({"rounds": 3}).rounds == 3
    with pytest.raises(ValueError, match="did you mean 'rounds'"):
        base.get("with_rounds").configure({"round": 3})


def test_a_name_that_is_taken_is_refused(tmp_path):
    def another(question, settings):
        return (yield from read(question, (), settings))

    with pytest.raises(ValueError, match="there is a method 'single_step' already"):
        method("single_step")(another)
    module(tmp_path)
    with pytest.raises(ValueError, match="there is a method 'plain_copy' already"):
        method("plain_copy")(another)
    with pytest.raises(ValueError, match="there is a method 'plain_copy' already"):
        module(tmp_path, name="another_module")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": "Ask twice"}, "cannot name a method"),
        ({"name": "m", "version": 0}, "version 0 is not"),
        ({"name": "m", "version": True}, "version True is not"),
        ({"name": "m", "settings": dict}, "frozen dataclass over Settings"),
        # Not a dataclass itself: its `boost` would be in no identity.
        (
            {"name": "m", "settings": type("Louder", (base.Settings,), {"boost": 1})},
            "frozen dataclass over Settings",
        ),
    ],
)
def test_what_cannot_be_registered(given, told):
    with pytest.raises(ValueError, match=told):
        method(**given)


def test_a_function_that_yields_nothing_is_refused():
    with pytest.raises(ValueError, match="must yield its calls"):
        method("silent")(lambda question, settings: None)


def test_a_function_without_source_is_refused():
    code = TEXT.format(hits="hits", more="")
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True)
    assert "its source cannot be read; define it in a file or a notebook" in done.stderr
