import math

import numpy as np
import pytest

from rag_repro.evaluation import verdicts as vd
from rag_repro.evaluation.intervals import Interval
from rag_repro.evaluation.resampling import resample_difference


def iv(lo, hi, estimate=None, n=100, level=0.95):
    return Interval((lo + hi) / 2 if estimate is None else estimate, lo, hi, n, level)


# ------------------------------------------------------------- the table, by rule


@pytest.mark.parametrize(
    ("lo", "hi", "word", "on_testbed"),
    [
        (0.01, 0.09, vd.REPRODUCED, vd.HOLDS),
        (0.01, 0.05, vd.REPRODUCED, vd.HOLDS),  # hi = delta is enough
        (0.06, 0.09, vd.REPRODUCED, vd.HOLDS),
        (0.01, 0.049, vd.DIRECTION_ONLY, vd.HOLDS),
        (0.0, 0.049, vd.NOT_REPRODUCED, vd.FAILS),  # lo = 0 is not enough
        (-0.09, -0.01, vd.NOT_REPRODUCED, vd.FAILS),
        (0.0, 0.05, vd.INCONCLUSIVE, vd.INCONCLUSIVE),
        (-0.01, 0.09, vd.INCONCLUSIVE, vd.INCONCLUSIVE),
        (-math.inf, math.inf, vd.INCONCLUSIVE, vd.INCONCLUSIVE),
    ],
)
def test_difference(lo, hi, word, on_testbed):
    interval = iv(lo, hi, estimate=min(max(0.03, lo), hi))
    got = vd.of_difference(interval, 0.05)
    assert got.word == word
    assert (got.interval, got.delta) == (interval, 0.05)
    assert vd.of_difference(interval, 0.05, tier="paper").word == word
    assert vd.of_difference(interval, 0.05, tier="testbed").word == on_testbed


@pytest.mark.parametrize(
    ("lo", "hi", "reason"),
    [
        (-9.0, -1.0, "the interval lies wholly against the claim"),
        (-9.0, 0.0, "the interval holds 0 and ends below δ"),
        (-9.0, 9.0, "the interval holds both 0 and δ"),
    ],
)
def test_a_reason_is_true_of_its_interval(lo, hi, reason):
    assert vd.of_difference(iv(lo, hi), 5.0).reason == reason


def test_testbed_never_says_reproduced():
    grid = np.linspace(-0.2, 0.2, 9)
    for lo in grid:
        for hi in grid[grid >= lo]:
            for made in (
                vd.of_difference(iv(lo, hi), 0.05, tier="testbed"),
                vd.of_equivalence(iv(lo, hi), 0.05, tier="testbed"),
                vd.of_no_loss(iv(lo, hi), 0.05, tier="testbed"),
                vd.of_level(iv(lo, hi), 0.1, 0.05, tier="testbed"),
            ):
                assert made.word in (vd.HOLDS, vd.FAILS, vd.INCONCLUSIVE)


def test_minimum_detectable_effect_stands_beside():
    # half width 0.05 at 95 %: 0.05 · (1.96 + 0.8416) / 1.96
    assert vd.of_difference(iv(-0.01, 0.09), 0.05).mde == pytest.approx(0.07147, abs=1e-5)


@pytest.mark.parametrize("delta", [0, -0.1, math.nan, math.inf])
def test_margin_must_be_positive(delta):
    for fn in (vd.of_difference, vd.of_equivalence, vd.of_no_loss):
        with pytest.raises(ValueError, match="must be a positive number"):
            fn(iv(0, 1), delta)


def test_unknown_tier_is_refused():
    with pytest.raises(ValueError, match="none of testbed"):
        vd.of_difference(iv(0, 1), 0.1, tier="private")


@pytest.mark.parametrize(
    ("lo", "hi", "word"),
    [
        (-0.02, 0.02, vd.REPRODUCED),
        (0.01, 0.02, vd.REPRODUCED),  # a difference, but within the margin
        (0.04, 0.09, vd.NOT_REPRODUCED),
        (-0.09, -0.04, vd.NOT_REPRODUCED),
        (-0.03, 0.02, vd.INCONCLUSIVE),  # touches the margin
        (0.02, 0.04, vd.INCONCLUSIVE),
        (-0.05, 0.05, vd.INCONCLUSIVE),
    ],
)
def test_equivalence(lo, hi, word):
    assert vd.of_equivalence(iv(lo, hi), 0.03).word == word


