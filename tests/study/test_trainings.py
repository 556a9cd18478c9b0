"""What a row with one training borrows from those with several."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.evaluation.resampling import combine
from rag_repro.study.scores import Scores, hangs_on_one, paired
from rag_repro.study.trainings import between_training_sd


def scores(by_training, recipe="ours", spread=0.0, clusters=None):
    each = {seed: np.array(one, float) for seed, one in by_training.items()}
    values = np.mean([*each.values()], axis=0)
    ids = tuple(f"q{i}" for i in range(len(values)))
    return Scores(ids, clusters or ids, values, each, recipe=recipe, training_sd=spread)


def plain(values):
    ids = tuple(f"q{i}" for i in range(len(values)))
    return Scores(ids, ids, np.array(values, float))


LEVEL = {0: [10.0, 20, 30, 40], 1: [30.0, 40, 50, 60]}
"""Two trainings 20 points apart on every question: 200 is the variance of their means."""
MIXED = {0: [0.0, 100, 0, 100], 1: [100.0, 100, 100, 100]}
"""Means of 50 and 100: 1250. Left are -25, 25, -25, 25 and their opposites, whose squares sum to
5000: over 3 x 4 that is the noise of a mean of 4 questions."""


@pytest.mark.parametrize(
    ("rows", "variance"),
    [
        ([LEVEL], 200),
        ([MIXED], 1250 - 5000 / 12),
        ([LEVEL, MIXED], (200 + 1250 - 5000 / 12) / 2),
        ([{0: [0.0, 100], 1: [100.0, 0]}], 0),  # of means that are alike: not below zero
    ],
)
def test_how_far_trainings_lie_apart_beyond_their_questions(rows, variance):
    assert between_training_sd(map(scores, rows)) == pytest.approx(variance**0.5)


@pytest.mark.parametrize("rows", [[], [{0: [0.0, 100]}]])
def test_without_several_trainings_nobody_knows(rows):
    assert between_training_sd(map(scores, rows)) is None


def test_a_difference_hangs_on_one_training_where_nobody_knows_of_others():
    unknown, known = (scores({0: NOISE}, "ours", spread) for spread in (None, 0.0))
    theirs = scores({0: ZERO}, "theirs", None)
    assert hangs_on_one((unknown, theirs))
    assert hangs_on_one((unknown, plain(ZERO)))
    assert hangs_on_one((plain(ZERO), unknown))
    assert not hangs_on_one((known, plain(ZERO)))
    assert not hangs_on_one((plain(NOISE), plain(ZERO)))
    assert not hangs_on_one((unknown,))  # a level, of these weights
    # The same weights, by two metrics or with other inputs, and less what nothing was trained for.
    assert not hangs_on_one((unknown, unknown))
    assert not hangs_on_one((unknown, unknown, plain(ZERO), plain(ZERO)))
    # The same on the outer sides: minus what another made of it.
    assert not hangs_on_one((unknown, theirs, unknown, theirs))
    assert hangs_on_one((unknown, plain(ZERO), theirs, plain(ZERO)))
    two = scores({0: NOISE, 1: NOISE}, "ours", None)
    assert not hangs_on_one((two, scores({0: ZERO, 1: ZERO}, "theirs", None)))
    assert hangs_on_one((two, theirs))  # one in common


def test_three_trainings_weigh_as_two_pairs_do():
    three = {0: [0.0, 0], 1: [10.0, 10], 2: [20.0, 20]}  # 100, two degrees of freedom
    assert between_training_sd([scores(LEVEL), scores(three)]) == pytest.approx(
        ((200 + 200) / 3) ** 0.5
    )


def test_clusters_are_the_units():
    """Two units leave -50 and 50, 10000 in all, over 1 x 2 units of 2 questions squared: 1250."""
    bound = scores(MIXED, clusters=("a", "b", "a", "b"))
    assert between_training_sd([bound]) == pytest.approx(0, abs=1e-6)


NOISE = np.random.default_rng(1).normal(0, 10, 100)
ZERO = np.zeros(100)


def error_of(*sides):
    """Standard error that is borrowed, all recipes together."""
    drawn = paired([sides], "acc_line")
    return sum(error**2 for error in drawn.borrowed.values()) ** 0.5


def test_one_trained_side_adds_its_own_and_two_the_root_of_both():
    ours, theirs = (scores({0: NOISE}, name, 3.0) for name in ("ours", "theirs"))
    assert error_of(ours, plain(ZERO)) == error_of(plain(ZERO), ours) == 3
    assert error_of(ours, theirs) == pytest.approx(3 * 2**0.5)
    assert error_of(ours, plain(ZERO), theirs, plain(ZERO)) == pytest.approx(3 * 2**0.5)
    assert error_of(ours, theirs, ours, plain(ZERO)) == 3
    assert paired([(ours,)], "acc_line").borrowed == {}  # a level


def test_of_several_trainings_the_one_in_common_is_one():
    three = scores({0: NOISE, 1: NOISE, 2: NOISE}, "ours", 3.0)
    assert error_of(three, scores({0: ZERO}, "theirs", 3.0)) == pytest.approx(3 * 2**0.5)
    assert error_of(three, scores({0: ZERO, 1: ZERO}, "theirs", 3.0)) == 0
    assert error_of(three, plain(ZERO)) == 0


def test_the_same_weights_borrow_nothing():
    pairs = [scores({0: NOISE}, "ours", 3.0), scores({0: ZERO}, "ours", 3.0)]
    without = [scores({0: NOISE}), scores({0: ZERO})]
    told, bare = (paired([tuple(p)], "acc_line").interval() for p in (pairs, without))
    assert told == bare
    other = paired([(pairs[0], scores({0: ZERO}, "theirs", 3.0))], "acc_line").interval()
    assert other.width > bare.width * 1.5


def test_one_training_is_the_same_on_all_data_sets():
    """It does not average out over them, as questions do."""
    drawn = paired([(scores({0: NOISE}, "ours", 3.0), plain(ZERO))], "acc_line")
    assert combine([drawn] * 3).borrowed == {"ours": pytest.approx(3)}


@pytest.mark.parametrize(("spread", "least", "most"), [(0.0, 0.0, 0.85), (5.0, 0.93, 0.975)])
def test_one_training_a_side_is_covered_with_what_it_borrows(spread, least, most):
    """60 questions, two recipes as good as each other, trainings 5 points apart."""
    rng, covered, runs = np.random.default_rng(3), 0, 600
    for _ in range(runs):
        values = rng.normal(0, 5, (2, 1)) + rng.normal(0, 25, (2, 60))
        ours, theirs = (scores({0: v}, name, spread) for v, name in zip(values, "ab", strict=True))
        iv = paired([(ours, theirs)], "acc_line").interval()
        covered += iv.lo <= 0 <= iv.hi
    assert least <= covered / runs <= most
