"""Who is beaten in quality and cost at once."""

from __future__ import annotations

from rag_repro.evaluation.statistics import Interval
from rag_repro.report import frontier
from rag_repro.report.exhibits import Row
from rag_repro.report.picture import Note
from rag_repro.study import papers

EXHIBIT = papers.load("together").exhibit("head")


def row(method, metric, value, dataset="world-B"):
    ours = None if value is None else Interval(value, value - 1, value + 1, 50)
    keys = {"dataset": dataset, "method": method}
    return Row("head", "testbed", "primary", keys, metric, ours=ours)


def made(points):
    named = {m: zip(("em", "reader_calls"), at, strict=True) for m, at in points.items()}
    return [row(m, metric, value) for m, at in named.items() for metric, value in at]


def test_beaten_is_who_is_no_better_and_no_cheaper():
    points = {"none": (10, 1), "single": (30, 1), "multi": (32, 4), "drrag": (29, 1.5)}
    assert frontier.beaten_by("none", points) == ["single"]
    assert frontier.beaten_by("single", points) == []
    assert frontier.beaten_by("multi", points) == []
    assert frontier.beaten_by("drrag", points) == ["single"]


def test_equals_do_not_beat_each_other():
    assert frontier.beaten_by("a", {"a": (1, 1), "b": (1, 1)}) == []


def test_the_table_names_who_beats_whom():
    points = {"none": (10, 1), "single": (30, 1), "multi": (32, 4)}
    table = frontier.table(EXHIBIT, made(points), "em", ["reader_calls"])
    assert [line[1:] for line in table.body] == [
        ["no retrieval", "10.0 [9.0, 11.0]", "1.0", "one search"],
        ["one search", "30.0 [29.0, 31.0]", "1.0", "nobody"],
        ["IRCoT", "32.0 [31.0, 33.0]", "4.0", "nobody"],
    ]


def test_a_method_that_nobody_ran_neither_beats_nor_stands_there():
    rows = made({"none": (10, 1), "single": (None, None)})
    table = frontier.table(EXHIBIT, rows, "em", ["reader_calls"])
    assert [line[1] for line in table.body] == ["no retrieval"]
    assert table.body[0][-1] == "nobody"
    assert isinstance(frontier.table(EXHIBIT, rows[2:], "em", ["reader_calls"]), Note)
