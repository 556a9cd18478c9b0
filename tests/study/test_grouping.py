"""Groups of answers by the gold passages that their lines tell of: examples by hand."""

from __future__ import annotations

import pytest

from rag_repro.study.grouping import gold_found, gold_there, group_of, groups


@pytest.mark.parametrize(
    ("ranks", "hops", "found", "there"),
    [
        ([2], 1, "all", "all"),
        ([2, 9], 2, "all", "all"),
        ([None, 2], 2, "some", "all"),
        ([None, None], 2, "none", "all"),
        ([4], 2, "some", "some"),  # the corpus lacks the other
        ([None], 2, "none", "some"),
        ([], 2, "none", "none"),
        ([1, 2, None], 2, "some", "all"),  # more passages than steps: all of them are needed
        ([1], None, "all", "all"),
        ([], None, None, None),
    ],
)
def test_a_line_by_its_gold(ranks, hops, found, there):
    line = {"gold": [["static", None, rank] for rank in ranks], "hops": hops}
    assert (gold_found(line), gold_there(line)) == (found, there)
    assert group_of(line, "gold_there") == there


def test_a_line_that_tells_of_no_gold_is_of_no_group():
    assert gold_found({}) is gold_there({}) is None
    assert groups([{}, {"gold": [], "hops": 2}, {"gold": [[None, None, 1]]}], "gold_there") == [
        "all",
        "none",
    ]


def test_a_field_s_values_are_groups_by_name():
    assert groups([{"hops": 2}, {"hops": 1}, {"hops": 2}], "hops") == ["1", "2"]
