"""Rows of an exhibit: what the paper prints beside what the records say."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

import pytest

from rag_repro.show import escape, exhibit_rows
from rag_repro.show.picture import Download
from rag_repro.show.table import Table
from rag_repro.study import costs, papers
from rag_repro.study.scores import Results
from tests.study import mini


def rows(book, tier=None, exhibit=None):
    return exhibit_rows.rows(book.paper, exhibit or book.exhibit, book.results(), tier)


def one(made, **wanted):
    [row] = [
        r
        for r in made
        if all((r.keys | {"metric": r.metric, "tier": r.tier})[k] == v for k, v in wanted.items())
    ]
    return row


def test_ours_stands_beside_the_papers_printed_text(book):
    book.fill()
    row = one(rows(book), dataset="hotpotqa", method="qdc", k=3, metric="recall")
    assert row.paper == "86.12"
    assert (row.ours.estimate, row.ours.n) == (pytest.approx(78), 100)
    assert row.ours.lo < 78 < row.ours.hi
    flat = row.flat()
    assert (flat["paper"], flat["ours"], flat["n"]) == ("86.12", "78.00", "100")
    # "3.00" stays what the paper printed, and its note goes with it.
    row = one(rows(book), dataset="hotpotqa", method="qdc", k=3, metric="passages")
    assert (row.paper, row.note) == ("3.00", "suspect")
    assert row.ours.estimate == 3.0  # a number of passages, not a percentage


def test_a_record_shorter_than_what_is_asked_says_so(book):
    book.fill()
    row = one(rows(book), dataset="hotpotqa", method="qdc", k=3, metric="passages")
    assert row.flat()["note"] == "suspect; 100 of 252 answers"
    caption = exhibit_rows.exhibit_table(book.exhibit, rows(book, "public")).caption
    assert " rows are not complete (" in caption
    assert "100 of 252 answers" in caption
    [cell, *_] = book.exhibit.cells("testbed")
    asked = dataclasses.replace(cell, n=1000)
    assert costs.short(asked, 999) == "999 of 1,000 answers"
    assert costs.short(asked, 1000) == costs.short(cell, 1) == ""


def test_the_difference_is_to_the_rows_own_baseline_on_the_same_questions(book):
    book.fill()
    row = one(rows(book), dataset="musique", method="qdc", k=4, metric="recall")
    assert (row.baseline, row.diff.n) == ("sm", 100)
    assert row.diff.estimate == pytest.approx(78 - 62)
    assert row.paper is None
    row = one(rows(book), dataset="musique", method="sm", k=4, metric="recall")
    assert (row.baseline, row.diff) == (None, None)


def test_the_baseline_has_the_rows_own_settings(book):
    mini.fill(
        book.records,
        book.paper,
        lambda method, d, k, rng: mini.coin(0.1 * k + (0.2 if method == "qdc" else 0), 100, rng),
    )
    gains = {r.keys["k"]: r.diff.estimate for r in rows(book) if r.diff and r.metric == "recall"}
    assert gains == {3: pytest.approx(20), 4: pytest.approx(20)}


def test_the_baseline_is_of_the_same_tier(book):
    """The same data set at two tiers: each row is compared at its own."""
    grid = dataclasses.replace(book.exhibit.grids[0], datasets=("hotpotqa",))
    paper_tier = dataclasses.replace(grid, tier="paper", seed=1)
    exhibit = dataclasses.replace(book.exhibit, grids=(paper_tier, grid))
    book.fill()
    row = one(rows(book, "public", exhibit), dataset="hotpotqa", method="qdc", k=3, metric="recall")
    assert row.diff.estimate == pytest.approx(16)


def test_every_printed_value_has_a_row_with_the_reason_where_nothing_is_run(book):
    made = rows(book)
    assert sorted(r.paper for r in made if r.paper) == sorted(
        entry["value"] for entry in book.paper.printed("table1")
    )
    waits = one(made, dataset="hotpotqa", method="cfs", metric="recall")
    assert (waits.paper, waits.note, waits.ours) == ("88.89", "needs a classifier", None)
    # A grid's k is a number, a waiting row's is the printed text: both print alike.
    assert waits.flat()["k"] == "3"
    idle = one(made, dataset="hotpotqa", method="qdc", k=3, metric="passages", tier="public")
    assert (idle.paper, idle.note, idle.ours) == ("3.00", "not run; suspect", None)
    assert one(made, dataset="hotpotqa", method="sm", k=4, metric="recall").note == "not run"


def test_a_printed_cell_that_no_grid_has_is_not_passed_over(book):
    other = book.root / "other"
    other.mkdir()
    paper = mini.paper(other, "", mini.TABLE + "hotpotqa,9,sm,recall,99.10,\n")
    made = exhibit_rows.rows(paper, paper.exhibits["table1"], book.results())
    [row] = [r for r in made if r.paper == "99.10"]
    assert (row.keys["k"], row.note) == ("9", "not run")


def test_printed_values_are_of_the_public_tier(book):
    book.fill(tier="testbed")
    made = rows(book, "testbed")
    assert len(made) == 1 * 2 * 2 * 2  # data set, methods, k, metrics
    assert {r.paper for r in made} == {None}
    assert all(r.ours for r in made)
    assert rows(book, "paper") == []


def own_candidates(book):
    """The exhibit with its public grid on the questions' own passages."""
    grid = dataclasses.replace(
        book.exhibit.grids[0], settings={"k": (3,), "own_candidates": (True, False)}
    )
    return dataclasses.replace(book.exhibit, grids=(grid,))


