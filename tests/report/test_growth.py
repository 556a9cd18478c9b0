"""Growth in tables: what was measured, and lines carried on from records made by hand."""

from __future__ import annotations

import random

import pytest

from rag_repro.report import growth as report
from rag_repro.report.picture import Note
from rag_repro.study.growth import MEMORY, PROCESSOR, Growth, Size

SIZES = (900, 10_000, 30_000, 100_000)
LIMITS = {"minutes": 10, "gigabytes": 6}


def grown(*sizes, retriever="bm25"):
    return Growth(retriever, "world-B", "a machine", 2, 1, {}, LIMITS, tuple(sizes))


def size(n, factor=1.0, **more):
    """300 bytes a passage on the disk and 1,500 in memory beside 100 MB; searches as sqrt(n)."""
    facts = {"index": round(300 * n * factor), "empty": 100_000_000, "text": 200 * n}
    facts |= {"memory": 100_000_000 + 1_500 * n, "build_cpu": n / 3600, "lookup_cpu": n**0.5 / 100}
    return Size(n, **(facts | {"search": 7.0, "search_95": 9.5, "queries": 50} | more))


INDEX, MEMORY_OF, HOURS, SEARCH = report.QUANTITIES


def test_a_power_is_found_and_carried_on():
    made = grown(*map(size, SIZES))
    line = report.fit(made, SEARCH)
    assert line.power == pytest.approx(0.5)
    assert line.factor == pytest.approx(1.0)
    assert line.passages == (10_000, 30_000, 100_000)
    at = line.at(1_000_000)
    assert (at.estimate, at.lo, at.hi) == pytest.approx((10, 10, 10))
    assert report.fit(made, INDEX).at(10**9).estimate == pytest.approx(300)
    assert report.fit(made, HOURS).at(3600**2).estimate == pytest.approx(1)


def test_memory_is_counted_beyond_what_the_process_had_before():
    line = report.fit(grown(*map(size, SIZES)), MEMORY_OF)
    assert line.power == pytest.approx(1)
    assert line.at(1_000_000).estimate == pytest.approx(1.5)


def test_the_residual_is_that_of_the_points_about_the_line():
    # Points at 1, 2, 3 decades with offsets +d, -2d, +d leave the line as it was.
    d = 0.1
    offsets = (10**d, 10 ** (-2 * d), 10**d)
    sizes = [size(n, f) for n, f in zip((10**4, 10**5, 10**6), offsets, strict=True)]
    line = report.fit(grown(*sizes), INDEX)
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
        at = report.fit(grown(*sizes), INDEX).at(10**7)
        held += at.lo < 3 * 10 ** rng.gauss(0, 0.05) < at.hi
    assert 0.92 < held / 400 < 0.98


def test_small_and_stopped_sizes_do_not_enter():
    odd = size(900, 50.0)  # less than a hundredth of the largest
    stopped = Size(1_000_000, stopped=MEMORY)
    line = report.fit(grown(odd, *map(size, SIZES[1:]), stopped), INDEX)
    assert line.power == pytest.approx(1)
    assert line.passages == SIZES[1:]
    assert report.fit(grown(odd, *map(size, SIZES[1:])), INDEX, span=1000).power < 0.9


def test_two_sizes_are_no_line():
    assert report.fit(grown(*map(size, SIZES[:2])), INDEX) is None
    made = report.wikipedia([grown(*map(size, SIZES[:2]))])
    assert isinstance(made, Note)
    assert "three sizes within a factor of 100 are needed" in repr(made)


def test_what_was_not_measured_or_is_nothing_is_left_out():
    held = [size(n, lookup_cpu=None, memory=100_000_000) for n in SIZES]
    assert report.fit(grown(*held), SEARCH) is None
    assert report.fit(grown(*held), MEMORY_OF) is None
    assert [row[1] for row in report.wikipedia([grown(*held)]).body] == [INDEX.label, HOURS.label]


def test_every_number_that_was_not_measured_says_so():
    made = report.wikipedia([grown(*map(size, SIZES))], labels={"bm25": "BM25"})
    assert made.head[-1] == "at 21,015,324 passages [95 %]"
    assert [row[0] for row in made.body] == ["BM25"] * 4
    assert all(row[-1].endswith("(extrapolated)") for row in made.body)
    # 300 bytes, 1,500 bytes, 1 / 3600 seconds a passage; sqrt(n) / 100 ms.
    assert [row[-1].split()[0] for row in made.body] == ["6.3", "32", "1.6", "46"]
    assert made.body[0][2:5] == ["0.030 at 100,000", "1.00", "x 1.00, 3 sizes"]


