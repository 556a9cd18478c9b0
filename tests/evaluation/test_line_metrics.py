"""What a record's own line tells, on lines written by hand."""

from __future__ import annotations

import itertools

import pytest

from rag_repro.evaluation import line_metrics, metrics

# k = 4, CIS by equation 3: a and b of the first stage, c kept, e taken away. Gold: b, e.
LINE = {
    "hits": ["a", "b", "c"],
    "gold": [["static", 1, 2], ["dynamic", 2, None]],
    "scores": {"recall": 0.5},
    "cost": {"scored": 4, "retrievals": 3},
    "judged": [["a", "c", 0.9, 0], ["b", "c", 0.2, 1], ["a", "e", 0.1, 1], ["b", "e", 0.4, 2]],
}


def told(name, **changes):
    return metrics.of_line(name, {**LINE, **changes})


def test_every_metric_of_a_line_by_hand():
    got = {n: told(n) for n, m in metrics.METRICS.items() if m.needs == "line"}
    counts = {"reader_calls": 0, "passes": 0, "prompt_tokens": 0, "new_tokens": 0, "retrievals": 3}
    # The positive, 0.4, beats 0.2 and 0.1 and loses to 0.9; at 0.5 it is not found.
    pairs = {"pair_auc": 2 / 3, "pair_auc_hard": 1, "pair_auc_random": 0, "pair_accuracy": 1 / 3}
    pairs |= {"pair_swapped_hard": 0, "pair_swapped_random": 1}
    # Without `turns`, as here, a line tells nothing of time.
    assert {n: value for n, value in got.items() if value is not None} == pytest.approx(
        {"useless": 2 / 3, "pairs": 4, "removed": 1, "removed_gold": 1, "lost_gold": 1}
        | {"static_first": 1}
        | counts
        | pairs
    )
    assert told("recall") == 0.5
    assert told("em") is None


def test_where_nothing_is_taken_away_there_is_no_share_of_gold_in_it():
    whole = {"hits": ["a", "b", "c", "e"], "gold": [["static", 1, 2], ["dynamic", 2, 4]]}
    got = [told(n, **whole) for n in ("removed", "removed_gold", "lost_gold", "useless")]
    assert got == [0, None, 0, 0.5]


@pytest.mark.parametrize(
    ("hits", "gold", "first"),
    [
        ("abc", [["static", 1, 2]], 1),  # k1 = 2 of three
        ("abc", [["static", 1, 3]], 0),
        ("abcd", [["static", 1, 3], ["static", 2, 2]], 1),  # any of them
        ("abcd", [["static", 1, None], ["dynamic", 2, 1]], 0),
        ("abcd", [["dynamic", 2, 1]], None),
        ("", [["static", 1, None]], 0),
    ],
)
def test_what_the_first_stage_holds_is_told_by_rank(hits, gold, first):
    assert told("static_first", hits=list(hits), gold=gold) == first


def test_without_a_selection_nothing_was_judged():
    plain = {k: v for k, v in LINE.items() if k != "judged"}
    assert metrics.of_line("useless", plain) == pytest.approx(2 / 3)
    for name in ("removed", "removed_gold", "lost_gold"):
        assert metrics.of_line(name, plain) is None
    assert told("pairs", cost={}) == 0
    assert metrics.of_line("pairs", {"hits": [], "scores": {}}) is None


def test_where_the_question_names_no_gold_only_counts_are_left():
    blind = [[d, e, p, None] for d, e, p, _ in LINE["judged"]]
    assert told("removed", gold=[], judged=blind) == 1
    for name in ("useless", "removed_gold", "lost_gold"):
        assert told(name, gold=[], judged=blind) is None
    assert told("useless", hits=[]) is None


def test_a_gold_passage_of_two_hops_counts_once():
    assert told("useless", gold=[["static", 1, 2], ["dynamic", 2, 2]]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("kept", [(), ("a",), ("c", "e"), ("a", "b", "c", "e")])
@pytest.mark.parametrize("gold", [set(), {"a"}, {"b", "e"}, {"a", "b", "c"}, set("abce")])
def test_all_pairs_tell_which_passages_are_gold_whatever_is_kept(kept, gold):
    judged = [[d, e, 0.5, (d in gold) + (e in gold)] for d, e in itertools.combinations("abce", 2)]
    ranks = [["static", 1, kept.index(name) + 1 if name in kept else None] for name in gold or "z"]
    line = {"hits": list(kept), "gold": ranks, "judged": judged}
    assert line_metrics.gold_of_judged(line) == {name: name in gold for name in "abce"}


def test_what_one_pair_tells_is_carried_to_the_pairs_before_it():
    chain = [["c", "e", 0.5, 1], ["b", "c", 0.5, 1], ["a", "b", 0.5, 1]]
    line = {"hits": ["a"], "gold": [["static", 1, None]], "judged": chain}
    assert line_metrics.gold_of_judged(line) == {"a": False, "b": True, "c": False, "e": True}


def test_one_of_two_that_went_together_is_gold_and_nobody_knows_which():
    alone = {"hits": [], "gold": [["static", 1, None]], "judged": [["a", "b", 0.1, 1]]}
    assert line_metrics.gold_of_judged(alone) == {}
    assert metrics.of_line("removed", alone) == 2
    assert metrics.of_line("removed_gold", alone) is None
