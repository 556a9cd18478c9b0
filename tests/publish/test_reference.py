"""The reference: its list of modules, and docstrings of any kind as text that breaks nothing."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from docutils.core import publish_doctree
from docutils.nodes import system_message
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag_repro.book_folders import BookFolders
from rag_repro.publish import extension
from rag_repro.publish.reference import ROOMS, to_rst
from rag_repro.publish.reference import pages as reference_pages

ROOT = Path(__file__).resolve().parents[2]


def tree(lines):
    quiet = {"report_level": 5, "halt_level": 5, "smart_quotes": False}
    return publish_doctree("\n".join(to_rst(lines)), settings_overrides=quiet)


def test_every_room_has_a_page_with_its_public_modules():
    made = reference_pages(BookFolders(ROOT))
    assert set(made) == {f"reference/{name}.md" for name in (*ROOMS, "index")}
    assert ".. automodule:: rag_repro.retrieval.bm25\n" in made["reference/retrieval.md"]
    assert ".. automodule:: rag_repro\n" in made["reference/library.md"]
    for room in ROOMS:
        assert "automodule" in made[f"reference/{room}.md"], room
        assert f"{{doc}}`{room}`" in made["reference/index.md"]


def test_the_modules_of_a_page_can_be_imported():
    made = reference_pages(BookFolders(ROOT))["reference/evaluation.md"]
    names = [line.split()[-1] for line in made.splitlines() if "automodule" in line]
    assert len(names) > 5
    assert all(importlib.import_module(name).__doc__ for name in names)


def test_the_committed_pages_are_those_of_the_code():
    for name, text in reference_pages(BookFolders(ROOT)).items():
        told = (ROOT / "book" / name).read_text(encoding="utf-8")
        assert told == text, f"book/{name} is old: run `make book`"


def test_private_and_undocumented_modules_are_left_out(tmp_path):
    for name in ("data/_inner", "data/bare", "data/told", "data/_cut/told"):
        path = tmp_path / f"rag_repro/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n" if "bare" in name else '"""Words."""\n')
    made = reference_pages(BookFolders(tmp_path))["reference/data.md"]
    assert "automodule:: rag_repro.data.told\n" in made
    assert made.count("automodule") == 1


def test_a_docstring_keeps_its_paragraphs_code_and_lists():
    shown = tree(
        ["First `a_b`s and", "*more* of it_.", "", "    x = 1", "", "- one", "  goes on", "- 2"]
    )
    kinds = [child.tagname for child in shown.children]
    assert kinds == ["paragraph", "literal_block", "bullet_list"]
    assert shown[0].astext() == "First a_bs and *more* of it_."
    assert [c.tagname for c in shown[0].children] == ["#text", "literal", "#text"]
    assert shown[1].astext() == "x = 1"
    assert [item.astext() for item in shown[2]] == ["one goes on", "2"]


def test_a_table_in_a_docstring_stands_as_it_is():
    assert tree(["| a | b |", "| - | - |"])[0].tagname == "literal_block"


def test_no_docstring_is_nothing():
    assert "".join(to_rst([])) == ""
    assert to_rst([" "]) == []


HOSTILE = (
    "*a",
    "**b",
    "x_",
    "|s|",
    "``c",
    ":role:`x`",
    ".. raw:: html",
    ">>> 1",
    "1. x",
    "====",
    "=",
    "`a",
    "\\",
    "::",
    "so::",
)


@example([":1:", "===="])  # looks like the name of a field
@example([":role:`x``` .. raw:: html``"])  # so it does with code after it
@example(["- ", "\\"])  # alone in a line it looks like the rule over a title
@settings(deadline=None)
@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text("ab `*_|<>:.-1=\\#")), max_size=6))
def test_no_docstring_breaks_the_build(lines):
    shown = tree(lines)
    assert not list(shown.findall(system_message)), to_rst(lines)


class Known:
    def __init__(self, page):
        self.docname, self.node_id = page, "x"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rag_repro.a.f", "rag_repro.a.f"),
        ("rag_repro.a.nothing", None),
        ("f(x, y)", "rag_repro.a.f"),
        ("twice(x)", None),  # two modules have it
        ("f", None),  # a word, not a name
        ("T.g()", "rag_repro.a.T.g"),
    ],
)
def test_code_leads_to_the_one_object_that_it_names(text, name):
    names = ("rag_repro.a.f", "rag_repro.a.T.g", "rag_repro.a.twice", "rag_repro.b.twice")
    assert extension.target(text, {n: Known("reference/a") for n in names}) == name
