"""Scripts and their pairs."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from rag_repro.publish.pairs import PairError, check_pairs, main, pair, read_source, source_hash
from rag_repro.publish.places import PlaceError, Places, here

ROOT = Path(__file__).resolve().parents[2]


def test_the_books_own_pairs_are_in_step():
    assert check_pairs(Places(ROOT)) == []


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


@pytest.mark.parametrize("line", ["#     language: python\n", "#     formats: ipynb,py:percent\n"])
def test_a_header_without_what_papermill_and_jupytext_need_is_refused(places, line):
    source = places.source("05_small")
    source.write_text(source.read_text().replace(line, ""))
    with pytest.raises(PairError, match="the header's"):
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


def test_the_book_is_found_from_inside_its_folders(places):
    assert here(places.chapters).root == places.root.resolve()
    assert here(Path("/")).root == ROOT
