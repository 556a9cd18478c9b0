"""Scripts and their pairs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest

from rag_repro.book_folders import BookFolders, PlaceError, here
from rag_repro.publish.notebook_pairs import (
    PairError,
    check_pairs,
    main,
    pair,
    read_source,
    source_hash,
)
from rag_repro.publish.parameters import override
from tests.publish.conftest import HEADER

ROOT = Path(__file__).resolve().parents[2]


def test_the_books_own_pairs_are_in_step():
    assert check_pairs(BookFolders(ROOT)) == []


def test_no_cell_of_a_chapter_begins_with_a_mistyped_mark():
    """Jupytext takes `# % [markdown]` for a comment: the cell above would swallow what follows."""
    for source in sorted((ROOT / "notebooks").glob("*.py")):
        marks = re.findall(r"^# *%.*$", source.read_text(encoding="utf-8"), re.MULTILINE)
        wrong = [mark for mark in marks if not re.match(r"# %%( |$)", mark)]
        assert not wrong, source.name


def test_a_pair_is_the_same_each_time_and_has_no_outputs(places):
    target = places.notebooks / "05_small.ipynb"
    before = target.read_bytes()
    target.unlink()
    assert pair(places) == [target]
    assert target.read_bytes() == before
    assert pair(places) == []
    book = nbformat.read(target, as_version=4)
    nbformat.validate(book)
    assert all(not c.outputs and c.execution_count is None for c in book.cells if "outputs" in c)
    assert len({cell.id for cell in book.cells}) == len(book.cells)


def test_equal_cells_get_different_ids(places):
    source = places.source("05_small")
    source.write_text(source.read_text() + "\n# %%\n1\n\n# %%\n1\n")
    ids = [cell.id for cell in read_source(source).cells]
    assert len(set(ids)) == len(ids)


def test_a_pair_that_was_edited_or_executed_alone_is_found(places):
    target = places.notebooks / "05_small.ipynb"
    target.write_text(target.read_text().replace("print(run.tier", "print(run.seed"))
    assert check_pairs(places) == ["05_small.ipynb is not the pair of 05_small.py; run `make pair`"]
    with pytest.raises(SystemExit, match="is not the pair"):
        main(["--check"])
    main([])
    assert check_pairs(places) == []


def test_missing_and_orphaned_pairs_are_found(places):
    target = places.notebooks / "05_small.ipynb"
    target.rename(places.notebooks / "06_else.ipynb")
    assert check_pairs(places) == [
        "05_small.py has no pair; run `make pair`",
        "06_else.ipynb has no script 06_else.py beside it",
    ]


def test_a_chapter_must_guard_its_parameters_under_its_own_name(places):
    source = places.source("05_small")
    source.write_text(source.read_text().replace('chapter("05_small"', 'chapter("06_else"'))
    pair(places)
    assert check_pairs(places) == ['05_small.py never calls chapter("05_small", globals())']


# What editors and their kernels write into a script's header and cells of their own accord.
SAVED = {
    "kernel of Lab": ("display_name: Python 3", "display_name: Python 3 (ipykernel)"),
    "kernel of conda": ("name: python3", "name: conda-env-rag-py"),
    "version of jupytext": (
        "format_version: '1.3'",
        "format_version: '1.3'\n#       jupytext_version: 1.17.3",
    ),
    "header of VS Code": (
        "#   kernelspec:",
        "#   language_info:\n#     name: python\n#     version: 3.12.1\n"
        "#   vscode:\n#     interpreter:\n#       hash: 31f2\n#   kernelspec:",
    ),
    "no header": (HEADER + "\n", ""),
    "no language": ("#     language: python\n", ""),
    "no formats": ("#     formats: ipynb,py:percent\n", ""),
    "options of a cell": ('# %% tags=["parameters"]', '# %% id="a1" tags=["parameters"] vscode={}'),
    "last newline": ("`rag-repro chapter 05_small`\n", "`rag-repro chapter 05_small`"),
    "line ends of Windows": ("\n", "\r\n"),
}


@pytest.mark.parametrize("what", SAVED)
def test_what_an_editor_writes_into_a_script_is_no_content_and_is_mended(places, what):
    source = places.source("05_small")
    text, before = source.read_text(), source_hash(source)
    old, new = SAVED[what]
    assert old in text
    source.write_text(text.replace(old, new), newline="")
    assert check_pairs(places) == []
    assert source_hash(source) == before
    assert override("05_small", {"n_questions": 5}, places)
    assert pair(places) == [source]
    assert source.read_bytes() == text.encode()


def saved_by_an_editor(path):
    """Kernel, language, ids, counts, format: as JupyterLab or VS Code would leave them."""
    book = json.loads(path.read_text())
    book["metadata"]["kernelspec"]["display_name"] = "Python 3 (ipykernel)"
    book["metadata"]["language_info"] = {"name": "python", "version": "3.12.1"}
    book["metadata"] |= {"vscode": {"interpreter": {}}, "widgets": {}}
    for i, cell in enumerate(book["cells"]):
        cell["id"] = f"id-{i}"
        cell["metadata"] |= {"vscode": {"languageId": "python"}, "collapsed": True}
    path.write_text(json.dumps(book, indent=4))
    return book


def test_what_an_editor_writes_into_a_notebook_is_no_content_and_is_mended(places, caplog):
    target = places.notebooks / "05_small.ipynb"
    text = target.read_text()
    book = saved_by_an_editor(target)
    assert check_pairs(places) == []
    code = next(cell for cell in book["cells"] if cell["cell_type"] == "code")
    code["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "1"}]
    target.write_text(json.dumps(book))
    told = "05_small.ipynb holds outputs; run `make pair`, which leaves them out"
    assert check_pairs(places) == [told]
    with caplog.at_level("INFO"):
        assert pair(places) == [target]
    assert caplog.messages == ["wrote 05_small.ipynb without the outputs that it held"]
    assert target.read_text() == text


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cells": 3, "nbformat": 4}', "\x00"])
def test_a_notebook_that_is_none_is_told_and_mended(places, text):
    target = places.notebooks / "05_small.ipynb"
    target.write_text(text)
    assert check_pairs(places) == ["05_small.ipynb is not the pair of 05_small.py; run `make pair`"]
    assert pair(places) == [target]
    assert check_pairs(places) == []


def test_a_script_of_another_language_is_refused(places):
    source = places.source("05_small")
    source.write_text(source.read_text().replace("language: python", "language: R"))
    with pytest.raises(PairError, match="its kernel's language is R; choose a Python kernel"):
        read_source(source)
    assert len(check_pairs(places)) == 1


def test_the_source_hash_follows_text_and_tags_but_not_the_header(places):
    source = places.source("05_small")
    before, text = source_hash(source), source.read_text()
    source.write_text(text.replace("format_version: '1.3'", "format_version: '1.4'"))
    assert source_hash(source) == before
    source.write_text(text.replace("# Small", "# Smaller"))
    assert source_hash(source) != before
    source.write_text(text.replace('tags=["rerun"]', 'tags=["result"]'))
    assert source_hash(source) != before


def test_a_chapter_is_found_by_a_hint(places):
    with pytest.raises(PlaceError, match="did you mean '05_small'"):
        places.source("small")
    with pytest.raises(PlaceError, match="did you mean '05_small'"):
        places.source("05_smal")
    for name in ("", "../notebooks/05_small", "./05_small", "05_small\n"):
        with pytest.raises(PlaceError, match="no chapter"):
            places.source(name)


def test_the_book_is_found_from_inside_its_folders(places):
    assert here(places.chapters).root == places.root.resolve()
    assert here(Path("/")).root == ROOT
