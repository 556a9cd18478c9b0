"""A ratio of means: by hand, against the bootstrap of a mean, and how often it covers the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rag_repro.evaluation.intervals import StatisticsError
from rag_repro.evaluation.ratios import percent_interval, resample_ratio
from rag_repro.evaluation.resampling import resample


def rng():
    return np.random.default_rng(3)


def test_an_interval_of_shares_stays_within_nought_and_a_hundred():
    never, always = (
        percent_interval([value] * 30, rng=np.random.default_rng(0)) for value in (False, True)
    )
    assert (never.estimate, never.lo) == (0, 0)
    assert 0 < never.hi < 15
    assert (always.estimate, always.hi) == (100, 100)
    assert 85 < always.lo < 100


def test_an_interval_of_shares_is_that_of_their_mean_in_points():
    shares = [0, 0.5, 1, 1, 0, 0.25, 1, 0] * 5
    ours = percent_interval(shares, rng=np.random.default_rng(3))
    plain = resample(shares, rng=np.random.default_rng(3), span=1.0).interval()
    assert (ours.estimate, ours.lo, ours.hi) == pytest.approx(
        (100 * plain.estimate, 100 * plain.lo, 100 * plain.hi)
    )


def test_it_is_the_ratio_of_the_means_and_not_the_mean_of_the_ratios():
    drawn = resample_ratio([1.0, 9.0], [1.0, 3.0], rng=rng())
    assert (drawn.estimate, drawn.n) == (2.5, 2)


def test_over_a_constant_it_is_the_bootstrap_of_a_mean():
    values = np.random.default_rng(0).gamma(2.0, size=40)
    ratio = resample_ratio(values, np.full(40, 4.0), rng=rng()).interval()
    mean = resample(values, rng=rng()).interval()
    assert [ratio.lo, ratio.estimate, ratio.hi] == pytest.approx(
        [mean.lo / 4, mean.estimate / 4, mean.hi / 4]
    )


def test_sides_that_move_together_have_a_sharp_ratio():
    slow = np.random.default_rng(0).gamma(1.0, size=30) + 0.1
    interval = resample_ratio(3 * slow, slow, rng=rng()).interval()
    assert interval.width == pytest.approx(0, abs=1e-9)
    assert interval.estimate == pytest.approx(3)


@pytest.mark.parametrize(("above", "span"), [(0.0, 1.0), (1.0, 1.0)])
def test_a_ratio_that_is_the_same_everywhere_leaves_room_for_the_unseen(above, span):
    sides = np.full(20, above), np.ones(20)
    assert resample_ratio(*sides, rng=rng()).interval().width == 0
    told = resample_ratio(*sides, rng=rng(), span=span).interval()
    assert told.hi - told.estimate == pytest.approx(1 - 0.025 ** (1 / 20))


def test_clusters_are_drawn_whole():
    above, below = np.tile([1.0, 1.0, 5.0, 5.0], 5), np.ones(20)
    apart = resample_ratio(above, below, rng=rng()).interval()
    pairs = resample_ratio(above, below, rng=rng(), clusters=np.arange(20) // 2).interval()
    assert pairs.width > 1.3 * apart.width


def test_one_unit_allows_no_interval():
    interval = resample_ratio([4.0, 2.0], [2.0, 1.0], rng=rng(), clusters=["a", "a"]).interval()
    assert (interval.estimate, interval.lo, interval.hi) == (2.0, -math.inf, math.inf)


@pytest.mark.parametrize(
    ("above", "below", "message"),
    [
        ([1.0, 2.0], [1.0], "2 against 1 values"),
        ([[1.0], [2.0]], [[1.0], [2.0]], "one value a question"),
        ([1.0, 2.0], [1.0, -0.5], "from -0.5 to 1"),
        ([1.0, 2.0], [0.0, 0.0], "not all 0"),
        ([1.0, math.nan], [1.0, 1.0], "not finite"),
    ],
)
def test_what_has_no_ratio_is_refused(above, below, message):
    with pytest.raises(StatisticsError, match=message):
        resample_ratio(above, below, rng=rng())


def test_a_side_that_is_often_zero_may_have_no_upper_end():
    interval = resample_ratio([1.0] * 5, [1.0, 0.0, 0.0, 0.0, 0.0], rng=rng()).interval()
    assert interval.estimate == 5.0
    assert interval.hi > 1e6
    assert interval.lo < 5


def test_the_interval_holds_the_true_ratio_about_as_often_as_it_says():
    draw = np.random.default_rng(8)
    held = 0
    for _ in range(300):
        common = draw.gamma(2.0, size=30)
        above, below = common * draw.gamma(20.0, 0.1, size=30), common + 0.2
        interval = resample_ratio(above, below, rng=rng(), draws=1000).interval()
        held += interval.lo <= 4.0 / 2.2 <= interval.hi
    assert 0.90 <= held / 300 <= 0.98
