"""Gains beside their sum, and a choice beside questions that did not make it."""

from __future__ import annotations

import numpy as np

from rag_repro.report import combined
from rag_repro.report.picture import Note
from rag_repro.study import papers
from rag_repro.study.scores import Results, Scores

TOGETHER = papers.load("together")
HEAD, HALF = TOGETHER.exhibit("head"), TOGETHER.exhibit("composition")
FRESH = TOGETHER.exhibit("confirmation")
NAMES = {"erm4": "ERM4", "drrag": "DR-RAG", "dragin": "DRAGIN", "r2ag": "R²AG"}
BARE = "single"


def of(values, world="B"):
    ids = tuple(f"{world}{i}" for i in range(len(values)))
    return Scores(ids, ids, np.array(values, dtype=float))


class Told(Results):
    def __init__(self, told):
        self.told = told

    def scores(self, cell, metric, keep=None):
        place = cell.keys["dataset"][6:], cell.keys["method"]
        return self.told.get(place) if cell.tier == "testbed" else None

    def lines(self, cell):
        return None


def test_what_two_bring_beyond_their_sum_by_hand():
    # None, one alone, the other, both: 0, 25, 25, 75; so 25 beyond the sum.
    told = {
        ("B", "single"): of([0, 0, 0, 0] * 10),
        ("B", "erm4"): of([100, 0, 0, 0] * 10),
        ("B", "drrag"): of([0, 100, 0, 0] * 10),
        ("B", "erm4_drrag"): of([100, 100, 100, 0] * 10),
        # One question less: the others are counted without it, too.
        ("B", "dragin"): of(([0, 0, 0, 100] * 10)[:39]),
        ("B", "erm4_dragin"): of(([100, 0, 0, 0] * 10)[:39]),
    }
    made = combined.sums(HEAD, HALF, Told(told), NAMES, BARE, "em")
    first, second = made.body
    assert first[0] == "ERM4 and DR-RAG"
    assert [cell.split()[0] for cell in first[1:5]] == ["+25.0", "+25.0", "+75.0", "+25.0"]
    assert first[-1] == 40
    assert second[0] == "ERM4 and DRAGIN"
    assert second[-1] == 39
    assert second[4].split()[0] == f"{-900 / 39:+.1f}"


def test_without_records_of_one_alone_no_pair_is_told():
    told = {("B", "single"): of([0] * 9), ("B", "erm4_drrag"): of([0] * 9)}
    assert isinstance(combined.sums(HEAD, HALF, Told(told), NAMES, BARE, "em"), Note)


def cells():
    pairs = []
    for exhibit, dataset in ((HALF, "world-B"), (FRESH, "world-C")):
        of_it = {c.keys["method"]: c for c in exhibit.cells() if c.keys["dataset"] == dataset}
        pairs.append((of_it["erm4_drrag"], of_it["none"]))
    return pairs
