"""What stands below a table of a page: rows of what is not run, and what its columns mean."""

from __future__ import annotations

import pytest

from rag_repro.report import exhibits
from rag_repro.report.missing import Missing
from rag_repro.report.tables import Table, exhibit_table
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
    assert "Not run: NQ, CIS; PopQA, CIS." in below
    assert "Not at hand: <code>rag-repro train x</code>: NQ, CFS." in below
    assert "CIS" in repr(made)  # as text it is whole


@pytest.mark.parametrize(
    "cells",
    [
        ["NQ", "not run", "61.2"],  # the paper's value stands beside it
        ["not run", "a word that is explained"],
        ["NQ", "not run: reader too weak", "not run"],
        ["a list", 3, TRAIN],
    ],
)
def test_what_has_a_number_or_another_word_beside_it_stays(cells):
    page = Table([""] * len(cells), [cells])._repr_html_()
    assert page.endswith("</table></div>")
    assert "<td" in page


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
    rows = exhibits.rows(paper, exhibit, Results(tmp_path))
    assert "drop" in {row.metric for row in rows}
    made = exhibit_table(exhibit, rows)
    assert "drop" in " ".join(made.head).lower()
    assert "Acc (line)" in made.meanings
    assert not {"drop", "Drop"} & {*made.meanings}
    # And alone with another: its caption names the metrics that are ours.
    few = [row for row in rows if row.metric in ("acc_line", "drop")]
    assert exhibit_table(exhibit, few).caption.split(": ")[1].startswith("Acc (line)")