@pytest.mark.parametrize(
    ("lo", "hi", "word"),
    [
        (-0.02, 0.5, vd.REPRODUCED),
        (-0.03, 0.5, vd.UNDECIDABLE),
        (-0.09, -0.01, vd.INCONCLUSIVE),
        (-0.09, -0.04, vd.NOT_REPRODUCED),
    ],
)
def test_no_loss(lo, hi, word):
    assert vd.of_no_loss(iv(lo, hi), 0.03).word == word


def test_level():
    assert vd.of_level(iv(0.97, 0.985), 0.98, 0.02).word == vd.REPRODUCED
    assert vd.of_level(iv(0.90, 0.94), 0.98, 0.02).word == vd.NOT_REPRODUCED
    got = vd.of_level(iv(0.95, 0.985), 0.98, 0.02)
    assert got.word == vd.INCONCLUSIVE
    assert got.interval == iv(0.95, 0.985)  # the value itself is shown, not the difference
    assert "around 0.98" in got.reason


# ---------------------------------------------------------------------- everywhere


def made(*words):
    return {f"part{i}": vd.Verdict(w, "because") for i, w in enumerate(words)}


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ((vd.REPRODUCED, vd.REPRODUCED), vd.REPRODUCED),
        ((vd.REPRODUCED, vd.DIRECTION_ONLY), vd.DIRECTION_ONLY),
        ((vd.REPRODUCED, vd.NOT_REPRODUCED), vd.NOT_REPRODUCED),
        ((vd.INCONCLUSIVE, vd.NOT_REPRODUCED), vd.NOT_REPRODUCED),
        ((vd.NOT_RUN, vd.NOT_REPRODUCED), vd.NOT_REPRODUCED),
        ((vd.REPRODUCED, vd.INCONCLUSIVE), vd.INCONCLUSIVE),
        ((vd.REPRODUCED, vd.NOT_RUN), vd.INCONCLUSIVE),
        ((vd.REPRODUCED, vd.READER_TOO_WEAK), vd.INCONCLUSIVE),
        ((vd.NOT_RUN, vd.NOT_RUN), vd.NOT_RUN),
        ((vd.NOT_JUDGED, vd.NOT_RUN), vd.NOT_RUN),
        ((vd.NOT_JUDGED, vd.NOT_JUDGED), vd.NOT_JUDGED),
        ((vd.NOT_JUDGED, vd.REPRODUCED), vd.INCONCLUSIVE),
        ((vd.NOT_JUDGED, vd.NOT_REPRODUCED), vd.NOT_REPRODUCED),
        ((vd.READER_TOO_WEAK,), vd.READER_TOO_WEAK),
        ((vd.HOLDS, vd.HOLDS), vd.HOLDS),
        ((vd.HOLDS, vd.FAILS), vd.FAILS),
        ((vd.HOLDS, vd.INCONCLUSIVE), vd.INCONCLUSIVE),
    ],
)
def test_everywhere(parts, word):
    assert vd.of_parts(made(*parts)).word == word


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ((vd.REPRODUCED, vd.NOT_REPRODUCED), vd.REPRODUCED),
        ((vd.REPRODUCED, vd.INCONCLUSIVE, vd.NOT_RUN), vd.REPRODUCED),
        ((vd.NOT_REPRODUCED, vd.DIRECTION_ONLY), vd.DIRECTION_ONLY),
        ((vd.NOT_REPRODUCED, vd.NOT_REPRODUCED), vd.NOT_REPRODUCED),
        ((vd.NOT_REPRODUCED, vd.INCONCLUSIVE), vd.INCONCLUSIVE),
        ((vd.NOT_REPRODUCED, vd.READER_TOO_WEAK), vd.INCONCLUSIVE),
        ((vd.NOT_RUN, vd.NOT_JUDGED), vd.NOT_RUN),
        ((vd.FAILS, vd.HOLDS), vd.HOLDS),
    ],
)
def test_sometimes(parts, word):
    told = vd.of_some(made(*parts))
    assert told.word == word
    assert told.reason


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ((vd.REPRODUCED, vd.REPRODUCED, vd.NOT_REPRODUCED), vd.REPRODUCED),
        ((vd.REPRODUCED, vd.REPRODUCED, vd.NOT_RUN), vd.REPRODUCED),
        ((vd.REPRODUCED, vd.DIRECTION_ONLY, vd.NOT_REPRODUCED), vd.DIRECTION_ONLY),
        ((vd.REPRODUCED, vd.NOT_REPRODUCED, vd.NOT_REPRODUCED), vd.NOT_REPRODUCED),
        ((vd.REPRODUCED, vd.NOT_REPRODUCED), vd.NOT_REPRODUCED),  # one of two is not most
        ((vd.REPRODUCED, vd.INCONCLUSIVE), vd.INCONCLUSIVE),
        ((vd.NOT_REPRODUCED, vd.INCONCLUSIVE, vd.NOT_RUN), vd.INCONCLUSIVE),
        ((vd.HOLDS, vd.FAILS, vd.HOLDS), vd.HOLDS),
        ((vd.FAILS, vd.FAILS, vd.HOLDS), vd.FAILS),
        ((vd.NOT_RUN, vd.NOT_JUDGED), vd.NOT_RUN),
    ],
)
def test_mostly(parts, word):
    told = vd.of_most(made(*parts))
    assert told.word == word
    assert told.reason


