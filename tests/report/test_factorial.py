"""Effects from half a design: signs, what is confused, and effects that were put in by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rag_repro.report import factorial
from rag_repro.report.factorial import Design, effect_of
from rag_repro.study import papers
from rag_repro.study.scores import Scores

FACTORS = ("erm4", "drrag", "dragin", "r2ag")
HALF = tuple(papers.load("together").exhibit("composition").methods)


def scored(values, n=40, first=0):
    ids = tuple(f"q{i}" for i in range(first, first + n))
    return Scores(ids, ids, np.broadcast_to(np.asarray(values, float), (n,)).copy())


def test_the_half_is_every_combination_of_an_even_number():
    design = Design.of(HALF, FACTORS)
    even = {
        frozenset(f for f, on in zip(FACTORS, flags, strict=True) if on)
        for flags in product((0, 1), repeat=4)
        if sum(flags) % 2 == 0
    }
    assert set(design.runs.values()) == even


def test_what_has_the_same_signs_stands_together():
    groups = Design.of(HALF, FACTORS).groups()
    assert [len(group) for group in groups] == [1, 1, 1, 1, 2, 2, 2]
    confused = {frozenset(group) for group in groups if len(group) == 2}
    assert frozenset({frozenset({"erm4", "drrag"}), frozenset({"dragin", "r2ag"})}) in confused
    # And a main effect with the three others together, of which no line is made.
    design = Design.of(HALF, FACTORS)
    assert design.signs(frozenset({"erm4"})) == design.signs(frozenset(FACTORS[1:]))


def test_effects_that_were_put_in_come_out():
    design = Design.of(HALF, FACTORS)
    gain = {"erm4": 6.0, "drrag": 0.0, "dragin": -10.0, "r2ag": 2.0}
    scores = {
        row: scored(50 + sum(gain[f] for f in on) + (4.0 if {"erm4", "drrag"} <= on else 0))
        for row, on in design.runs.items()
    }
    found = {
        effect: effect_of(design, effect, scores, "em").estimate for (effect, *_) in design.groups()
    }
    # The interaction of 4 points in one corner is half of it for each factor, and for both.
    assert found[frozenset({"erm4"})] == pytest.approx(8)
    assert found[frozenset({"drrag"})] == pytest.approx(2)
    assert found[frozenset({"dragin"})] == pytest.approx(-10)
    assert found[frozenset({"r2ag"})] == pytest.approx(2)
    assert found[frozenset({"erm4", "drrag"})] == pytest.approx(2)
    assert found[frozenset({"erm4", "dragin"})] == pytest.approx(0)


def test_an_interval_draws_questions_and_may_lie_below_nought():
    rng = np.random.default_rng(4)
    design = Design.of(HALF, FACTORS)
    scores = {
        row: scored(100 * (rng.random(200) < (0.3 if "dragin" in on else 0.5)), n=200)
        for row, on in design.runs.items()
    }
    drawn = effect_of(design, frozenset({"dragin"}), scores, "em").interval()
    assert drawn.lo < -20 < drawn.hi < 0
    assert drawn.n == 200


def test_only_questions_of_every_run_count():
    design = Design.of(HALF, FACTORS)
    scores = {row: scored(1, n=10) for row in design.runs} | {"none": scored(1, n=10, first=5)}
    assert effect_of(design, frozenset({"erm4"}), scores, "em").n == 5
    scores["none"] = scored(1, n=10, first=50)
    assert effect_of(design, frozenset({"erm4"}), scores, "em") is None


def test_a_design_that_is_out_of_balance_is_refused():
    with pytest.raises(ValueError, match="erm4 is not on in half of the 7 runs"):
        Design.of(HALF[:-1], FACTORS)
    with pytest.raises(ValueError, match="are none of"):
        Design.of(HALF, FACTORS[:3])


def test_what_came_out_is_said_in_words(monkeypatch):
    """ERM4 alone was put in, and nothing of two together."""
    names = {"erm4": "ERM4", "drrag": "DR-RAG", "dragin": "DRAGIN", "r2ag": "R²AG"}
    rng = np.random.default_rng(4)

    class Recorded:
        def scores(self, cell, metric):
            made = scored(50 + 20 * ("erm4" in cell.keys["method"]))
            return Scores(made.ids, made.clusters, made.values + rng.normal(0, 5, 40))

    exhibit = papers.load("together").exhibit("composition")
    told = str(factorial.answer(exhibit, Recorded(), Design.of(HALF, FACTORS), names))
    assert "EM: of each alone, 1 of the 4 intervals excludes zero: ERM4 +" in told
    assert "of two together, none of the 3 intervals excludes zero; open: ERM4 with DR-RAG" in told
    assert told.count("detectable") == 3 + 3
