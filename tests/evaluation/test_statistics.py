import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as exact
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from rag_repro.evaluation import bootstrap_draws
from rag_repro.evaluation.intervals import Interval, StatisticsError
from rag_repro.evaluation.power import mde_of
from rag_repro.evaluation.resampling import (
    DRAWS,
    _one_level,
    combine,
    resample,
    resample_difference,
)
from rag_repro.evaluation.significance import holm_intervals, mcnemar


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)


# ------------------------------------------------------------------- one level


def test_interval_is_near_the_t_interval_for_many_values(rng):
    values = rng.normal(0.2, 1, 400)
    got = resample(values, rng=rng).interval()
    low, high = stats.t.interval(0.95, 399, values.mean(), stats.sem(values))
    assert (got.estimate, got.n, got.level) == (values.mean(), 400, 0.95)
    assert got.lo == pytest.approx(low, abs=0.006)
    assert got.hi == pytest.approx(high, abs=0.006)


def test_quantiles_are_those_of_numpy(rng):
    for draws in (rng.normal(0, 1, 10_000), rng.integers(-3, 4, 10_000) / 35):
        drawn = replace(resample([0.0, 1.0], rng=rng), draws=draws)
        for alpha in (0.05, 0.0123, 0.001):
            levels = (alpha / 2, 1 - alpha / 2)
            np.testing.assert_allclose(drawn._quantiles(*levels), np.quantile(draws, levels))


def test_few_units_are_widened_to_student(rng):
    # Five values -2..2: sem = sqrt(2.5 / 5), t(4) = 2.776; the bootstrap's own
    # tails are those of 5^5 resamples, a little shorter than normal ones.
    got = resample([-2, -1, 0, 1, 2], rng=rng).interval()
    assert got.hi == pytest.approx(2.776 * math.sqrt(0.5), rel=0.06)
    assert got.hi == pytest.approx(-got.lo, rel=0.04)


def test_level_widens(rng):
    drawn = resample(rng.normal(0, 1, 200), rng=rng)
    ratio = drawn.interval(0.99).width / drawn.interval(0.95).width
    assert ratio == pytest.approx(2.576 / 1.960, rel=0.04)
    with pytest.raises(StatisticsError, match="draws are too few"):
        drawn.interval(0.9999)
    with pytest.raises(StatisticsError, match="between 0 and 1"):
        drawn.interval(95)


def test_the_law_of_a_draw(rng):
    scores = np.repeat([1.0, -1.0, 0.0], [30, 10, 60])
    drawn = _one_level(scores, np.ones(100), 40_000, rng)
    assert drawn.mean() == pytest.approx(0.2, abs=0.002)
    # variance of one draw: (0.4 - 0.04) / 100
    assert drawn.var() == pytest.approx(0.0036, rel=0.04)


def counted(units, draws, rng):
    return bootstrap_draws.over_draws(lambda times: times, units, draws, rng)


def test_counts_are_those_of_indices_drawn_one_by_one():
    indices = np.random.default_rng(3).integers(0, 7, size=(50, 7))
    expected = np.stack([np.bincount(row, minlength=7) for row in indices])
    assert (counted(7, 50, np.random.default_rng(3)) == expected).all()


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937])
def test_counts_kept_are_those_drawn_anew_and_leave_the_generator_where_it_would_be(
    kind, monkeypatch
):
    bootstrap_draws._kept.cache_clear()
    rngs = [np.random.Generator(kind(5)) for _ in range(3)]
    drawn, kept = (counted(11, 40, rng) for rng in rngs[:2])
    assert bootstrap_draws._kept.cache_info().hits == 1
    monkeypatch.setattr(bootstrap_draws, "KEPT", 0)
    anew = counted(11, 40, rngs[2])
    assert bootstrap_draws._kept.cache_info().misses == 1
    assert (drawn == kept).all()
    assert (drawn == anew).all()
    after = [counted(11, 40, rng) for rng in rngs]
    assert (after[0] == after[1]).all()
    assert (after[0] == after[2]).all()
    assert not (after[0] == drawn).all()  # the next draws are others


def test_a_statistic_cannot_change_the_counts_that_are_kept():
    def spoil(times):
        times[:] = 0
        return times

    first, spoilt, again = (
        bootstrap_draws.over_draws(of, 5, 9, np.random.default_rng(1))
        for of in (np.copy, spoil, np.copy)
    )
    assert (first == again).all()
    assert not spoilt.any()


