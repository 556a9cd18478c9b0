"""The same questions under every method, out of records written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_repro.report import alike, exhibits
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid, Paper
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

METHODS = {
    "short": ExhibitMethod("Short", "single_step", "bm25"),
    "long": ExhibitMethod("Long", "single_step", "bm25", {"k": 2}),
    "never": ExhibitMethod("Never", "single_step", "bm25", {"k": 7}),
    "aside": ExhibitMethod("Aside", "single_step", "bm25", {"k": 5}),
}
MAIN = Grid("testbed", ("world-B", "world-C"), ("short", "long", "never"), reader="smollm2-135m")
ASIDE = Grid("testbed", ("world-B",), ("aside",), reader="smollm2-135m", role="secondary")
EXHIBIT = Exhibit("mini.table1", "Answers", "", ("em",), METHODS, (MAIN, ASIDE))
PAPER = Paper("mini", "Mini", "Mini", "mini2026", Path(), {"table1": EXHIBIT}, ())
# Which questions are answered, and which of them rightly: of the later ones all.
ANSWERED = {
    ("world-B", "short"): range(0, 4),
    ("world-B", "long"): range(2, 10),
    ("world-B", "aside"): range(3, 4),
    ("world-C", "long"): range(0, 6),
}


@pytest.fixture
def results(tmp_path):
    for cell in EXHIBIT.cells():
        place = cell.condition.dataset, cell.keys["method"]
        if place in ANSWERED:
            with open_record(tmp_path, cell.condition, {}) as record:
                for i in ANSWERED[place]:
                    line = {"id": f"q{i}", "cluster": f"q{i}", "kind": "bridge", "hits": []}
                    record.append({**line, "scores": {"em": float(i > 3)}})
    return Results(tmp_path)


def values(results, keep):
    same = alike.Alike(results, filter(keep, EXHIBIT.cells()))
    made = exhibits.rows(PAPER, EXHIBIT, same)
    return made, {
        (row.keys["dataset"], row.keys["method"]): row.ours and (row.ours.estimate, row.ours.n)
        for row in made
        if keep(row)
    }


def test_means_are_of_the_questions_that_all_have(results):
    made, found = values(results, lambda row: row.role == "primary")
    assert found["world-B", "short"] == found["world-B", "long"] == (0.0, 2)  # q2 and q3
    assert found["world-B", "never"] is None
    # On another data set the other method has answered nothing, and limits nothing.
    assert found["world-C", "long"][1] == 6
    assert alike.questions([row for row in made if row.role == "primary"]) == (
        "2 of world-B, 6 of world-C"
    )


def test_what_is_not_shown_does_not_limit(results):
    _, found = values(results, lambda row: True)
    assert found["world-B", "long"][1] == 1  # q3, which the aside has as well
    whole = exhibits.rows(PAPER, EXHIBIT, results)
    assert max(row.ours.n for row in whole if row.ours) == 8