def test_a_small_part_is_named_where_no_word_tells_it():
    small = vd.of_difference(Interval(0.1, 0.05, 0.2, 100), 0.35, tier="testbed")
    large = vd.of_difference(Interval(0.5, 0.4, 0.6, 100), 0.35, tier="testbed")
    told = vd.of_parts({"saved": small, "again": large})
    assert told.word == vd.HOLDS
    assert (
        told.reason
        == "both parts hold, but the effect is smaller than the effect of interest: saved"
    )
    assert vd.of_parts({"again": large, "more": large}).reason == "both parts hold"
    assert {of({"a": large, "b": large}).parts for of in (vd.of_parts, vd.of_some, vd.of_most)} == {
        2
    }
    assert (large.parts, vd.of_parts({"a": large}).parts) == (1, 1)


def test_everywhere_names_what_decides():
    assert "part1" in vd.of_parts(made(vd.REPRODUCED, vd.NOT_REPRODUCED)).reason
    assert "open: part0 (not run); part2 (" in (
        vd.of_parts(made(vd.NOT_RUN, vd.REPRODUCED, vd.INCONCLUSIVE)).reason
    )
    assert "because" in vd.of_parts(made(vd.NOT_RUN)).reason
    for of in (vd.of_parts, vd.of_some, vd.of_most):
        with pytest.raises(ValueError, match="at least one part"):
            of({})
        with pytest.raises(ValueError, match="no verdict in common"):
            of(made(vd.HOLDS, vd.REPRODUCED))


# ----------------------------------------------------------------- gate and the rest


def test_reader_gate():
    assert vd.reader_gate(iv(10, 20)) is None  # 15 points, exactly enough
    assert vd.reader_gate(iv(5, 30, estimate=16)).word == "reader too weak"  # 5, no more
    got = vd.reader_gate(iv(5, 20, estimate=14.9))
    assert got.word == vd.READER_TOO_WEAK
    assert "14.9 [5.0, 20.0] points" in got.reason
    # What passages add is no effect of the claim.
    assert (got.interval, got.delta) == (None, None)
    assert not got.holds
    assert not got.fails


def test_reader_floor():
    assert vd.reader_floor(15) is None
    got = vd.reader_floor(3.33)
    assert (got.word, got.interval) == (vd.READER_TOO_WEAK, None)
    assert "3.3 % of answers are right with the gold passages" in got.reason


def test_not_run():
    got = vd.not_run("no GPU")
    assert (got.word, got.reason, got.interval) == (vd.NOT_RUN, "no GPU", None)


