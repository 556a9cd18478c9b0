"""Numbers as pages print them."""

from __future__ import annotations

from rag_repro.evaluation.intervals import Interval
from rag_repro.show import values
from rag_repro.show.picture import Download, csv_text


def test_an_interval_has_its_digits_sign_and_n():
    i = Interval(1.256, -0.5, 2, 1234)
    assert values.within(i) == "1.26 [-0.50, 2.00]"
    assert values.within(i, 1, "+", n=True) == "+1.3 [-0.5, +2.0], n 1234"
    assert values.within(None, n=True) == ""


def test_numbers_shares_and_p():
    assert (values.number(2), values.number(0.12345, 4), values.number(None)) == (
        "2.00",
        "0.1235",
        "",
    )
    assert (values.points(0.1234), values.points(0.0), values.points(None)) == ("12.3", "0.0", "")
    assert [values.p_value(p) for p in (0.0009, 0.001, 0.04567)] == ["< 0.001", "0.001", "0.046"]


def test_a_csv_has_its_head_and_quotes_what_needs_it():
    assert csv_text(["a", "b"], [[1, None], ["x, y", '"']]) == 'a,b\n1,\n"x, y",""""\n'
    made = Download.from_rows("tab-x", ["a"], [[1]])
    assert (made.name, made.text) == ("tab-x.csv", "a\n1\n")
    assert Download.from_rows("", ["a"], [[1]]) is None
    assert Download.from_rows("tab-x", ["a"], []) is None
