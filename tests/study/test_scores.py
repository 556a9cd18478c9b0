"""Numbers out of records: which lines count, in which unit, drawn and paired how."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from rag_repro.evaluation import metrics
from rag_repro.evaluation.resampling import combine, resample
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results, Scores, paired, ratio, resampled, span
from rag_repro.study.scores import _drawn as kept_draws
from tests.study import mini


@pytest.fixture
def cell(tmp_path):
    """A cell with ten recorded questions: recall 1 for the first four, two questions a cluster."""
    paper = mini.paper(tmp_path, "")
    first = paper.exhibits["table1"].cells("public")[0]
    with open_record(tmp_path, first.condition, {}) as record:
        for i in range(10):
            scores = {"recall": float(i < 4), "passages": 3.0}
            if i == 9:
                del scores["recall"]
            kind = "comparison" if i % 2 else "bridge"
            line = {"id": f"q{i}", "kind": kind, "cluster": f"c{i // 2}", "hits": []}
            record.append(line | {"scores": scores})
    return first


def test_percentages_are_in_points_and_other_units_as_they_are(cell, tmp_path):
    results = Results(tmp_path)
    recall = results.scores(cell, "recall")
    assert recall.ids == tuple(f"q{i}" for i in range(9))  # q9 has no recall
    assert list(recall.values) == [100.0] * 4 + [0.0] * 5
    assert recall.clusters[:4] == ("c0", "c0", "c1", "c1")
    assert list(results.scores(cell, "passages").values) == [3.0] * 10
    assert len(results.scores(cell, "recall", lambda line: line["kind"] == "comparison")) == 4
    assert results.scores(cell, "em") is None
    assert (span("recall"), span("passages")) == (100.0, None)


def test_a_metric_that_a_method_cannot_have_is_not_scored(cell, tmp_path, monkeypatch):
    known = metrics.get("recall")
    for where, scored in (({"k": cell.condition.configured.k}, True), ({"k": 99}, False)):
        narrowed = dataclasses.replace(known, where=where)
        monkeypatch.setitem(metrics.METRICS, "recall", narrowed)
        assert (Results(tmp_path).scores(cell, "recall") is not None) is scored
    # Of methods without the setting it is defined.
    assert dataclasses.replace(known, where={"documents": "one_draft"}).defined(object())


def test_a_cell_reads_no_more_than_its_n(cell, tmp_path):
    few = dataclasses.replace(cell, n=5)
    results = Results(tmp_path)
    assert len(results.lines(few)) == 5
    assert resampled(results.scores(few, "recall"), "recall").interval().estimate == 80.0
    assert len(results.lines(cell)) == 10


def test_without_a_record_there_is_nothing(cell, tmp_path):
    other = dataclasses.replace(cell.condition, seed=1)
    idle = dataclasses.replace(cell, condition=other)
    assert Results(tmp_path).lines(idle) is None
    assert Results(tmp_path).scores(idle, "recall") is None


def scores(values, prefix="q", clusters=None):
    ids = tuple(f"{prefix}{i}" for i in range(len(values)))
    return Scores(ids, tuple(clusters or ids), np.array(values, dtype=float))


def test_the_interval_widens_where_questions_hang_together():
    values = [100.0, 0.0] * 4
    values = [v for v in values for _ in range(10)]  # eight groups of ten equal ones
    groups = [f"g{i // 10}" for i in range(80)]
    free, bound = (
        resampled(scores(values, clusters=c), "recall").interval() for c in (None, groups)
    )
    assert bound.width > 2.5 * free.width  # sqrt(10), times Student's t
    zero = scores([0.0] * 80, clusters=groups)
    pairs = [
        paired([(scores(values, clusters=c), zero)], "recall").interval() for c in (None, groups)
    ]
    assert pairs[1].width > 2.5 * pairs[0].width


def test_pairs_are_taken_over_the_questions_that_every_side_has():
    more, less = scores([100.0, 0.0, 100.0, 100.0]), scores([0.0, 0.0])
    assert paired([(more, less)], "recall").estimate == 50.0  # q0 and q1
    assert paired([(less, more)], "recall").estimate == -50.0
    assert paired([(more, less)], "recall").n == 2
    assert paired([(more, scores([1.0], prefix="other"))], "recall") is None


def test_questions_are_paired_by_name_not_by_place():
    more = scores([100.0, 0.0])
    less = Scores(("q1", "q0"), ("q1", "q0"), np.array([0.0, 100.0]))
    drawn = paired([(more, less)], "recall")
    assert (drawn.estimate, drawn.interval().lo) == (0.0, pytest.approx(-drawn.interval().hi))
    assert np.ptp(drawn.draws) == 0.0  # each question's difference is zero


def test_settings_that_share_their_questions_are_averaged_a_question_first():
    k3 = (scores([100.0, 0.0]), scores([0.0, 0.0]))
    k4 = (scores([0.0, 100.0]), scores([0.0, 0.0]))
    drawn = paired([k3, k4], "recall")
    # Each question gains 50 at one of the two k: their mean never varies.
    assert (drawn.estimate, drawn.n) == (50.0, 2)
    assert np.ptp(drawn.draws) == 0.0


def test_the_same_values_are_drawn_once_and_others_anew(monkeypatch):
    kept_draws.cache_clear()
    drawn = []
    real = resample
    monkeypatch.setattr(
        "rag_repro.study.scores.resample",
        lambda *given, **named: drawn.append(1) or real(*given, **named),
    )
    rng = np.random.default_rng(7)
    values = [float(v) for v in rng.choice([0, 50, 100], 40)]
    groups = [f"g{i // 4}" for i in range(40)]
    zero = scores([0.0] * 40, clusters=groups)
    first = resampled(scores(values, clusters=groups), "recall")
    assert resampled(scores(values, clusters=groups), "recall").draws is first.draws
    assert len(drawn) == 1
    # A difference is another thing than a level, though its values be the same.
    less = [paired([(scores(values, clusters=groups), zero)], "recall") for _ in range(2)]
    assert less[0].draws is less[1].draws
    assert np.array_equal(less[0].draws, first.draws)
    assert len(drawn) == 2
    ids = tuple(f"q{i}" for i in range(40))
    whole = Scores(ids, ids, np.array(values, dtype=int))
    others = [
        resampled(scores(values[::-1], clusters=groups), "recall"),
        resampled(whole, "recall"),  # no clusters
        resampled(scores(values, clusters=groups), "passages"),  # no span
    ]
    assert len(drawn) == 5
    assert all(other.draws is not first.draws for other in others)
    assert others[1].estimate == first.estimate == np.mean(values)  # whole numbers are numbers


def test_the_draws_are_the_same_in_whatever_order_one_asks():
    asked = [scores(np.random.default_rng(i).random(30) * 100) for i in range(3)]
    there = [resampled(one, "recall").interval() for one in asked]
    kept_draws.cache_clear()
    back = [resampled(one, "recall").interval() for one in reversed(asked)]
    assert there == back[::-1]


def test_a_level_is_the_mean_itself():
    assert paired([(scores([100.0, 0.0, 0.0, 0.0]),)], "recall").estimate == 25.0


def test_no_interval_goes_beyond_what_the_metric_can_be():
    one, full = scores([0.0] * 4 + [100.0]), scores([100.0] * 5)
    assert resampled(one, "recall").interval().lo == 0.0
    assert resampled(full, "recall").interval().hi == 100.0
    gain = paired([(one, scores([100.0] * 4 + [0.0]))], "recall").interval()
    assert (gain.estimate, gain.lo) == (-60.0, -100.0)
    assert paired([(full, one, one, full)], "recall").limits == (-200.0, 200.0)
    assert resampled(scores([0.0] * 4 + [9.0]), "passages").interval().lo == 0.0


def test_equal_differences_of_differences_allow_twice_as_much():
    one = scores([100.0] * 5)
    once, twice = (paired([sides], "recall").interval() for sides in ((one,) * 2, (one,) * 4))
    assert once.hi == pytest.approx(100 * (1 - 0.025**0.2))
    assert (twice.lo, twice.hi) == pytest.approx((-2 * once.hi, 2 * once.hi))


def test_a_ratio_is_in_percent_of_the_questions_that_both_have():
    more = Scores(("q0", "q1", "q2"), ("q0", "q1", "q2"), np.array([3.0, 1.0, 90.0]))
    less = Scores(("q1", "q0"), ("q1", "q0"), np.array([4.0, 4.0]))
    assert ratio([(more, less)], "seconds").estimate == pytest.approx(50.0)
    assert ratio([(more, less), (less, less)], "seconds").estimate == pytest.approx(75.0)
    nothing = Scores(less.ids, less.clusters, np.zeros(2))
    assert ratio([(more, nothing)], "seconds") is None
    assert ratio([(nothing, less)], "seconds").estimate == 0.0
    assert ratio([(more, Scores(("q9",), ("q9",), np.array([1.0])))], "seconds") is None


def test_a_ratio_of_one_training_each_borrows_how_far_others_lie():
    """By the derivatives of 100 A / B: with A = 3, B = 2 and 0.1 apart, 5 and 7.5 points."""
    more, less = (
        replace(scores(values), by_training={0: np.array(values)}, recipe=name, training_sd=0.1)
        for name, values in (("a", [3.0, 3.5, 2.5, 3.0] * 20), ("b", [2.0, 1.5, 2.5, 2.0] * 20))
    )
    drawn = ratio([(more, less)], "length")
    assert drawn.estimate == pytest.approx(150.0)
    assert drawn.borrowed == pytest.approx({"a": 5.0, "b": -7.5})
    # The same weights on both sides lie as far off on either, which leaves a part alone.
    same = ratio([(more, replace(less, recipe="a"))], "length")
    assert same.borrowed == pytest.approx({"a": -2.5})
    wide, narrow = drawn.interval(), replace(drawn, borrowed={}).interval()
    assert wide.lo < narrow.lo < narrow.hi < wide.hi


def test_a_share_that_no_question_shows_is_not_certain():
    none, all_ = scores([0.0] * 20), scores([100.0] * 20)
    assert ratio([(none, all_)], "recall").interval().hi == pytest.approx(
        100 * (1 - 0.025 ** (1 / 20))
    )


def test_a_ratio_is_never_below_nothing():
    few, whole = scores([0.0, 0.0, 0.0, 0.0, 50.0]), scores([10.0, 9.0, 8.0, 11.0, 10.0])
    assert ratio([(few, whole)], "length").interval().lo == 0.0
    trained = replace(few, by_training=dict.fromkeys((0, 1), few.values), recipe="a")
    assert ratio([(trained, whole)], "length").interval().lo == 0.0


def test_a_single_unit_allows_all_that_the_metric_can_be():
    alone = resampled(scores([100.0]), "recall").interval()
    assert (alone.lo, alone.hi) == (0.0, 100.0)


def test_limits_go_with_the_mean():
    one = resampled(scores([0.0] * 4 + [100.0]), "recall")
    assert combine([one, one]).limits == (0.0, 100.0)
    assert combine([one] * 3).limits == (0.0, 100.0)  # no gap of a rounding error


def test_a_count_is_not_below_zero_and_a_difference_of_counts_may_be():
    ids = tuple(f"q{i}" for i in range(12))
    few = Scores(ids, ids, np.array([0.0] * 11 + [60]))
    assert resampled(few, "length").interval().lo == 0
    assert resampled(few, "log_likelihood").interval().lo < 0  # a logarithm, which may be
    none = Scores(ids, ids, np.zeros(12))
    assert paired([(none, few)], "length").interval().lo < 0