def test_the_table_has_a_line_a_size_and_says_where_it_stopped():
    stopped = Size(1_000_000, stopped=PROCESSOR)
    encoded = size(1_000, encoding_cpu=3.25, overlap={"FAISS": 0.98765})
    made = report.table([grown(size(1_000), stopped), grown(encoded, retriever="minilm")])
    assert made.head[:4] == ["retriever", "passages", "their text, MB", "index, MB"]
    first, beyond, second = made.body
    assert first[:5] == ["bm25", "1,000", "0.2", "0.3", "0.00"]
    assert first[-3:] == ["0.32", "7.0 [9.5]", ""]
    assert beyond[:2] == ["bm25", "1,000,000"]
    assert beyond[3] == "stopped: more than 10 minutes of the processor"
    assert second[6] == "3.2"
    assert second[-1] == "FAISS 0.988"


def test_columns_that_say_nothing_are_left_out():
    made = report.table([grown(size(1_000))])
    assert "overlap at 10" not in made.head
    assert "of it encoding, s" not in made.head
    assert all(len(row) == len(made.head) for row in made.body)


def test_without_a_record_the_command_is_told():
    assert "rag-repro growth bm25" in repr(report.table([]))
    assert "rag-repro growth bm25" in repr(report.wikipedia([]))


def test_a_line_of_memory_that_ends_below_the_index_is_not_carried_on():
    # 600 MB of an encoder beside 300 bytes a passage, which is what the index has on the disk.
    sizes = [size(n, memory=700_000_000 + 300 * n) for n in SIZES]
    told = report.wikipedia([grown(*sizes)], passages=10**9)
    by = {row[1]: row[-1] for row in told.body}
    assert by["memory, GB"] == "not carried on: less than the index itself"
    assert by["index on the disk, GB"] == "300 [300, 300] (extrapolated)"
    [[*_, memory]] = report.bill([grown(*sizes)], report.Prices(1, 1, 1), 10**9).body
    assert memory == "not carried on: less than the index itself"


def test_what_an_index_costs_is_its_quantities_at_the_given_prices():
    prices = report.Prices(core_hour=2.0, memory_hour=0.01, disk_month=0.5)
    table = report.bill([grown(*map(size, SIZES))], prices, passages=10**9)
    # 300 bytes, 1,500 bytes and a second of 3,600 a passage: 300 GB, 1,500 GB, 77.2 hours.
    [[said, build, disk, memory]] = table.body
    assert said == "bm25"
    assert build.split()[0] == "154"
    assert disk.split()[0] == "150"
    assert memory.split()[0] == "10950"


def test_what_costs_nothing_is_nought_and_a_price_below_it_is_refused():
    free = report.Prices(0.0, 0.0, 0.0)
    assert report.bill([grown(*map(size, SIZES))], free).body == [["bm25", "0", "0", "0"]]
    with pytest.raises(ValueError, match="disk_month is -1"):
        report.Prices(0.0, 0.0, -1)


def test_no_cost_is_told_of_two_sizes():
    made = report.bill([grown(*map(size, SIZES[:2]))], report.Prices(1, 1, 1))
    assert isinstance(made, Note)
    assert "three sizes" in made._repr_markdown_()


def test_the_picture_tells_the_largest_measured_size_in_words():
    made = report.picture([grown(*map(size, SIZES))], {"bm25": "BM25"}, "a caption", "fig-x")
    assert "BM25, ms a search: 3.16 at 100,000" in made.alt
    assert isinstance(report.picture([]), Note)


def test_small_and_large_ticks_are_plain_numbers():
    ticks = [1e-5, 0.001000001, 0.1, 1, 100_000.0]
    assert [*map(report._plainly, ticks)] == ["0.00001", "0.001", "0.1", "1", "100,000"]


def test_a_size_measured_again_says_what_is_the_same_and_what_is_not():
    held = [grown(*map(size, SIZES))]
    rows = report.again(held, "bm25", size(10_000)).body
    assert [row[-1] for row in rows] == ["yes", "yes", "machine's own", "machine's own"]
    rows = report.again(held, "bm25", size(10_000, factor=1.1)).body
    assert rows[1][1:] == ["3,000,000", "3,300,000", "no"]
    with pytest.raises(ValueError, match="77 passages were not recorded"):
        report.again(held, "bm25", size(77))


def test_a_size_of_a_retriever_without_a_record_has_nothing_to_be_compared_with():
    for held in ([], [grown(*map(size, SIZES))]):
        made = report.again(held, "minilm", size(10_000))
        assert isinstance(made, Note)
        assert "no growth of minilm is recorded" in made._repr_markdown_()
