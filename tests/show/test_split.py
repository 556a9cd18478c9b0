"""Pages of an exhibit: tables where there are numbers, else how to make them."""

from __future__ import annotations

from types import SimpleNamespace

from rag_repro.show.chapter import Chapter
from rag_repro.show.picture import Note
from rag_repro.show.table import Table
from rag_repro.study import papers
from tests.study import mini

DEFAULTS = {
    "tier": "all", "dataset": "", "retriever": "", "n_questions": None, "live_calls": 0,
    "seed": 0, "device": "cpu", "batch_size": 4, "changed": (),
}  # fmt: skip


def desk_of(book, **options):
    run = SimpleNamespace(**DEFAULTS)
    (book.root / "results").mkdir(exist_ok=True)
    made = Chapter("mini", run, book.root, exhibits=("table1",), **options)
    made.results = book.results()
    return made


def test_what_has_a_number_is_a_table_and_the_rest_says_how_to_run_it(book):
    book.fill()
    desk = desk_of(book)
    table, note = desk.tables("table1", desk.rows("table1"), "tab")
    assert (type(table), table.name) == (Table, "tab")
    assert repr(note) == "Not run: `rag-repro run mini.table1 --tier testbed`."
    whole = desk.whole_table("table1", desk.rows("table1"), "tab")
    assert any("world-B" in map(str, row) for row in whole.body)


def test_without_any_number_there_is_a_note(book):
    desk = desk_of(book)
    testbed = desk.rows("table1", "testbed")
    assert isinstance(desk.whole_table("table1", testbed, "tab"), Note)
    assert [type(p) for p in desk.tables("table1", testbed, "tab")] == [Note]
    assert "no such condition" in repr(desk.tables("table1", [], "tab")[0])


def test_a_folded_tier_is_shown_when_it_has_a_record(book, monkeypatch):
    text = mini.PAPER.replace("tier: testbed", "tier: paper")
    monkeypatch.setattr(mini, "PAPER", text)
    book.paper = mini.paper(book.root, "")
    papers.load.cache_clear()
    assert desk_of(book).tiers() == ["public", "paper"]
    desk = desk_of(book, folded=["paper"])
    assert desk.tiers() == ["public"]
    assert {row.tier for row in desk.rows("table1")} == {"public"}
    assert repr(desk.unrun_note) == "Not run: `rag-repro run mini.table1 --tier paper`."
    mini.fill(book.records, book.paper, lambda m, d, k, rng: 0.5, tier="paper")
    desk = desk_of(book, folded=["paper"])
    assert desk.tiers() == ["public", "paper"]
    assert desk.unrun_note is None


def test_all_contrasts_of_claims_stand_side_by_side(book):
    book.fill()
    desk = desk_of(book)
    table = desk.contrasts(["mini.c01"], "All", "tab-all")
    assert [row[1] for row in table.body] == ["public"]
    assert table.caption == "All"
    none = desk_of(book)
    none.results = type(none.results)(book.root / "no")
    assert "No contrast of these claims" in repr(none.contrasts(["mini.c01"], "All"))
