"""The grammar: what columns read off cells, what a table says of what is not run, what is drawn."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import yaml

from rag_repro import show
from rag_repro.analysis import gold_signals
from rag_repro.show import figures
from rag_repro.show.figures import method_styles
from rag_repro.show.picture import Note, Picture
from tests.study.mini import number
from tests.test_readme import ROOT


def entries(book, *tiers, **wanted):
    desk = SimpleNamespace(
        paper=book.paper, results=book.results(), tiers=lambda: tiers or ("public", "testbed")
    )
    return show.entries(desk, "table1", **wanted)


def test_a_table_has_the_paper_ours_and_the_difference(book):
    book.fill()
    shown = entries(book, "public", dataset="hotpotqa", k=3, method="qdc")
    [entry] = shown
    columns = {
        "data set": show.key("dataset"),
        "k": show.key("k"),
        "method": show.label(),
        "compared": show.compared(),
        "paper": show.paper("recall"),
        "paper's gain": show.paper_gain("recall"),
        "ours": show.level("recall"),
        "difference": show.gain("recall"),
        "in %": show.percent("recall"),
        "lost, %": show.change("recall"),
        "passages": show.mean("passages"),
    }
    table = show.table(shown, columns, "Recall", "tab-x")
    [cells] = table.body
    told = dict(zip(table.head, cells, strict=True))
    assert (told["data set"], told["k"], told["method"]) == ("HotpotQA", "3", "Concatenation")
    assert told["compared"] == "Concatenation against Similarity"
    assert (told["paper"], told["paper's gain"]) == ("86.12", "5.8")
    assert re.fullmatch(r"78\.0 \[.*\], n 100", told["ours"])
    assert re.fullmatch(r"\+16\.0 \[.*\], n 100", told["difference"])
    ratio = show.percent("recall").read(entry)
    assert ratio.estimate == pytest.approx(100 * 78 / 62)
    assert show.change("recall").read(entry).estimate == pytest.approx(100 - 100 * 78 / 62)
    assert told["passages"] == "3.0"
    assert table.data.name == "tab-x.csv"
    assert "78.0" in table.data.text


def test_points_side_by_side_are_means_of_the_same_questions(book):
    book.fill()
    shown = entries(book, "public", dataset="hotpotqa", k=3, method=["qdc", "sm"])
    whole = show.answered_by_all(shown)
    assert {show.level("recall", whole).read(entry).n for entry in shown} == {100}
    first, *others = shown
    short = first.results.lines(first.cell)[:7]
    fewer = SimpleNamespace(lines=lambda cell: short)
    some = show.answered_by_all([replace(first, results=fewer), *others])
    assert some.ids == {line["id"] for line in short}
    assert {show.level("recall", some).read(entry).n for entry in shown} == {7}
    # What is not run limits nothing.
    none = SimpleNamespace(lines=lambda cell: None)
    assert show.answered_by_all([replace(first, results=none), *others]).ids == whole.ids
    # The same questions in another data set, of which one row there has fewer: these are left out.
    keys = {**first.keys, "dataset": "hotpotqa_fullwiki"}
    wiki = replace(first, cell=replace(first.cell, keys=keys))
    both = show.answered_by_all([*shown, wiki, replace(wiki, results=fewer)])
    assert both.ids == some.ids


def test_a_setting_is_told_as_it_is(book):
    [entry] = entries(book, "public", dataset="hotpotqa", k=3, method="qdc")
    assert show.setting("k").text(entry) == "3"


def test_a_baseline_can_be_another_row_than_the_methods_own(book):
    book.fill()
    [entry] = entries(book, "public", dataset="hotpotqa", k=4, method="qdc")
    more = show.gain("passages", over={"k": 3})
    assert more.read(entry).estimate == 1
    assert show.compared({"method": "qdc", "k": 3}).text(entry).endswith("against Concatenation")
    [bare] = entries(book, "public", dataset="hotpotqa", k=4, method="sm")
    assert show.gain("recall").read(bare) is None
    assert show.gain("recall").text(bare) == ""


def test_what_two_have_beyond_their_sum_is_a_difference_of_differences(book):
    book.fill()
    [entry] = entries(book, "public", dataset="hotpotqa", k=4, method="qdc")
    alone = {"method": "sm"}
    found = show.beyond("recall", alone, alone, alone).read(entry)
    assert found.estimate == pytest.approx(78 - 62)
    assert found.n == 100
    assert show.beyond("recall", alone, alone, {"k": 99}).read(entry) is None


def test_a_filter_of_answers_holds_for_levels_gains_and_shares(book):
    book.fill()

    def few(line):
        return number(line) < 20

    [entry] = entries(book, "public", dataset="hotpotqa", k=3, method="qdc")
    assert show.level("recall", few).read(entry).n == 20
    assert show.gain("recall", few).read(entry).n == 20
    assert show.share(few).read(entry).estimate == pytest.approx(20)
    assert show.share(few, few).read(entry).estimate == pytest.approx(100)


def test_what_is_not_run_stands_below_or_says_how_to_run_it(book):
    columns = {
        "data set": show.key("dataset"),
        "method": show.label(),
        "ours": show.level("recall"),
    }
    none = show.table(entries(book, "public"), columns, "Recall")
    assert isinstance(none, Note)
    assert "rag-repro run mini.table1 --tier public" in none.text
    book.fill()
    table = show.table(entries(book), columns, "Recall")
    assert [cells[2] for cells in table.body].count("not run") == 4  # world B
    assert "Not run: Similarity (world-B; world-B)" in table._repr_html_()
    assert "not run" not in table.data.text if table.data else True


def test_figures_draw_the_same_columns_with_alt_text_and_csv(book):
    book.fill()
    shown = entries(book, "public")
    ours, gain = show.level("recall"), show.gain("recall")
    drawn = [
        show.forest(
            shown, gain, printed=show.paper_gain("recall"), rows=("dataset", "k"), name="a"
        ),
        show.curve(shown, "k", {"recall": ours, "passages": show.mean("passages")}, name="b"),
        show.frontier(shown, show.mean("passages"), ours, name="c"),
        show.bars(shown, {"recall": ours}, name="d"),
    ]
    told = ("HotpotQA, k = 3: +16.0", "at 3: recall 78", "78 at 3.0", "78.0")
    for picture, said in zip(drawn, told, strict=True):
        assert isinstance(picture, Picture)
        assert said in picture.alt
        assert "78.0" in picture.data.text or "16.0" in picture.data.text
        html = picture._repr_html_()
        assert base64.b64decode(re.search(r"base64,([^\"]+)\"", html)[1]).startswith(b"<?xml")
    assert ",5.79" in drawn[0].data.text.replace("5.789999", "5.79")


def test_long_titles_of_several_panels_take_several_lines(book, monkeypatch):
    book.fill()
    shown, made, whole = entries(book, "public"), [], figures._panels
    monkeypatch.setattr(figures, "_panels", lambda *given: made.append(whole(*given)) or made[-1])
    panel = show.Column(lambda e: f"{e.keys['dataset']}, questions of the part that is trained on")
    show.curve(shown, "k", {"recall": show.level("recall")}, panel=panel)
    [(_, axes)] = made
    for axis in axes:
        lines = axis.get_title().split("\n")
        assert len(lines) == 2
        assert max(map(len, lines)) <= 45


def test_a_figure_of_nothing_says_how_to_run_it(book):
    shown = entries(book, "public")
    for note in (
        show.forest(shown, show.gain("recall"), caption="c"),
        show.curve(shown, "k", {"recall": show.level("recall")}, caption="c"),
        show.heat(shown, "k", "depth", show.mean("recall"), caption="c"),
        show.table([], {"ours": show.level("recall")}, "c"),
    ):
        assert isinstance(note, Note)
        assert note.text.startswith(
            ("Not run: `rag-repro run mini.table1", "c: this exhibit has no")
        )


def test_a_method_has_one_look_whatever_stands_beside_it():
    alone, among = (
        method_styles(["dragin"]),
        method_styles(["sr", "flare", "dragin", "x", "y"]),
    )
    assert alone["dragin"] == among["dragin"]
    assert len(set(among.values())) == 5
    assert method_styles(["cfs"])["cfs"] == method_styles(["dr_rag"])["dr_rag"]


def test_a_papers_chapter_shows_at_most_ten_tables():
    told = yaml.safe_load((ROOT / "notebooks/tables.yaml").read_text(encoding="utf-8"))
    chapters = {path.name[:2] for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.py")}
    assert set(told) == chapters - {"90", "91", "92"}
    for chapter, shown in told.items():
        assert len(shown["tables"]) + 2 <= 10, chapter


def test_places_within_a_record_are_drawn_by_the_same_columns(book):
    looked = {"tokens": [[2, 10], [2, 30]], "words": [[1000, 2000], [0, 4000]]}
    lines = [{"attention": {**looked, "embeddings": [[300, 100], [500, 500]]}}]
    desk = SimpleNamespace(
        paper=book.paper,
        results=SimpleNamespace(lines=lambda cell: lines if cell.keys["k"] == 3 else None),
        tiers=lambda: ["public"],
    )
    shown = show.entries(desk, "table1", dataset="hotpotqa", method=["sm", "qdc"], k=3)
    every = show.expand(shown, layer=range(1, 4), place=["1e", "1w"])
    assert len(every) == 2 * 3 * 2
    by_place = show.part(partial(gold_signals.by_passage, shown=2), "layer", "place")
    grid = show.heat(every, "place", "layer", by_place, panel=show.label(), name="a")
    assert "Similarity, place 1e, layer 1: 3.0" in grid.alt
    by_layer = show.part(partial(gold_signals.by_kind, kind="words"), "layer", unit="%")
    drawn = show.curve(
        show.expand(shown, layer=range(1, 4)),
        "layer",
        {"words": by_layer.printed(digits=3)},
        log=True,
        panel=show.Column(lambda entry: "All", measured=False),
    )
    assert "All, Similarity at 1: words 0.75" in drawn.alt
    assert "at 3" not in drawn.alt  # no such layer
