"""What stands below a table of a page: rows of what is not run, and what its columns mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro.evaluation.intervals import Interval
from rag_repro.show import exhibit_rows
from rag_repro.show.exhibit_rows import exhibit_table
from rag_repro.show.missing import Missing
from rag_repro.show.table import Table, Under
from rag_repro.study import papers
from rag_repro.study.scores import Results

TRAIN = Missing(("rag-repro train x",), "not at hand")


def test_rows_of_what_is_not_run_are_named_below_by_their_reason():
    made = Table(
        ["data set", "method", "recall", "passages"],
        [
            ["NQ", "SM", "40.0 [30.0, 50.0], n 9", "4.0"],
            ["NQ", "CIS", "not run", "not run"],
            ["PopQA", "CIS", "not run", ""],
            ["NQ", "CFS", TRAIN, ""],
        ],
        "Recall",
    )
    inside, below = made._repr_html_().split("</table></div>")
    assert inside.count("<tr>") == 2
    assert "CIS" not in inside
    assert "Not run: CIS (NQ; PopQA)." in below
    assert "Not at hand: <code>rag-repro train x</code>: CFS (NQ)." in below
    assert "CIS" in repr(made)  # as text it is whole


@pytest.mark.parametrize(
    "cells",
    [
        ["NQ", "not run", "61.2"],  # the paper's value stands beside it
        ["not run", "a word that is explained"],
        ["a list", 3, TRAIN],
    ],
)
def test_what_has_a_number_or_another_word_beside_it_stays(cells):
    page = Table([""] * len(cells), [cells])._repr_html_()
    assert page.endswith("</table></div>")
    assert "<td" in page


def test_one_reason_is_enough_for_a_row_and_many_rows_are_folded():
    weak = [["NQ", f"m{i}", "not run: reader too weak", "not run"] for i in range(7)]
    page = Table(["data set", "method", "EM", "passages"], weak)._repr_html_()
    assert "<tr>" not in page
    assert "<details><summary>Not run: reader too weak: 7 rows</summary>m0 (NQ); m1 (NQ)" in page


def test_what_a_gain_is_over_stands_below_the_method_where_rows_differ_in_it():
    made = Table(["method", "EM"], [[Under("IRCoT", "over “one search”"), "6.0"]])
    assert "<td>IRCoT <small>over “one search”</small></td>" in made._repr_html_()
    assert "| IRCoT (over “one search”) | 6.0 |" in repr(made)


def test_an_exhibit_whose_rows_have_two_baselines_names_them_below_its_methods(tmp_path):
    paper = papers.load("together")
    exhibit = paper.exhibit("head")
    rows = exhibit_rows.rows(paper, exhibit, Results(tmp_path), "testbed")
    value = Interval(50.0, 40.0, 60.0, 50)
    bases = {name: method.baseline for name, method in exhibit.methods.items()}
    rows = [
        replace(row, ours=value, diff=value, baseline=bases[row.keys["method"]])
        for row in rows
        if bases[row.keys["method"]]
    ]
    told = {str(v) for cells in exhibit_table(exhibit, rows).body for v in cells}
    assert {"IRCoT (over “one search”)", "learnable tokens (over “R²AG”)"} <= told
    over_one = [row for row in rows if row.baseline == "single"]
    made = exhibit_table(exhibit, over_one)
    assert "gains over “one search”" in made.caption
    assert "IRCoT" in {str(v) for cells in made.body for v in cells}


def test_an_interval_stands_below_its_number():
    page = Table(["EM"], [["1.50 [1.00, 2.00], n 4"], ["+3"]])._repr_html_()
    assert '<td class="number">1.50 <small>[1.00, 2.00], n 4</small></td>' in page
    assert '<td class="number">+3</td>' in page


def test_sentences_are_told_their_heads_for_a_phone():
    page = Table(["claim"], [["words"]], stacked=True)._repr_html_()
    assert '<div class="rr-table rr-stacked">' in page
    assert '<td data-head="claim">words</td>' in page


def test_printed_rows_beside_which_nothing_was_run_are_folded(tmp_path):
    """Below those of ours; alone they are the table."""
    paper = papers.load("r2ag")
    exhibit = paper.exhibit("table3")
    rows = exhibit_rows.rows(paper, exhibit, Results(tmp_path))
    printed = [row for row in rows if row.paper]
    made = exhibit_table(exhibit, rows)
    assert not any("69.30" in cells for cells in made.body)
    assert any("69.30" in cells for cells in made.more.body)
    assert "Printed in the paper, and not run here: " in made._repr_html_()
    assert exhibit_table(exhibit, printed).more is None


def test_a_folded_row_has_the_papers_names_and_not_ours(tmp_path):
    paper = papers.load("drrag")
    exhibit = paper.exhibit("table7")
    first = next(cell for cell in exhibit.cells("public") if cell.keys["k"] == 4)
    rows = exhibit_rows.rows(paper, exhibit, Results(tmp_path))
    ours = Interval(50.0, 40.0, 60.0, 50)
    rows = [
        replace(row, ours=ours) if row.tier == "public" and row.keys == first.keys else row
        for row in rows
    ]
    made = exhibit_table(exhibit, rows)
    assert {"public-reader", "smollm2-135m"} & {str(v) for cells in made.body for v in cells}
    folded = {str(v) for cells in made.more.body for v in cells}
    assert folded & {"gpt-3.5-turbo", "gpt-4-turbo"}
    assert not folded & {"public-reader", "smollm2-135m"}


def test_a_row_with_one_number_is_shown_whatever_else_of_it_is_not_run():
    body = [["a", "2.5 [0.0, 8.2], n 40", "not run"], ["b", "not run", "not run"]]
    page = Table(["data set", "alone", "gold"], body)._repr_html_()
    assert "<small>[0.0, 8.2], n 40</small>" in page
    assert "Not run: b." in page


def test_where_nothing_was_run_no_empty_head_is_shown():
    page = Table(["method", "recall"], [["SM", "not run"]], "Recall", "tab-x")._repr_html_()
    assert "<th" not in page
    assert "<caption>Recall</caption>" in page
    assert "Not run: SM." in page


def test_what_a_column_means_is_folded_away_below():
    page = Table(["Acc"], [["1.0"]], meanings={"Acc": "an answer & more"})._repr_html_()
    assert page.endswith("<summary>Columns</summary><i>Acc</i>: an answer &amp; more.</details>")
    assert "<details" not in Table(["Acc"], [["1.0"]])._repr_html_()


def test_what_is_printed_and_no_metric_of_ours_has_a_column_all_the_same(tmp_path):
    """R²AG's table 3 prints how far a score drops."""
    paper = papers.load("r2ag")
    exhibit = paper.exhibit("table3")
    rows = exhibit_rows.rows(paper, exhibit, Results(tmp_path))
    assert "drop" in {row.metric for row in rows}
    made = exhibit_table(exhibit, rows)
    assert "drop" in " ".join(made.more.head).lower()
    assert "Acc (line)" in made.meanings
    assert not {"drop", "Drop"} & {*made.meanings}
    # And alone with another: its caption names the metrics that are ours.
    few = [row for row in rows if row.metric in ("acc_line", "drop")]
    assert exhibit_table(exhibit, few).caption.split(": ")[1].startswith("Acc (line)")
