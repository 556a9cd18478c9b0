"""AUC, accuracy, Brier score and calibration error, worked by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.evaluation import calibration
from rag_repro.evaluation.calibration import Bin, Judgements
from rag_repro.evaluation.intervals import StatisticsError

# Question a: positive 0.9, negatives 0.4 and 0.1. Question b: positive 0.4, negative 0.62.
P = [0.9, 0.4, 0.1, 0.4, 0.62]
Y = [True, False, False, True, False]
UNITS = ["a", "a", "a", "b", "b"]


def rng():
    return np.random.default_rng(1)


@pytest.fixture
def little():
    return Judgements.from_labels(P, Y, UNITS)


@pytest.fixture
def many():
    draw = np.random.default_rng(0)
    y = draw.random(900) < 0.3
    p = np.clip(draw.normal(0.4 + 0.2 * y, 0.2), 0, 1).round(2)
    return Judgements.from_labels(p, y, [f"q{i // 3}" for i in range(900)])


def test_values_by_hand(little):
    # 0.9 beats all three; 0.4 ties with 0.4, beats 0.1 and loses to 0.62.
    assert calibration.auc(little, rng()).estimate == pytest.approx((3 + 1.5) / 6)
    # One positive of two, two negatives of three.
    assert calibration.accuracy(little, rng()).estimate == pytest.approx((1 / 2 + 2 / 3) / 2)
    squares = ((0.01 + 0.36) / 2 + (0.16 + 0.01 + 0.62**2) / 3) / 2
    assert calibration.brier(little, rng()).estimate == pytest.approx(squares)


def test_bins_and_their_error_by_hand(little):
    # Each positive weighs 1/4, each negative 1/6. Bin 0.4: a positive and a negative.
    share = (1 / 4) / (1 / 4 + 1 / 6)
    assert calibration.bins(little) == [
        Bin(pytest.approx(0.1), 0.0, 1),
        Bin(pytest.approx(0.4), pytest.approx(share), 2),
        Bin(pytest.approx(0.62), 0.0, 1),
        Bin(pytest.approx(0.9), 1.0, 1),
    ]
    parts = 0.1 / 6 + abs(0.4 - share) * (1 / 4 + 1 / 6) + 0.62 / 6 + 0.1 / 4
    assert calibration.ece(little, rng()).estimate == pytest.approx(parts)


def test_certainty_falls_into_the_last_bin():
    sure = Judgements.from_labels([1.0, 0.0], [True, False], ["a", "b"])
    assert calibration.bins(sure) == [Bin(0.0, 0.0, 1), Bin(1.0, 1.0, 1)]
    assert calibration.ece(sure, rng()).estimate == 0
    assert calibration.auc(sure, rng()).estimate == 1


def test_from_a_half_on_it_is_positive():
    edge = Judgements.from_labels([0.5, 0.5, 0.3], [True, False, False], ["a", "b", "c"])
    assert calibration.accuracy(edge, rng()).estimate == pytest.approx((1 + 1 / 2) / 2)


def test_auc_is_scikit_learns(many):
    metrics = pytest.importorskip("sklearn.metrics")
    made = calibration.auc(many, rng())
    assert made.estimate == pytest.approx(metrics.roc_auc_score(many.y, many.p))


def test_drawn_units_are_whole_questions(many):
    """The draws' AUC is that of the pairs of the questions drawn, each as often as drawn."""
    metrics = pytest.importorskip("sklearn.metrics")
    draws = 2000
    made = calibration.auc(many, rng(), draws)
    times = rng().multinomial(many.units, np.full(many.units, 1 / many.units), size=draws)
    values = [
        metrics.roc_auc_score(many.y, many.p, sample_weight=row[many.unit]) for row in times[:400]
    ]
    low, high = np.quantile(values, [0.025, 0.975])
    assert made.lo == pytest.approx(low, abs=0.012)
    assert made.hi == pytest.approx(high, abs=0.012)
    assert made.n == 300


def test_questions_whose_pairs_go_together_widen_the_interval(many):
    alone = Judgements.from_labels(many.p, many.y, [str(i) for i in range(900)])
    # Each question's pairs three times over: no more questions than before.
    thrice = Judgements.from_labels(
        np.tile(many.p, 3), np.tile(many.y, 3), [*map(str, range(900))] * 3
    )
    for statistic in (calibration.accuracy, calibration.brier, calibration.ece, calibration.auc):
        one, three = statistic(alone, rng(), 4000), statistic(thrice, rng(), 4000)
        assert three.estimate == pytest.approx(one.estimate)
        assert three.width == pytest.approx(one.width, rel=0.05)


def test_probabilities_that_are_right_are_calibrated():
    draw = np.random.default_rng(3)
    p = draw.random(40_000)
    y = draw.random(40_000) < p
    judged = Judgements.from_labels(p, y, [str(i % 200) for i in range(40_000)])
    assert calibration.ece(judged, rng(), 500).estimate < 0.015
    wrong = Judgements.from_labels(p**3, y, [str(i % 200) for i in range(40_000)])
    assert calibration.ece(wrong, rng(), 500).estimate > 0.2


@pytest.mark.parametrize("y", [[True, True], [False, False]])
def test_one_kind_alone_is_refused(y):
    with pytest.raises(StatisticsError, match="both are needed"):
        Judgements.from_labels([0.1, 0.2], y, ["a", "b"])


def test_a_single_question_has_no_interval():
    one = Judgements.from_labels([0.9, 0.1], [True, False], ["a", "a"])
    made = calibration.accuracy(one, rng())
    assert (made.estimate, made.lo, made.hi) == (1.0, 0.0, 1.0)


def test_the_gain_in_auc_is_drawn_on_both_sides_at_once(many):
    from sklearn import metrics

    worse = Judgements(many.p**2 - 0.4 * (np.arange(900) % 3 == 0), many.y, many.unit)
    made = calibration.auc_gain(many, worse, rng(), 4000)
    both = [metrics.roc_auc_score(many.y, side.p) for side in (many, worse)]
    assert made.estimate == pytest.approx(both[0] - both[1])
    # Where both sides move together their difference varies less than two drawn apart.
    apart = [calibration.auc(side, rng(), 4000).width for side in (many, worse)]
    assert made.width < 0.9 * np.hypot(*apart)
    # Alike in every draw: what three hundred questions may not have shown.
    same = calibration.auc_gain(many, many, rng(), 4000)
    unseen = 2 * (1 - 0.025 ** (1 / 300))
    assert (same.estimate, same.lo, same.hi) == pytest.approx((0, -unseen, unseen))


def test_a_gain_on_other_things_is_refused(many):
    for other in (
        Judgements(many.p, ~many.y, many.unit),
        Judgements(many.p, many.y, many.unit[::-1]),
    ):
        with pytest.raises(StatisticsError, match="the same things judged on both sides"):
            calibration.auc_gain(many, other, rng())


def test_a_perfect_score_over_three_questions_is_not_certain():
    units = [name for name in "abc" for _ in range(2)]
    perfect = Judgements.from_labels([0.9, 0.1] * 3, [True, False] * 3, units)
    got = calibration.auc(perfect, rng())
    assert (got.estimate, got.hi) == (1.0, 1.0)
    assert got.lo == pytest.approx(0.025 ** (1 / 3))
    gain = calibration.auc_gain(perfect, perfect, rng())
    assert gain.lo < 0 < gain.hi