def test_own_candidates_never_get_the_papers_value(book):
    made = rows(book, exhibit=own_candidates(book))
    ran = [r for r in made if "own_candidates" in r.keys]
    assert {r.paper for r in ran if r.keys["own_candidates"]} == {None}
    assert {r.paper for r in ran if not r.keys["own_candidates"]} == {
        None,
        "80.33",
        "86.12",
        "3.00",
    }


def test_own_candidates_set_in_the_row_get_none_either(book):
    sm = dataclasses.replace(book.exhibit.methods["sm"], settings={"own_candidates": True})
    exhibit = dataclasses.replace(book.exhibit, methods={**book.exhibit.methods, "sm": sm})
    made = rows(book, "public", exhibit)
    [waiting] = [r for r in made if r.paper == "80.33"]
    assert waiting.note == "not run"
    assert "own_candidates" not in waiting.keys
    assert (
        one(
            [r for r in made if r is not waiting],
            dataset="hotpotqa",
            method="sm",
            k=3,
            metric="recall",
        ).paper
        is None
    )


def test_of_a_paper_with_own_candidates_those_are_the_printed_cells(book):
    sm = dataclasses.replace(book.exhibit.methods["sm"], settings={"own_candidates": True})
    methods = {**book.exhibit.methods, "sm": sm}
    exhibit = dataclasses.replace(book.exhibit, methods=methods, candidates=True)
    made = rows(book, "public", exhibit)
    wanted = {"dataset": "hotpotqa", "k": 3, "metric": "recall"}
    pooled = [r for r in made if r.paper == "86.12"]
    assert one(made, method="sm", **wanted).paper == "80.33"
    assert [row.note for row in pooled] == ["not run"]  # a line of its own, beside no cell
    assert "86.12" not in {r.paper for r in made if r.keys["method"] == "sm"}


def test_an_exhibit_by_kind_has_a_row_a_kind(book):
    book.fill(kinds=("bridge", "comparison", "bridge", "bridge"))
    by = dataclasses.replace(book.exhibit, by="kind")
    made = rows(book, "public", by)
    kinds = {(r.keys["kind"], r.ours.n) for r in made if "kind" in r.keys and r.ours}
    assert kinds == {("bridge", 75), ("comparison", 25)}
    diffs = [r.diff.n for r in made if r.diff and r.keys["kind"] == "comparison"]
    assert set(diffs) == {25}


