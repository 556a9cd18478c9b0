"""Who is beaten in quality and every cost at once."""

from __future__ import annotations

import numpy as np

from rag_repro.report import frontier
from rag_repro.report.picture import Note
from rag_repro.study import papers
from rag_repro.study.scores import Results, Scores

EXHIBIT = papers.load("together").exhibit("head")
COSTS = ["reader_calls", "retrievals"]
N = 40


def of(values, n=N, first=0):
    ids = tuple(f"q{i}" for i in range(first, first + n))
    return Scores(ids, ids, np.resize(np.array(values, dtype=float), n))


class Told(Results):
    """Scores by method and metric."""

    def __init__(self, told):
        self.told = told

    def scores(self, cell, metric, keep=None):
        if cell.keys["dataset"] != "world-B" or cell.keys["method"] not in self.told:
            return None
        return self.told[cell.keys["method"]].get(metric)

    def lines(self, cell):
        return None


def method(em, calls, searches, **more):
    return {"em": of(em, **more), "reader_calls": of([calls], **more),
            "retrievals": of([searches], **more)}  # fmt: skip


def beaten(told):
    made = frontier.table(EXHIBIT, Told(told), "testbed", "em", COSTS)
    return {line[1]: line[3] for line in made.body}


def test_beaten_by_what_is_no_worse_and_in_no_cost_dearer():
    told = {
        "none": method([0, 100, 0, 0], 1, 0),
        "single": method([100, 100, 0, 0], 1, 1),
        # No better than one search, and dearer in one cost of two.
        "drrag": method([100, 0, 100, 0], 1, 3),
        "multi": method([100, 100, 100, 0], 4, 4),
    }
    assert beaten(told) == {
        "no retrieval": "nobody",
        "one search": "nobody",
        "DR-RAG": "one search",
        "IRCoT": "nobody",
    }


def test_clearly_where_the_paired_interval_says_so():
    told = {"single": method([100, 100, 100, 0], 1, 1), "drrag": method([0, 100, 0, 0], 1, 1)}
    assert beaten(told)["DR-RAG"] == "one search (clearly)"


def test_equals_do_not_beat_each_other():
    told = {"single": method([100, 0], 1, 1), "drrag": method([0, 100], 1, 1)}
    assert set(beaten(told).values()) == {"nobody"}


def test_each_pair_is_compared_on_the_questions_that_both_have_answered():
    told = {
        "single": method([100, 100, 0, 0], 1, 1),
        # Worse where nobody else was asked, equal before, and as dear.
        "drrag": {
            **method([100, 100, 0, 0], 1, 1),
            "em": Scores(*[(*of([0]).ids, "z")] * 2, np.array([*of([100, 100, 0, 0]).values, 0.0])),
            "reader_calls": Scores(*[(*of([0]).ids, "z")] * 2, np.ones(N + 1)),
            "retrievals": Scores(*[(*of([0]).ids, "z")] * 2, np.ones(N + 1)),
        },
    }
    assert set(beaten(told).values()) == {"nobody"}


def test_a_method_that_nobody_ran_neither_beats_nor_stands_there():
    assert beaten({"none": method([0], 1, 0), "single": {"em": of([100])}}) == {
        "no retrieval": "nobody"
    }
    assert isinstance(frontier.table(EXHIBIT, Told({}), "testbed", "em", COSTS), Note)
