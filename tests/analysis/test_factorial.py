"""Effects from half a design: signs, what is confused, and effects that were put in by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rag_repro.analysis.factorial import Design, beyond_sum, effect_of
from rag_repro.study import papers
from rag_repro.study.scores import Scores

FACTORS = ("erm4", "drrag", "dragin", "r2ag")
HALF = tuple(papers.load("together").exhibit("composition").methods)


def scored(values, n=40, first=0):
    ids = tuple(f"q{i}" for i in range(first, first + n))
    return Scores(ids, ids, np.broadcast_to(np.asarray(values, float), (n,)).copy())


def test_the_half_is_every_combination_of_an_even_number():
    design = Design.from_rows(HALF, FACTORS)
    even = {
        frozenset(f for f, on in zip(FACTORS, flags, strict=True) if on)
        for flags in product((0, 1), repeat=4)
        if sum(flags) % 2 == 0
    }
    assert set(design.runs.values()) == even


def test_what_has_the_same_signs_stands_together():
    groups = Design.from_rows(HALF, FACTORS).groups()
    assert [len(group) for group in groups] == [1, 1, 1, 1, 2, 2, 2]
    confused = {frozenset(group) for group in groups if len(group) == 2}
    assert frozenset({frozenset({"erm4", "drrag"}), frozenset({"dragin", "r2ag"})}) in confused
    # And a main effect with the three others together, of which no line is made.
    design = Design.from_rows(HALF, FACTORS)
    assert design.signs(frozenset({"erm4"})) == design.signs(frozenset(FACTORS[1:]))


def test_effects_that_were_put_in_come_out():
    design = Design.from_rows(HALF, FACTORS)
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
    design = Design.from_rows(HALF, FACTORS)
    scores = {
        row: scored(100 * (rng.random(200) < (0.3 if "dragin" in on else 0.5)), n=200)
        for row, on in design.runs.items()
    }
    drawn = effect_of(design, frozenset({"dragin"}), scores, "em").interval()
    assert drawn.lo < -20 < drawn.hi < 0
    assert drawn.n == 200


def test_only_questions_of_every_run_count():
    design = Design.from_rows(HALF, FACTORS)
    scores = {row: scored(1, n=10) for row in design.runs} | {"none": scored(1, n=10, first=5)}
    assert effect_of(design, frozenset({"erm4"}), scores, "em").n == 5
    scores["none"] = scored(1, n=10, first=50)
    assert effect_of(design, frozenset({"erm4"}), scores, "em") is None


def test_a_design_that_is_out_of_balance_is_refused():
    with pytest.raises(ValueError, match="erm4 is not on in half of the 7 runs"):
        Design.from_rows(HALF[:-1], FACTORS)
    with pytest.raises(ValueError, match="are none of"):
        Design.from_rows(HALF, FACTORS[:3])


def test_effects_are_named_as_they_stand_together():
    design = Design.from_rows(HALF, FACTORS)
    names = {"erm4": "ERM4", "drrag": "DR-RAG", "dragin": "DRAGIN", "r2ag": "R²AG"}
    told = [design.describe(group, names) for group in design.groups()]
    assert told[0] == "ERM4"
    assert told[4] == "ERM4 with DR-RAG or DRAGIN with R²AG"


def test_what_two_bring_beyond_their_sum_by_hand():
    # None, one alone, the other, both: 0, 25, 25, 75; so 25 beyond the sum.
    both, first, second, none = (
        scores_of(values * 10)
        for values in ([100, 100, 100, 0], [100, 0, 0, 0], [0, 100, 0, 0], [0, 0, 0, 0])
    )
    found = beyond_sum(both, first, second, none, "em")
    assert [one.estimate for one in found] == [25, 25, 75, 25]
    assert {one.n for one in found} == {40}
    # One question less on a side: the others are counted without it, too.
    assert beyond_sum(both, first.at(first.ids[:39]), second, none, "em")[3].n == 39
    assert beyond_sum(both, first, scored(0, first=90), none, "em") is None


def scores_of(values):
    ids = tuple(f"q{i}" for i in range(len(values)))
    return Scores(ids, ids, np.array(values, dtype=float))