def test_many_units_are_drawn_in_parts(rng):
    units, draws = bootstrap_draws.KEPT // 5_000 + 1, 5_000
    seen = []
    means = bootstrap_draws.over_draws(lambda t: seen.append(len(t)) or t.sum(1), units, draws, rng)
    assert sum(seen) == draws
    assert len(seen) > 2
    assert (means == units).all()


def test_same_generator_same_interval():
    values = np.arange(20.0)
    a, b = (resample(values, rng=np.random.default_rng(5)).interval() for _ in range(2))
    assert a == b


def test_paired_difference_uses_the_pairing(rng):
    ability = rng.normal(0, 3, 100)
    ours, theirs = ability + 0.5 + rng.normal(0, 0.1, 100), ability
    got = resample_difference(ours, theirs, rng=rng).interval()
    assert 0.45 < got.lo < got.estimate < got.hi < 0.55
    with pytest.raises(StatisticsError, match="100 against 99"):
        resample_difference(ours, theirs[:99], rng=rng).interval()


# ------------------------------------------------------------ clusters and seeds


def test_clusters_are_the_unit(rng):
    # Every cluster says one thing ten times: the interval must be that of the
    # 20 clusters, sqrt(10) times as wide as that of 200 questions.
    said = rng.normal(0, 1, 20)
    clusters = np.repeat([f"world-B/{i}" for i in range(20)], 10)
    by_question = resample(np.repeat(said, 10), rng=rng).interval()
    by_cluster = resample(np.repeat(said, 10), rng=rng, clusters=clusters).interval()
    plain = resample(said, rng=rng).interval()
    assert by_cluster.n == 200
    assert by_cluster.width == pytest.approx(plain.width, rel=0.04)
    assert by_cluster.width > 3 * by_question.width
    with pytest.raises(StatisticsError, match="19 cluster labels for 20 questions"):
        resample(said, rng=rng, clusters=list(range(19))).interval()


def test_clusters_of_unequal_size_weigh_by_questions(rng):
    values = [1.0] * 9 + [0.0]
    got = resample(values, rng=rng, clusters=["a"] * 9 + ["b"]).interval()
    assert got.estimate == 0.9
    pairs = _one_level(np.array([9.0, 0.0]), np.array([9.0, 1.0]), 4_000, rng)
    assert set(np.round(pairs, 3)) == {0.0, 0.9, 1.0}  # two of b; one each; two of a


def test_clusters_of_few_kinds(rng):
    # 30 clusters of (1, 0) and 30 single 1: mean 60 / 90, a ratio of two sums
    values = [1.0, 0.0] * 30 + [1.0] * 30
    labels = list(np.repeat(np.arange(30), 2)) + list(range(30, 60))
    drawn = resample(values, rng=rng, clusters=labels)
    assert drawn.estimate == pytest.approx(2 / 3)
    assert drawn.draws.mean() == pytest.approx(2 / 3, abs=0.005)
    # delta method: sd of (sum - 2/3 size) a cluster is 1/3: se = 1/3 sqrt(60) / 90
    assert drawn.draws.std() == pytest.approx(60**0.5 / 270, rel=0.06)


def test_seeds_add_their_own_spread(rng):
    questions = rng.normal(0, 1, 200)
    seeds = np.array([-0.5, 0.0, 0.5])[:, None]
    one = resample(questions, rng=rng).interval()
    three = resample(questions + seeds, rng=rng).interval()
    assert three.estimate == pytest.approx(one.estimate)
    # seed part: sd 0.5, se 0.5 / sqrt(3) = 0.29 on about 2.2 degrees of freedom
    assert 0.7 < three.width / 2 < 1.5
    assert three.width > 5 * one.width
    still = resample(np.stack([questions] * 3), rng=rng).interval()
    assert still.width == pytest.approx(one.width, rel=0.05)


def test_seeds_spread_is_unbiased(rng):
    # The mean of three seeds at -0.5, 0, 0.5 has variance 0.25 / 3, on two degrees of freedom.
    values = np.array([-0.5, 0.0, 0.5])[:, None] + rng.normal(0, 1e-6, (1, 50))
    drawn = resample(values, rng=rng)
    assert drawn.trainings == pytest.approx({0: -0.5, 1: 0.0, 2: 0.5}, abs=1e-5)
    assert drawn.interval().hi == pytest.approx(4.3027 * (0.25 / 3) ** 0.5, rel=0.02)


