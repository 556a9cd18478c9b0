"""A question's own hops, told apart by what timing rules go by."""

from __future__ import annotations

import pytest

from rag_repro.evaluation import dynamic_metrics, metrics
from rag_repro.methods.dragin.timing_check import SIGNALS


def hop(wrong, **signals):
    return [wrong, *(signals.get(name, 0.0) for name in SIGNALS)]


LINE = {
    "timing": [
        hop(0, score=0.5, entropy=3.0, surprise=0.5, attention=0.2, released=9.0),
        hop(1, score=0.6, entropy=1.0, surprise=0.5, attention=0.9, released=1.0),
        hop(1, score=0.4, entropy=2.0, surprise=0.5, attention=0.1, released=9.5),
    ]
}


def test_the_places_are_those_of_the_signals():
    order = list(SIGNALS)
    for name in ("entropy", "surprise", "attention", "score", "released"):
        assert getattr(dynamic_metrics, name.upper()) == 1 + order.index(name)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("wrong_hops", 2 / 3),
        ("hop_auc", 1 / 2),
        ("hop_auc_entropy", 0),
        ("hop_auc_surprise", 1 / 2),  # equal ones count half
        ("hop_auc_attention", 1 / 2),
        ("hop_auc_released", 1 / 2),
    ],
)
def test_by_hand(name, wanted):
    assert metrics.of_line(name, LINE) == pytest.approx(wanted)


def test_each_metric_looks_at_its_own_signal():
    for signal, name in (
        *(("score", "hop_auc"), ("entropy", "hop_auc_entropy")),
        *(("surprise", "hop_auc_surprise"), ("attention", "hop_auc_attention")),
        ("released", "hop_auc_released"),
    ):
        line = {"timing": [hop(0, **{signal: 0.1}), hop(1, **{signal: 0.2})]}
        told = {m.name: m.fn(line) for m in dynamic_metrics.CHECKS if m.name.startswith("hop_auc")}
        assert {key for key, value in told.items() if value == 1} == {name}


def test_without_hops_or_of_one_kind_there_is_no_score():
    assert metrics.of_line("wrong_hops", {"timing": []}) is None
    assert metrics.of_line("wrong_hops", {}) is None
    assert metrics.of_line("hop_auc", {}) is None
    assert metrics.of_line("hop_auc", {"timing": [hop(1, score=1.0)]}) is None
    assert metrics.of_line("wrong_hops", {"timing": [hop(1, score=1.0)]}) == 1