def test_an_exhibit_by_gold_there_has_a_row_for_all_some_and_none(book):
    """Whatever of it was found; where neither gold nor steps are named, nothing is known."""
    of = [
        {"gold": [["static", 1, 2]], "hops": 1},
        {"gold": [["static", None, 2], ["dynamic", None, None]], "hops": 2},
        {"gold": [["static", None, 4]], "hops": 2},
        {"gold": [["static", 1, None]], "hops": 1},
        {"gold": [], "hops": 2},
        {"gold": []},
    ]
    book.fill(more=lambda i: of[min(i, 5)])
    made = rows(book, "public", dataclasses.replace(book.exhibit, by="gold_there", values=None))
    told = [(r.keys["gold_there"], r.ours.n, r.diff.n) for r in made if r.diff]
    assert set(told) == {("all", 3, 3), ("some", 1, 1), ("none", 1, 1)}
    assert [group for group, *_ in dict.fromkeys(told)] == ["all", "some", "none"]


def test_an_exhibit_by_kind_without_records_says_so(book):
    by = dataclasses.replace(book.exhibit, by="kind", values=None)
    made = rows(book, "testbed", by)
    assert {r.note for r in made} == {"not run"}
    assert len(made) == 8


def test_a_metric_that_no_question_has_is_told_from_a_run_that_is_missing(book):
    book.fill()
    made = rows(book, "public", dataclasses.replace(book.exhibit, metrics=("em",)))
    assert {r.note for r in made if r.metric == "em"} == {"no question has this metric"}


# ------------------------------------------------------------------------------------- text


def test_the_csv_begins_with_the_promised_columns(book):
    book.fill()
    lines = list(csv.reader(io.StringIO(exhibit_rows.text(rows(book), "csv"))))
    assert lines[0] == [
        *("exhibit", "tier", "dataset", "method", "k", "metric", "paper", "ours", "lo", "hi", "n"),
        *("baseline", "diff", "diff_lo", "diff_hi", "role", "note"),
    ]
    assert {len(line) for line in lines} == {17}
    told = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    [qdc] = [
        t
        for t in told
        if (t["dataset"], t["method"], t["k"], t["metric"]) == ("hotpotqa", "qdc", "3", "recall")
    ]
    assert (qdc["exhibit"], qdc["tier"], qdc["role"]) == ("mini.table1", "public", "primary")
    assert (qdc["paper"], qdc["ours"], qdc["diff"], qdc["baseline"]) == (
        *("86.12", "78.00", "16.00", "sm"),
    )


def test_json_has_the_same_rows(book):
    book.fill()
    made = rows(book)
    assert json.loads(exhibit_rows.text(made, "json")) == [row.flat() for row in made]


def test_booleans_are_printed_as_in_the_files(book):
    text = exhibit_rows.text(rows(book, exhibit=own_candidates(book)), "csv")
    assert ",true," in text
    assert "True" not in text


def test_the_readers_table_has_gain_ours_and_paper(book):
    book.fill()
    head, body = exhibit_rows.grid(rows(book, "public"))
    line = dict(zip(head, next(c for c in body if c[:3] == ["HotpotQA", "3", "qdc"]), strict=True))
    assert line["Recall: gain over baseline"].startswith("+16.00 [+")
    assert line["Recall: ours [95 %], n"].startswith("78.00 [")
    assert line["Recall: ours [95 %], n"].endswith("], n 100")
    assert line["Recall: paper"] == "86.12"
    markdown = exhibit_rows.text(rows(book, "public"), "md").splitlines()
    assert markdown[0] == "| " + " | ".join(head) + " |"
    assert markdown[1] == "|" + " --- |" * len(head)
    assert len(markdown) == 2 + len(body)


