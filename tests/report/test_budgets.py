"""The rules in words out of settings, and quality against searches out of hand-made rows."""

from __future__ import annotations

import pytest

from rag_repro.evaluation.statistics import Interval
from rag_repro.methods.dragin.settings import RELEASED, DynamicSettings
from rag_repro.report import budgets
from rag_repro.report.exhibits import Row
from rag_repro.report.picture import Note
from rag_repro.study import papers


@pytest.mark.parametrize(
    ("settings", "searches", "words"),
    [
        ({"timing": "never"}, "never", "nothing"),
        ({"timing": "never", "first": True}, "before it writes", "the question"),
        (
            {"timing": "window", "query": "last_tokens", "window": 16},
            "before it writes, and every 16 tokens",
            "the question; then the last 16 tokens",
        ),
        (
            {"timing": "flare", "query": "sure_sentence", "first": False, "doubt_of": "sentence"},
            "a sentence's mean probability at or below 0.8",
            "the sentence without tokens at or below 0.4",
        ),
        (
            {"threshold": 0.25, "top_n": 35},
            "a token's RIND score above 0.25",
            "the words of the 35 tokens that the token looks at most (QFS)",
        ),
        ({"factors": ("entropy", "meaning"), **RELEASED}, "a word's entropy times meaning", "QFS"),
    ],
)
def test_a_rule_is_told_by_its_settings(settings, searches, words):
    when, what = budgets.told(DynamicSettings(**settings))
    assert when.startswith(searches)
    assert words in what


def test_the_papers_table_1_comes_from_the_conditions():
    table = budgets.rules(papers.load("dragin").exhibit("table2"), "Rules", "tab-rules")
    rows = {row[0]: row[1:] for row in table.body}
    assert rows["SR-RAG"] == ["before it writes", "the question"]
    assert "QFS" in rows["DRAGIN (equations)"][1]
    assert len(table.body) == len(rows)


def row(method: str, metric: str, value: float | None, dataset: str = "world-B") -> Row:
    ours = None if value is None else Interval(value, value - 1, value + 1, 50)
    keys = {"dataset": dataset, "method": method}
    return Row("dragin.table2", "testbed", "primary", keys, metric, ours=ours)


def test_quality_stands_against_searches_where_both_are_known():
    exhibit = papers.load("dragin").exhibit("table2")
    rows = [
        *(row("sr", "em", 40.0), row("sr", "retrievals", 1.0)),
        *(row("dragin", "em", 55.0), row("dragin", "retrievals", 2.5)),
        *(row("fs", "em", 60.0), row("fs", "retrievals", None)),
        row("sr", "f1", 70.0),
    ]
    shown = budgets.quality_against_searches(exhibit, rows)
    assert "SR-RAG: 40 at 1.0 searches" in shown.alt
    assert "DRAGIN (equations): 55 at 2.5 searches" in shown.alt
    assert "FS-RAG" not in shown.alt
    other = budgets.quality_against_searches(exhibit, rows, "f1")
    assert "SR-RAG: 70 at 1.0" in other.alt
    assert isinstance(budgets.quality_against_searches(exhibit, rows[4:]), Note)
