"""Each fault alone keeps an executed chapter from being published."""

from __future__ import annotations

import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from rag_repro.publish import build, status
from rag_repro.publish.check import BuildError, check, check_all
from rag_repro.publish.notebook_pairs import source_hash, to_text


def sound(places):
    """What an executed copy of the small chapter looks like, by hand."""
    cells = [
        new_markdown_cell("# Small"),
        new_code_cell("1 + 1", execution_count=1, outputs=[result("2", 1)]),
        new_code_cell("print('https://example.org/home/page')", execution_count=2),
        new_markdown_cell("again", metadata={"tags": ["rerun"]}),
    ]
    told = {
        "chapter": "05_small",
        "source": source_hash(places.source("05_small")),
        "parameters": {},
    }
    return new_notebook(cells=cells, metadata={"rag_repro": told})


def result(text, count, mime="text/plain"):
    return new_output("execute_result", data={mime: text}, execution_count=count)


def stream(name, text):
    return new_output("stream", name=name, text=text)


def faults_of(book, places):
    path = places.executed("05_small")
    path.write_text(to_text(book))
    return check(path, places)


def test_a_sound_chapter_has_no_fault(places):
    assert faults_of(sound(places), places) == []
    check_all(places)


FAULTY_OUTPUTS = {
    "a cell raised ZeroDivisionError": new_output("error", ename="ZeroDivisionError", evalue="x"),
    "debris on stderr: '10%'": stream("stderr", "\r10%"),
    "shows a widget": result("{}", 1, "application/vnd.jupyter.widget-view+json"),
    "'/home/ann' would differ": stream("stdout", "saved to /home/ann/book"),
    "'/tmp/x1' would differ": result("<td>/tmp/x1</td>", 1, "text/html"),
    "'C:.+Users.+' would differ": stream("stdout", "C:\\Users\\ann"),
    "'at 0x7f51faf21d50' would differ": result("<object at 0x7f51faf21d50>", 1),
}


@pytest.mark.parametrize("complaint", FAULTY_OUTPUTS)
def test_an_output_that_must_not_be_published(places, complaint):
    book = sound(places)
    book.cells[1].outputs = [FAULTY_OUTPUTS[complaint]]
    (fault,) = faults_of(book, places)
    assert re.search(complaint, fault)


def test_an_absolute_path_in_the_source_of_a_cell(places):
    book = sound(places)
    book.cells[2].source = "open('/work/data.json')"
    assert len(faults_of(book, places)) == 1


def test_words_and_web_addresses_are_no_paths(places):
    book = sound(places)
    text = "and/or, https://x.org/tmp/y, ../home/x, </home>, 1/2, [/INST], a /private/ matter"
    book.cells[1].outputs = [stream("stdout", text)]
    assert faults_of(book, places) == []


def test_a_source_that_changed_afterwards(places):
    book = sound(places)
    source = places.source("05_small")
    source.write_text(source.read_text().replace("# Small", "# Smaller"))
    assert faults_of(book, places) == [
        "05_small: is stale: its source changed after it was executed"
    ]


def test_a_notebook_that_was_executed_by_other_means(places):
    book = sound(places)
    del book.metadata["rag_repro"]
    assert faults_of(book, places) == ["05_small: was not executed by `rag-repro`"]


@pytest.mark.parametrize("counts", [(1, None), (2, 1), (1, 3), (1, 1), (2, 3)])
def test_cells_that_were_not_executed_once_each_in_order(places, counts):
    book = sound(places)
    book.cells[1].execution_count, book.cells[2].execution_count = counts
    assert len(faults_of(book, places)) == 1


def test_a_section_that_is_missing(places):
    book = sound(places)
    book.cells[3].metadata["tags"] = []
    assert faults_of(book, places) == ["05_small: no cell is tagged `rerun`"]


def test_a_chapter_about_a_paper_has_all_its_sections(places):
    book = sound(places)
    places.source("05_small").rename(places.notebooks / "12_small.py")
    book.metadata["rag_repro"]["chapter"] = "12_small"
    missing = [f.split("`")[1] for f in faults_of(book, places)]
    assert missing == ["claims", "symbols", "equation", "worked", "result", "verdict", "deviations"]


def test_a_page_too_large_to_load(places):
    book = sound(places)
    book.cells[1].outputs = [result("x" * 5_000_000, 1)]
    assert faults_of(book, places) == ["05_small: is larger than 4 MB"]


def test_missing_copies_and_strangers_are_listed_together(places):
    (places.chapters / "06_else.ipynb").write_text(to_text(sound(places)))
    with pytest.raises(BuildError) as raised:
        check_all(places)
    assert "05_small: has no executed copy" in str(raised.value)
    assert "06_else: has no source" in str(raised.value)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"cells": 3}', "\0" * 50, None])
def test_a_copy_that_was_cut_off_is_named_and_executed_again(places, content):
    assert faults_of(sound(places), places) == []
    path = places.executed("05_small")
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2] if content is None else content)
    [fault] = check(path, places)
    assert fault.endswith("05_small.ipynb is no whole notebook; execute the chapter again")
    assert build.stale("05_small", places) == ["not executed by rag-repro, or cut off"]
    assert status.executed(places) == {}
