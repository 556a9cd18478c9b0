"""How well popularity tells what memory holds, on questions made to order."""

from __future__ import annotations

import numpy as np

from rag_repro.analysis import popularity
from rag_repro.study.scores import Scores


def scores(values):
    names = tuple(f"q{i}" for i in range(len(values)))
    return Scores(names, names, np.array(values, float))


def test_popularity_and_the_largest_similarity_have_areas_of_their_own():
    # Popularity 4, 2, 0 in turn at τ 0.5, one less for each tenth; gold with the first.
    by_tau = {
        tau: scores([max(0, (4, 2, 0)[i % 3] - round(10 * (tau - 0.5))) for i in range(9)])
        for tau in (0.9, 0.5, 0.7)
    }
    found = popularity.areas(by_tau, scores([100 * (i % 3 == 0) for i in range(9)]))
    assert [*found] == [*(f"popularity, τ {tau}" for tau in (0.5, 0.7, 0.9)), "largest similarity"]
    assert found["popularity, τ 0.5"].estimate == 100
    # At 0.9 nothing is similar enough: half of all comparisons.
    assert found["popularity, τ 0.9"].estimate == 50
    assert found["largest similarity"].estimate == 100


def test_one_similar_title_is_enough_for_the_largest_similarity():
    by_tau = {tau: scores([1, tau <= 0.4] * 3) for tau in (0.3, 0.8)}
    found = popularity.areas(by_tau, scores([100, 0] * 3))
    assert found["largest similarity"].estimate == 100
    assert found["popularity, τ 0.3"].estimate == 50


def test_questions_that_are_all_alike_have_no_area():
    assert set(popularity.areas({0.5: scores([1, 2])}, scores([0, 0])).values()) == {None}


def test_questions_without_a_popularity_are_left_out():
    found = popularity.areas({0.5: scores([2, 0])}, scores([100, 0, 100]))
    assert found["popularity, τ 0.5"].n == 2
