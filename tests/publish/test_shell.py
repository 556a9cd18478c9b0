"""The book's own files: settings, contents, bibliography, citation, figures."""

from __future__ import annotations

import re
from pathlib import Path

import jupyter_book
import pytest
import yaml

from rag_repro.book_folders import BookFolders
from rag_repro.publish.status import citation

ROOT = Path(__file__).resolve().parents[2]
PLACES = BookFolders(ROOT)
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
KNOWN = yaml.safe_load(Path(jupyter_book.__file__).with_name("default_config.yml").read_text())
# Keys that jupyter-book reads although its list of defaults leaves them out.
ALSO = {"bibtex_bibfiles"}


def entries(node):
    """Every file named in a table of contents."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("file", "root"):
                yield value
            else:
                yield from entries(value)
    elif isinstance(node, list):
        for item in node:
            yield from entries(item)


def unknown(given, known, where=""):
    """Keys that jupyter-book would ignore without a word."""
    for key, value in given.items():
        if key not in known and where + key not in ALSO:
            yield where + key
        elif isinstance(value, dict) and isinstance(known.get(key), dict):
            yield from unknown(value, known[key], f"{where}{key}.")


def test_every_setting_is_one_that_jupyter_book_knows():
    assert list(unknown(CONFIG, KNOWN)) == []


def test_an_unknown_or_misplaced_setting_would_be_found():
    wrong = {"title": "x", "execute_notebooks": "off", "html": {"favicn": ""}}
    assert list(unknown(wrong, KNOWN)) == ["execute_notebooks", "html.favicn"]


def test_every_sphinx_setting_is_one_that_an_extension_knows(tmp_path):
    from jupyter_book.config import get_final_config
    from sphinx.application import Sphinx

    (tmp_path / "index.md").write_text("# x\n")
    final, _ = get_final_config(
        user_yaml=ROOT / "_config.yml",
        cli_config={"latex_individualpages": False},
        sourcedir=tmp_path,
        raise_on_invalid=True,
        use_external_toc=False,
    )
    out = str(tmp_path / "out")
    app = Sphinx(
        str(tmp_path), None, out, out, "html", confoverrides=final, status=None, warning=None
    )
    known = {*app.config.values, "extensions"}  # Sphinx takes this one apart
    assert [key for key in CONFIG["sphinx"]["config"] if key not in known] == []
    assert "nonsense" not in known


def test_building_never_executes_and_no_button_leads_nowhere():
    assert CONFIG["execute"]["execute_notebooks"] == "off"
    assert CONFIG["launch_buttons"]["thebe"] is False
    # One extension switches all buttons by `repository.url`; test_numbering.py builds both ways.
    assert "rag_repro.publish.extension" in CONFIG["sphinx"]["config"]["extensions"]
    assert CONFIG["sphinx"]["recursive_update"] is True  # else the address would be dropped
    assert not [k for k in CONFIG["html"] if k.startswith("use_") and "button" in k]


def test_the_contents_list_every_chapter_and_only_files_that_are_there():
    listed = list(entries(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))))
    chapters = [Path(e).name for e in listed if e.startswith("chapters/")]
    assert sorted(chapters) == PLACES.names()
    for entry in listed:
        if not entry.startswith("chapters/") and entry != "index":
            assert (PLACES.book / f"{entry}.md").is_file(), entry


def test_every_citation_has_its_entry_and_every_entry_its_year():
    bibliography = (PLACES.book / "references.bib").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{(\w+),", bibliography, flags=re.M)
    assert len(keys) == len(set(keys)) == len(re.findall(r"^  year\s+=", bibliography, flags=re.M))
    pages = [*PLACES.notebooks.glob("*.py"), *PLACES.book.glob("*.md")]
    cited = {
        key.strip()
        for page in pages
        for group in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", page.read_text(encoding="utf-8"))
        for key in group.split(",")
    }
    assert cited <= set(keys)
    assert cited


def test_the_citation_is_that_of_the_package():
    import rag_repro

    told = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert told["cff-version"] == "1.2.0"
    assert str(told["version"]) == rag_repro.__version__
    assert told["license"] == "MIT"
    assert told["title"] in citation(PLACES)
    assert len(told["references"]) == 4


@pytest.mark.parametrize("name", ["README.md", "book/glossary.md"])
def test_relative_links_lead_somewhere(name):
    page = ROOT / name
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