def test_holds_and_fails():
    assert {w for w in vd.WORDS if vd.Verdict(w, "").holds} == {
        vd.REPRODUCED,
        vd.DIRECTION_ONLY,
        vd.HOLDS,
    }
    assert {w for w in vd.WORDS if vd.Verdict(w, "").fails} == {vd.NOT_REPRODUCED, vd.FAILS}


# ------------------------------------------- each verdict from records made for it


def records(n, won, lost):
    """Scores of two methods on n questions: ours wins `won`, loses `lost` of them."""
    ours, theirs = np.zeros(n), np.zeros(n)
    ours[:won] = 1
    theirs[won : won + lost] = 1
    ours[-n // 4 :] = theirs[-n // 4 :] = 1  # both right
    return ours, theirs


@pytest.mark.parametrize(
    ("n", "won", "lost", "word"),
    [
        (400, 60, 20, vd.REPRODUCED),  # +10 points
        (4000, 160, 60, vd.DIRECTION_ONLY),  # +2.5, surely below 5
        (1000, 50, 50, vd.NOT_REPRODUCED),  # 0
        (400, 20, 60, vd.NOT_REPRODUCED),  # -10
        (60, 8, 6, vd.INCONCLUSIVE),  # +3.3, too few
    ],
)
def test_each_verdict_is_reached_from_records(n, won, lost, word):
    ours, theirs = records(n, won, lost)
    interval = resample_difference(ours, theirs, rng=np.random.default_rng(1), span=1.0).interval()
    assert interval.estimate == pytest.approx((won - lost) / n)
    assert vd.of_difference(interval, 0.05).word == word
    if word == vd.INCONCLUSIVE:
        assert vd.of_difference(interval, 0.05).mde > 0.05


def test_five_equal_answers_are_no_evidence_of_equality():
    nothing = resample_difference(
        np.ones(5), np.ones(5), rng=np.random.default_rng(1), span=1.0
    ).interval()
    assert vd.of_difference(nothing, 0.05).word == vd.INCONCLUSIVE
    assert vd.of_equivalence(nothing, 0.05).word == vd.INCONCLUSIVE
    many = resample_difference(
        np.ones(500), np.ones(500), rng=np.random.default_rng(1), span=1.0
    ).interval()
    assert vd.of_equivalence(many, 0.05).word == vd.REPRODUCED


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("not run", "reader too weak"), "not run"),
        (("not judged", "reader too weak"), "reader too weak"),
        (("reader too weak", "reader too weak"), "reader too weak"),
        (("not run", "not judged"), "not run"),
        (("reader too weak", "inconclusive"), "inconclusive"),
    ],
)
def test_parts_of_which_none_is_decided_say_what_is_missing(words, expected):
    parts = {str(i): vd.Verdict(word, f"why {i}") for i, word in enumerate(words)}
    assert vd.of_parts(parts).word == expected


def test_a_whole_of_wholes_names_what_made_each():
    cells = {"NQ": vd.REPRODUCED, "MuSiQue": vd.NOT_REPRODUCED, "HotpotQA": vd.INCONCLUSIVE}
    each = vd.of_parts({name: vd.Verdict(word, "") for name, word in cells.items()})
    everywhere = vd.of_parts({name: vd.Verdict(vd.NOT_REPRODUCED, "") for name in cells})
    one = vd.Verdict(vd.NOT_REPRODUCED, "")
    assert (each.makers, len(everywhere.makers)) == (("MuSiQue",), 3)
    for of in (vd.of_parts, vd.of_most):
        told = of({"Acc": each, "F1": everywhere, "EM": one}).reason
        assert told == "fails: Acc (MuSiQue); F1 (all 3); EM (of 3 parts)"


def test_a_part_that_is_open_names_which_of_its_own_are():
    cells = {"NQ": vd.REPRODUCED, "MuSiQue": vd.INCONCLUSIVE, "HotpotQA": vd.NOT_RUN}
    each = vd.of_parts({name: vd.Verdict(word, "why") for name, word in cells.items()})
    unrun = vd.of_parts({"NQ": vd.not_run("no records")})
    told = vd.of_parts({"Acc": each, "F1": unrun}).reason
    assert told == "no part fails, but open: Acc (MuSiQue; HotpotQA); F1 (not run) (of 2 parts)"