def test_the_same_seeds_do_not_average_out_over_data_sets(rng):
    """Three data sets share three trainings: their spread stays, that of the questions falls."""
    seeds = np.array([-0.5, 0.0, 0.5])[:, None]
    parts = [resample(seeds + rng.normal(0, 1, (1, 200)), rng=rng) for _ in range(3)]
    whole = combine(parts)
    assert whole.trainings == pytest.approx({0: -0.5, 1: 0.0, 2: 0.5})
    assert whole.interval().width == pytest.approx(parts[0].interval().width, rel=0.15)
    # A data set's own luck with a training does average out.
    turned = combine([parts[0], resample(-seeds + rng.normal(0, 1, (1, 200)), rng=rng)])
    assert turned.trainings == pytest.approx({0: 0.0, 1: 0.0, 2: 0.0}, abs=1e-9)


def test_one_seed_or_one_question_allows_no_interval(rng):
    for values in ([0.7], [[0.1, 0.2, 0.3]], np.ones((1, 4))):
        got = resample(values, rng=rng).interval()
        assert (got.lo, got.hi) == (-math.inf, math.inf)
    assert resample([0.7], rng=rng).p_value() == 1
    one_cluster = resample([0.0, 1.0], rng=rng, clusters=["a", "a"]).interval()
    assert one_cluster.hi == math.inf


# --------------------------------------------------------------------- degenerate


def test_no_question_is_an_error(rng):
    with pytest.raises(StatisticsError, match="no question was scored"):
        resample([], rng=rng).interval()
    with pytest.raises(StatisticsError, match="1 of 3 values are not finite"):
        resample([1, math.nan, 2], rng=rng).interval()
    with pytest.raises(StatisticsError, match="3 dimensions"):
        resample(np.zeros((2, 2, 2)), rng=rng).interval()


