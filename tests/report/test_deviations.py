"""The page of deviations: from the files what they tell, from the chapters their tables."""

from __future__ import annotations

from rag_repro.report import deviations
from rag_repro.study import papers
from tests.study import mini


def rows(text):
    return [line for line in text.splitlines() if line.startswith("| mini.table1")]


def test_rows_that_wait_and_questions_are_told_from_the_files(book):
    text = deviations.text({}, {})
    assert text.startswith("# Deviations\n")
    assert "### Mini" in text
    assert ":name: tab-deviations-mini" in text
    assert rows(text) == [
        "| mini.table1 | rows | Forward selection | not run\\: needs a classifier |",
        "| mini.table1 | data sets | HotpotQA | HotpotQA, MuSiQue, world-B |",
        "| mini.table1 | questions |  | testbed all at hand; public all at hand |",
    ]
    assert "From the chapters" not in text


def test_rows_that_only_we_have_are_told(book, monkeypatch):
    monkeypatch.setattr(mini, "TABLE", mini.TABLE.replace("hotpotqa,3,sm,", "hotpotqa,3,old,"))
    mini.paper(book.root, "", mini.TABLE)
    papers.load.cache_clear()
    told = rows(deviations.text({}, {}))
    assert "| mini.table1 | rows | old; Forward selection | not run\\: needs a classifier |" in told
    assert "| mini.table1 | rows |  | Similarity |" in told


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
