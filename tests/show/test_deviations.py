"""The page of deviations: from the files what they tell, from the chapters their tables."""

from __future__ import annotations

import itertools
from dataclasses import replace

from rag_repro.publish import deviations
from rag_repro.study import papers
from rag_repro.study.papers import Exhibit
from tests.study import mini


def rows(text):
    """The first row of the exhibit, and those below it."""
    lines = text.splitlines()
    [first] = [i for i, line in enumerate(lines) if line.startswith("| mini.table1")]
    below = itertools.takewhile(lambda line: line.startswith("|  |"), lines[first + 1 :])
    return [lines[first], *below]


def test_rows_that_wait_and_questions_are_told_from_the_files(book):
    text = deviations.text({}, {})
    assert text.startswith("# Deviations\n")
    assert "### Mini" in text
    assert ":name: tab-deviations-mini" in text
    assert rows(text) == [
        "| mini.table1 | rows | Forward selection | not run\\: needs a classifier |",
        "|  | data sets | HotpotQA | HotpotQA, MuSiQue, world-B |",
        "|  | questions | not in its table | testbed all at hand; public all at hand |",
    ]
    assert "From the chapters" not in text


def test_rows_that_only_we_have_are_told(book, monkeypatch):
    monkeypatch.setattr(mini, "TABLE", mini.TABLE.replace("hotpotqa,3,sm,", "hotpotqa,3,old,"))
    mini.paper(book.root, "", mini.TABLE)
    papers.load.cache_clear()
    told = rows(deviations.text({}, {}))
    assert "| mini.table1 | rows | old; Forward selection | not run\\: needs a classifier |" in told
    assert "|  | rows | not in its table | Similarity |" in told


def test_readers_are_told_by_their_names(book, monkeypatch):
    hub = "hub:org/Reader-1B@0123456789abcdef0123456789abcdef01234567"
    [exhibit] = papers.load("mini").exhibits.values()
    [cell, *_] = exhibit.cells()
    read = replace(cell, condition=replace(cell.condition, reader=hub))
    monkeypatch.setattr(Exhibit, "cells", lambda self, tier=None: [read])
    told = deviations._of_exhibit(papers.load("mini"), exhibit)
    assert ["", "readers", "not in its table", "org/Reader-1B"] in told


def test_sizes_are_told_by_tier(book, monkeypatch):
    limited = mini.PAPER.replace("tier: public", "tier: public\n        n: 60")
    monkeypatch.setattr(mini, "PAPER", limited)
    mini.paper(book.root, "")
    papers.load.cache_clear()
    assert "testbed all at hand; public 60 |" in deviations.text({}, {})


def test_what_a_chapter_tells_is_repeated_under_its_title(book):
    text = deviations.text({"11_x": "| a |\n| - |\n| b |"}, {"11_x": "Recall"})
    assert "### Recall\n\n{doc}`To the chapter <chapters/11_x>`\n\n| a |\n| - |\n| b |\n" in text


def test_every_paper_of_the_book_has_its_table():
    text = deviations.text({}, {})
    for name in ("drrag", "erm4", "dragin", "r2ag"):
        assert f":name: tab-deviations-{name}\n" in text