@pytest.mark.parametrize("form", ["csv", "md", "json"])
@pytest.mark.parametrize("name", papers.names())
def test_every_exhibit_of_every_paper_can_be_printed_before_anything_is_run(tmp_path, name, form):
    paper = papers.load(name)
    for key, exhibit in paper.exhibits.items():
        made = exhibit_rows.rows(paper, exhibit, Results(tmp_path))
        text = exhibit_rows.text(made, form)
        for entry in paper.printed(key):
            assert entry["value"] in text


# ----------------------------------------------------------------------------------- tables

HOSTILE = 'a | b <script>alert("x")</script>\n```{note} {{ x }} $y$ [z](http://w)'


def test_hostile_text_stays_text_in_html():
    html = Table(["h<1>"], [[HOSTILE]], caption="<b>&")._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;" in html
    assert '<th scope="col">h&lt;1&gt;</th>' in html
    assert "<caption>&lt;b&gt;&amp;</caption>" in html


def test_hostile_text_keeps_its_row_and_cell_in_plain_text():
    lines = repr(Table(["h|1"], [[HOSTILE]])).splitlines()
    assert lines[:2] == ["| h\\|1 |", "| --- |"]
    assert len(lines) == 3
    assert lines[2].startswith('| a \\| b <script>alert("x")</script> ```{note} {{ x }}')


def test_every_mark_of_a_myst_page_can_be_escaped():
    assert escape.as_myst(HOSTILE) == (
        'a \\| b \\<script\\>alert\\("x"\\)\\</script\\> \\`\\`\\`\\{note\\} \\{\\{ x \\}\\} '
        "\\$y\\$ \\[z\\]\\(http\\://w\\)"
    )
    assert escape.as_myst("own_candidates *k* a\\b #1") == "own\\_candidates \\*k\\* a\\\\b \\#1"


def test_a_bar_in_a_cell_opens_no_column_on_a_terminal(book):
    row = exhibit_rows.Row(
        "e", "public", "primary", {"dataset": "d", "method": "a|b"}, "recall", note="x\ny"
    )
    text = exhibit_rows.text([row], "md")
    assert "a\\|b" in text
    assert "x y" in text
    assert len(text.splitlines()) == 3


def test_columns_of_numbers_stand_right_and_empty_ones_go():
    page = Table(["a", "b"], [["1.50 [1.00, 2.00], n 4", "x"], ["", "1"]])._repr_html_()
    assert '<td class="number">1.50 <small>[1.00, 2.00], n 4</small></td>' in page
    assert "<td>1</td>" in page  # words stand in the same column


def test_a_table_with_a_name_and_data_carries_both():
    page = Table(["a"], [["b"]], "C", "tab-c", Download("x.csv", "h\n1\n"))._repr_html_()
    assert page.startswith('<div class="rr-table" id="tab-c"><table><caption>C</caption>')
    assert 'download="x.csv"' in page
    assert "aAoxCg==" in page


def test_a_baseline_without_the_keys_that_a_grid_varies_is_found():
    exhibit = papers.load("erm4").exhibit("table2")
    memory = [c for c in exhibit.cells("testbed") if c.keys["method"] == "memory"]
    assert len({c.keys["tau"] for c in memory}) == 5
    for cell in memory:
        base = exhibit_rows.sibling_cell(exhibit, cell, {"method": "outside"})
        assert base is not None
        assert "tau" not in base.keys
        assert base.keys["dataset"] == cell.keys["dataset"]
        # One with the same key is nearer than one without; another value is none.
        every = exhibit_rows.sibling_cell(exhibit, cell, {"method": "every"})
        assert (every is None) == (cell.keys["tau"] != 0.6)
    trigger = papers.load("erm4").exhibit("trigger")
    tuned = next(c for c in trigger.cells("testbed") if c.keys.get("split") == "tune")
    base = exhibit_rows.sibling_cell(trigger, tuned, {"method": "outside"})
    assert base.keys["split"] == "tune"  # never the tested questions' own
