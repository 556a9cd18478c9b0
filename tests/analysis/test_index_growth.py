"""Lines through measured sizes, and what they carry on to, from records made by hand."""

from __future__ import annotations

import random

import pytest

from rag_repro.analysis import index_growth
from rag_repro.study.growth import MEMORY, Growth, Size

SIZES = (900, 10_000, 30_000, 100_000)
LIMITS = {"minutes": 10, "gigabytes": 6}


def grown(*sizes, retriever="bm25"):
    return Growth(retriever, "world-B", "a machine", 2, 1, {}, LIMITS, tuple(sizes))


def size(n, factor=1.0, **more):
    """300 bytes a passage on the disk and 1,500 in memory beside 100 MB; searches as sqrt(n)."""
    facts = {"index": round(300 * n * factor), "empty": 100_000_000, "text": 200 * n}
    facts |= {"memory": 100_000_000 + 1_500 * n, "build_cpu": n / 3600, "lookup_cpu": n**0.5 / 100}
    return Size(n, **(facts | {"search": 7.0, "search_95": 9.5, "queries": 50} | more))


INDEX, MEMORY_OF, HOURS, SEARCH = index_growth.QUANTITIES


def test_a_power_is_found_and_carried_on():
    made = grown(*map(size, SIZES))
    line = index_growth.fit(made, SEARCH)
    assert line.power == pytest.approx(0.5)
    assert line.residual == pytest.approx(0)
    assert [n for n, _ in line.points] == [10_000, 30_000, 100_000]
    at = line.at(1_000_000)
    assert (at.estimate, at.lo, at.hi) == pytest.approx((10, 10, 10))
    assert index_growth.fit(made, INDEX).at(10**9).estimate == pytest.approx(300)
    assert index_growth.fit(made, HOURS).at(3600**2).estimate == pytest.approx(1)


def test_memory_is_counted_beyond_what_the_process_had_before():
    line = index_growth.fit(grown(*map(size, SIZES)), MEMORY_OF)
    assert line.power == pytest.approx(1)
    assert line.at(1_000_000).estimate == pytest.approx(1.5)


def test_the_residual_is_that_of_the_points_about_the_line():
    # Points at 1, 2, 3 decades with offsets +d, -2d, +d leave the line as it was.
    d = 0.1
    offsets = (10**d, 10 ** (-2 * d), 10**d)
    sizes = [size(n, f) for n, f in zip((10**4, 10**5, 10**6), offsets, strict=True)]
    line = index_growth.fit(grown(*sizes), INDEX)
    assert line.power == pytest.approx(1, abs=1e-3)
    assert line.residual == pytest.approx((6 * d**2) ** 0.5, rel=1e-3)
    # t with one degree of freedom is 12.706; the new point is one decade beyond the last.
    half = 12.706 * line.residual * (1 + 1 / 3 + 2**2 / 2) ** 0.5
    at = line.at(10**7)
    assert at.hi / at.estimate == pytest.approx(10**half, rel=1e-2)
    assert at.estimate / at.lo == pytest.approx(10**half, rel=1e-2)


def test_the_interval_holds_one_more_measurement_19_times_in_20():
    rng, held = random.Random(5), 0
    for _ in range(400):
        sizes = [size(n, 10 ** rng.gauss(0, 0.05)) for n in (10**4, 3 * 10**4, 10**5, 3 * 10**5)]
        at = index_growth.fit(grown(*sizes), INDEX).at(10**7)
        held += at.lo < 3 * 10 ** rng.gauss(0, 0.05) < at.hi
    assert 0.92 < held / 400 < 0.98


def test_small_and_stopped_sizes_do_not_enter():
    odd = size(900, 50.0)  # less than a hundredth of the largest
    stopped = Size(1_000_000, stopped=MEMORY)
    line = index_growth.fit(grown(odd, *map(size, SIZES[1:]), stopped), INDEX)
    assert line.power == pytest.approx(1)
    assert tuple(n for n, _ in line.points) == SIZES[1:]
    assert index_growth.fit(grown(odd, *map(size, SIZES[1:])), INDEX, span=1000).power < 0.9


def test_two_sizes_are_no_line():
    assert index_growth.fit(grown(*map(size, SIZES[:2])), INDEX) is None


def test_what_was_not_measured_or_is_nothing_is_left_out():
    sizes = grown(*(size(n, lookup_cpu=None, memory=100_000_000) for n in SIZES))
    assert [index_growth.fit(sizes, one) is None for one in index_growth.QUANTITIES] == [
        False, True, False, True,
    ]  # fmt: skip


def test_every_number_that_was_not_measured_says_so():
    record = grown(*map(size, SIZES))
    said = [index_growth.extrapolate(record, q, 21_015_324) for q in index_growth.QUANTITIES]
    assert all(one.endswith("(extrapolated)") for one in said)
    # 300 bytes, 1,500 bytes, 1 / 3600 seconds a passage; sqrt(n) / 100 ms.
    assert [one.split()[0] for one in said] == ["6.3", "32", "1.6", "46"]


def test_sizes_that_scatter_say_nothing_of_a_far_one():
    record = grown(size(10**4), size(10**5, 30.0), size(10**6))
    told = index_growth.extrapolate(record, INDEX, 10**9)
    assert told == "not carried on: these sizes do not tell"


def test_a_line_of_memory_that_ends_below_the_index_is_not_carried_on():
    # 600 MB of an encoder beside 300 bytes a passage, which is what the index has on the disk.
    record = grown(*(size(n, memory=700_000_000 + 300 * n) for n in SIZES))
    memory = index_growth.extrapolate(record, MEMORY_OF, 10**9)
    assert memory == "not carried on: less than the index itself"
    assert index_growth.extrapolate(record, INDEX, 10**9) == "300 [300, 300] (extrapolated)"