def test_equal_values_have_zero_width_or_what_may_be_unseen(rng):
    bare = resample(np.full(50, 0.25), rng=rng).interval()
    assert (bare.lo, bare.hi) == (0.25, 0.25)
    # Clopper-Pearson: 0 of 50 has the upper limit 1 - 0.025^(1/50) = 0.0711
    wide = resample(np.zeros(50), rng=rng, span=1.0).interval()
    assert wide.hi == pytest.approx(stats.beta.ppf(0.975, 1, 50))
    assert wide.lo == -wide.hi
    grouped = resample(np.zeros(50), rng=rng, span=1.0, clusters=np.arange(50) // 10).interval()
    assert grouped.hi == pytest.approx(1 - 0.025**0.2)


def test_interval_must_hold_its_estimate():
    with pytest.raises(StatisticsError, match="must hold its estimate"):
        Interval(0.5, 0.6, 0.7, 10)
    iv = Interval(0.5, 0.4, 0.7, 10)
    assert iv.flipped() == Interval(-0.5, -0.7, -0.4, 10)
    assert iv.shifted(0.1).lo == pytest.approx(0.5)
    assert iv.scaled(100) == Interval(50, 40, 70, 10)


# ------------------------------------------------------------------- combinations


def test_macro_average_weighs_data_sets_alike(rng):
    a, b = rng.normal(1, 1, 900), rng.normal(3, 1, 100)
    cells = [resample(x, rng=rng) for x in (a, b)]
    got = combine(cells).interval()
    assert got.estimate == pytest.approx((a.mean() + b.mean()) / 2)
    assert got.n == 1000
    se = math.sqrt(a.var(ddof=1) / 900 + b.var(ddof=1) / 100) / 2
    assert got.width / 2 == pytest.approx(1.97 * se, rel=0.05)


def test_cells_drawn_with_one_seed_do_not_move_together(rng):
    values = rng.normal(0, 1, 100)
    same = [resample(values, rng=np.random.default_rng(1)) for _ in range(2)]
    alone = same[0].interval().width
    assert combine(same).interval().width == pytest.approx(alone / 2**0.5, rel=0.03)
    assert combine(same).interval() == combine(same).interval()


def test_units_that_are_alike_leave_room_for_what_they_have_not_shown(rng):
    # Four clusters, each with one right and one wrong: no draw differs from another.
    clusters = [label for label in "abcd" for _ in range(2)]
    got = resample([0.0, 1.0] * 4, rng=rng, clusters=clusters, span=1.0).interval()
    reach = 1 - 0.025 ** (1 / 4)
    assert (got.lo, got.hi) == pytest.approx((0.5 - reach, 0.5 + reach))


def test_cells_of_one_family_are_no_two_samples(rng):
    values = rng.normal(0, 1, 100)
    other = resample(rng.normal(0, 1, 50), rng=rng)
    same = [resample(values, rng=np.random.default_rng(seed)) for seed in (1, 2)]
    alone = same[0].interval()
    # The same questions twice: no narrower than once, and no more questions.
    twice = combine(same, families=["nq", "nq"]).interval()
    assert (twice.n, twice.width) == (100, pytest.approx(alone.width, rel=0.03))
    # Where each is its own nothing changes, to the last digit.
    parts = [*same, other]
    assert combine(parts, families=[0, 1, 2]).interval() == combine(parts).interval()
    # A third of the weight each: two move together, the other for itself.
    got = combine(parts, families=["nq", "nq", "x"]).interval()
    want = math.hypot(2 * alone.width, other.interval().width) / 3
    assert (got.n, got.width) == (150, pytest.approx(want, rel=0.04))


def test_combine_refuses_nonsense(rng):
    one = resample([0.0, 1.0], rng=rng)
    with pytest.raises(StatisticsError, match="nothing to combine"):
        combine([])
    with pytest.raises(StatisticsError, match="1 families for 2"):
        combine([one, one], families=["nq"])
    with pytest.raises(StatisticsError, match="cannot be combined"):
        combine([one, resample([0.0, 1.0], rng=rng, draws=100)])
    assert combine([one, resample([1.0], rng=rng)]).interval().hi == math.inf
    unseen = combine([resample(np.zeros(50), rng=rng, span=1.0)] * 2).interval()
    assert unseen.hi == pytest.approx(1 - 0.025 ** (1 / 50))


def one_sided(losses, gains, n=60):
    return np.array([-1.0] * losses + [1.0] * gains + [0.0] * (n - losses - gains))


def test_a_side_that_no_question_shows_stays_open(rng):
    most = 1 - 0.025 ** (1 / 60)

    def ends(values, **given):
        return resample(values, rng=rng, span=1.0, **given).interval()

    none = ends(one_sided(0, 0), signed=True)
    one = ends(one_sided(1, 0), signed=True)
    assert none.hi == pytest.approx(most)
    assert one.hi == pytest.approx(most - 1 / 60)
    assert one.lo == pytest.approx(ends(one_sided(1, 0)).lo, abs=0.002)  # losses were seen
    assert ends(one_sided(0, 1), signed=True).lo == pytest.approx(1 / 60 - most)
    # Gains were seen; or the bootstrap reaches further; or these are scores, and no differences.
    assert ends(one_sided(3, 1), signed=True).hi == pytest.approx(
        ends(one_sided(3, 1)).hi, abs=0.003
    )
    assert ends(one_sided(30, 0), signed=True).hi == pytest.approx(
        ends(one_sided(30, 0)).hi, abs=0.03
    )
    assert ends(one_sided(0, 1)).lo > -0.03
    assert resample_difference(
        one_sided(0, 0), one_sided(0, 1), rng=rng, span=1.0
    ).interval().hi == pytest.approx(most - 1 / 60)


def test_what_may_be_unseen_is_as_large_as_what_was_seen(rng):
    small = resample(
        np.full(100, 0.01) * rng.uniform(0.8, 1.2, 100), rng=rng, span=1.0, signed=True
    )
    assert 0.009 < small.interval().lo < small.interval().hi < 0.012


def test_unseen_sides_are_combined(rng):
    lost = resample(one_sided(1, 0), rng=rng, span=1.0, signed=True)
    most = 1 - 0.025 ** (1 / 60)
    assert combine([lost, lost]).interval().hi == pytest.approx(most - 1 / 60)


def test_a_true_gain_is_seldom_ruled_out_by_a_sample_without_one(rng):
    missed = 0
    for _ in range(400):
        kinds = rng.choice([-1.0, 0.0, 1.0], size=60, p=[0.01, 0.96, 0.03])
        drawn = resample(kinds, rng=rng, span=1.0, signed=True, draws=500)
        missed += drawn.interval().hi < 0.02
    assert missed / 400 < 0.03  # 8 % without room for gains


# -------------------------------------------------------------------------- tests


def test_mcnemar_is_the_exact_binomial():
    ours = [1] * 12 + [0] * 4 + [1] * 30 + [0] * 20
    theirs = [0] * 12 + [1] * 4 + [1] * 30 + [0] * 20
    got = mcnemar(ours, theirs)
    assert (got.only_ours, got.only_theirs) == (12, 4)
    assert got.p == pytest.approx(exact([[30, 12], [4, 20]], exact=True).pvalue)
    assert mcnemar([1, 0], [1, 0]).p == 1
    with pytest.raises(StatisticsError, match="0 and 1"):
        mcnemar([0.5, 1], [0, 1])
    with pytest.raises(StatisticsError, match="on both sides"):
        mcnemar([1, 1], [0])


def test_holm_intervals_widen_in_order_and_stop(rng):
    noise = rng.normal(0, 1, 400)
    noise -= noise.mean()
    contrasts = {
        name: resample(noise + shift, rng=rng)
        for name, shift in {"none": 0.0, "large": 0.5, "middle": 0.13, "small": 0.06}.items()
    }
    got = holm_intervals(contrasts)
    assert list(got) == list(contrasts)
    alphas = {name: round(1 - iv.level, 6) for name, iv in got.items()}
    # large: 0.05 / 4, middle: 0.05 / 3 (p 0.01), small (p 0.2) fails at 0.05 / 2 and stops it
    assert alphas == {"large": 0.0125, "middle": 0.016667, "small": 0.025, "none": 0.025}
    rejected = multipletests([c.p_value() for c in contrasts.values()], method="holm")[0]
    assert [not iv.lo <= 0 <= iv.hi for iv in got.values()] == list(rejected)
    assert got["large"].width > contrasts["large"].interval().width


def test_holm_goes_by_what_a_contrast_is_judged_against(rng):
    """Levels far from zero are no finding where they are to lie above one half."""
    noise = rng.normal(0, 10, 400)
    noise -= noise.mean()
    levels = {"half": 50.0, "above": 55.0, "like": 0.0}
    contrasts = {name: resample(noise + at, rng=rng) for name, at in levels.items()}
    got = holm_intervals(contrasts, bounds={"half": [50], "above": [50], "like": [-3, 3]})
    alphas = {name: round(1 - iv.level, 6) for name, iv in got.items()}
    # "like" is told from both ends of its margin and "above" from one half; "half" is not.
    assert sorted(alphas.values()) == [0.016667, 0.025, 0.05]
    assert alphas["half"] == 0.05
    # Against zero it would have come first, and left the others at less than is theirs.
    assert round(1 - holm_intervals(contrasts)["half"].level, 6) < 0.05


def test_p_value_is_where_the_interval_meets_zero(rng):
    values = rng.normal(0.15, 1, 300)
    drawn = resample(values, rng=rng)
    p = drawn.p_value()
    assert p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=0.3)
    assert drawn.interval(1 - p * 1.05).lo > 0 > drawn.interval(1 - p * 0.95).lo
    assert resample(np.ones(50), rng=rng).p_value() == 10 / DRAWS
    assert resample(np.zeros(50), rng=rng).p_value() == 1


# -------------------------------------------------------------------------- power


def test_mde_of_an_interval_is_that_of_normal_theory(rng):
    d = rng.choice([-1.0, 0, 1], 500, p=[0.1, 0.75, 0.15])
    want = TTestPower().solve_power(nobs=500, alpha=0.05, power=0.8) * d.std(ddof=1)
    drawn = resample(d, rng=rng)
    assert mde_of(drawn.interval()) == pytest.approx(want, rel=0.03)
    # half width 0.05 at 99 %: 0.05 · (2.5758 + 0.8416) / 2.5758
    assert mde_of(Interval(0, -0.05, 0.05, 9, 0.99)) == pytest.approx(0.06634, abs=1e-5)
    # Holm's wider interval resolves less
    assert mde_of(drawn.interval(0.99)) > 1.15 * want
