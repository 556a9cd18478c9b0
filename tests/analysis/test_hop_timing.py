"""Timing rules against two labels, on records made by hand."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro import data
from rag_repro.analysis import hop_timing
from rag_repro.analysis.hop_timing import LABELS, Hops, alarms_of, areas, at_rate, course, hops
from rag_repro.data import synthworld
from rag_repro.data.synthworld.reasoning import facts_of
from rag_repro.lm import hub
from rag_repro.methods.dragin.timing_check import SIGNALS
from rag_repro.study.conditions import Condition
from rag_repro.study.papers import Cell
from rag_repro.training import lessons

WORLD = synthworld.world("B")
ASKED = [q for q in data.load("world-B").questions if q.meta["maker"] == "compositional2"][:12]
PLACE = {name: i for i, name in enumerate(SIGNALS)}


def cell(dataset="world-B", reader="testbed-reader"):
    condition = Condition(dataset, "timing_check", {}, reader=reader)
    return Cell("dragin.timing", "testbed", "primary", {"dataset": dataset}, condition, None)


def entry(wrong, **signals):
    return [wrong, *(signals.get(name, 0.0) for name in SIGNALS)]


def line(question, *entries):
    return {"id": question.id, "cluster": question.cluster, "timing": list(entries)}


def results(lines):
    return SimpleNamespace(lines=lambda cell: lines)


@pytest.fixture
def taught(monkeypatch):
    """The reader was taught the first fact of each question, whatever its world marks."""
    stated = frozenset(facts_of(WORLD, q)[0] for q in ASKED)
    monkeypatch.setattr(lessons, "stated_facts", lambda parts, world: stated)


def records():
    """Where the second hop, which was not taught, has the higher entropy in 10 of 12 questions."""
    made = []
    for i, question in enumerate(ASKED):
        low, high = (0.2, 2.0) if i < 10 else (2.0, 0.2)
        made.append(
            line(
                question,
                entry(0, entropy=low, score=low * 0.5, surprise=0.1, attention=0.3),
                entry(int(i % 2), entropy=high, score=high * 0.6, surprise=0.4, attention=0.3),
            )
        )
    return made


def test_hops_have_what_the_record_measured_and_what_the_card_tells(taught):
    held = hops([cell()], results(records()))
    assert len(held.units) == 24
    assert held.needs["untaught"].tolist() == [False, True] * 12
    assert held.needs["wrong"].tolist() == [bool(i % 2 and j) for i in range(12) for j in range(2)]
    assert held.signals["entropy"][:2].tolist() == [0.2, 2.0]
    assert held.signals["score"][:2].tolist() == [0.1, 1.2]
    assert list(held.signals) == list(SIGNALS)
    assert held.units[0] == ASKED[0].cluster
    # Cells of several worlds are taken together; without a record, or a world, there is nothing.
    assert len(hops([cell(), cell()], results(records())).units) == 48
    assert hops([cell()], results(None)) is None
    assert hops([cell()], results([{"id": "x", "cluster": "x"}])) is None
    assert hops([cell("world-B@8000")], results(records())) is None


def test_what_was_taught_is_what_the_readers_lessons_state(monkeypatch):
    told = []
    monkeypatch.setattr(hop_timing, "lessons_of", lambda reader: told.append(reader) or ["parts"])

    def stated(parts, world):
        assert (parts, world) == (["parts"], "B")
        return frozenset()

    monkeypatch.setattr(lessons, "stated_facts", stated)
    assert hops([cell()], results(records())).needs["untaught"].all()
    assert told == ["testbed-reader"]


# -------------------------------------------------------------------------- numbers


def test_at_a_rate_the_highest_have_an_alarm_and_equal_ones_share():
    values = np.array([3.0, 1.0, 2.0, 2.0, 0.0])
    assert at_rate(values, 0.2).tolist() == [1, 0, 0, 0, 0]
    assert at_rate(values, 0.4).tolist() == [1, 0, 0.5, 0.5, 0]
    assert at_rate(values, 0.6).tolist() == [1, 0, 1, 1, 0]
    assert at_rate(values, 0.5) == pytest.approx([1, 0, 0.75, 0.75, 0])
    assert at_rate(values, 0).sum() == 0
    assert at_rate(values, 1).tolist() == [1, 1, 1, 1, 1]
    assert at_rate(np.zeros(4), 0.25) == pytest.approx([0.25] * 4)


def test_rind_searches_above_its_threshold_and_flare_up_to_its_own():
    assert alarms_of("score", np.array([0.9, 1.0, 1.1]), 1.0).tolist() == [0, 0, 1]
    # p of 0.81, 0.8 and 0.79 against p up to 0.8, as FLARE's authors have it.
    surprise = np.round(1 - np.array([0.81, 0.8, 0.79]), 4)
    assert alarms_of("surprise", surprise, 1 - 0.8).tolist() == [0, 1, 1]
    assert alarms_of("surprise", np.array([0.4999, 0.5]), 1 - 0.5).tolist() == [0, 1]
    assert alarms_of("surprise", np.array([0.0999, 0.1]), 1 - 0.9).tolist() == [0, 1]


def test_precision_is_of_the_alarms_and_recall_of_the_needs():
    alarm = np.array([1.0, 1, 1, 0, 0, 0])
    needs = np.array([True, True, False, True, True, False])
    units = list("aabbcc")
    assert hop_timing.precision(alarm, needs, units).estimate == pytest.approx(2 / 3)
    assert hop_timing.recall(alarm, needs, units).estimate == pytest.approx(2 / 4)
    assert hop_timing.precision(np.zeros(6), needs, units) is None
    assert hop_timing.recall(alarm, np.zeros(6, dtype=bool), units) is None


def test_one_kind_alone_has_no_area():
    hop = Hops({"score": np.array([1.0, 2.0])}, {"wrong": np.array([True, True])}, ("a", "b"))
    assert hop.judged("score", "wrong") is None


# ---------------------------------------------------------------------------- areas


def test_areas_are_worked_out_by_hand(taught):
    held = hops([cell()], results(records()))
    by = {(one.label, one.signal): one for one in areas(held)}
    assert list(by) == [(label, signal) for label in LABELS for signal in SIGNALS]
    # Entropy against untaught: positives 10 x 2.0 and 2 x 0.2, negatives 10 x 0.2 and 2 x 2.0:
    # wins 10*10 + half of (10*2 + 2*10) = 120 of 144.
    entropy, rind = by["untaught", "entropy"], by["untaught", "score"]
    assert entropy.auc.estimate == pytest.approx(120 / 144)
    # The score parts them further: 1.2 and 0.12 against 0.1 and 1.0, where 1.2 beats 1.0 and
    # 0.12 beats 0.1: 10*12 + 2*10 = 140 of 144.
    assert rind.auc.estimate == pytest.approx(140 / 144)
    assert rind.gain is None
    assert entropy.gain.estimate == pytest.approx((120 - 140) / 144)
    # As many alarms as needs, 12 of 24: the score's 12 highest are 10 x 1.2 and 2 x 1.0.
    assert rind.precision.estimate == pytest.approx(10 / 12)
    # What is equal everywhere tells nothing.
    for flat in ("attention", "released"):
        assert by["untaught", flat].auc.estimate == by["untaught", flat].precision.estimate == 0.5
    # "wrong": 6 of 24; entropy of these: 2.0 in five, 0.2 in one (i = 11).
    wins = 5 * 11 + 0.5 * 5 * 7 + 0.5 * 1 * 11
    assert by["wrong", "entropy"].auc.estimate == pytest.approx(wins / (6 * 18))


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_label_of_one_kind_has_no_area(taught, wrong):
    alike = [line(q, entry(wrong, score=1.0), entry(wrong, score=2.0)) for q in ASKED]
    found = areas(hops([cell()], results(alike)))
    assert [one.label for one in found] == ["untaught"] * len(SIGNALS)


def test_a_course_is_recall_at_every_rate(taught):
    held = hops([cell()], results(records()))
    found = course(held.signals["score"], held.needs["untaught"], np.array([0, 0.25, 0.5, 1]))
    # Of 6 alarms all are at untaught facts.
    assert found == pytest.approx([0, 50, 100 * 10 / 12, 100])
    assert course(held.signals["score"], np.zeros(24, bool), np.array([1.0])) == [0]


def test_what_was_taught_is_told_by_the_card_else_the_recipe(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path))
    assert hop_timing.lessons_of("smollm2-135m") == ()
    assert hop_timing.lessons_of("testbed-reader")[0]["world"] == "B"
    folder = tmp_path / "testbed-reader"
    folder.mkdir()
    (folder / hub.ADAPTER).write_bytes(b"")
    parts = [{"kind": "statements", "world": "C", "questions": 5, "exposures": 1}]
    card = {"base": {"name": "b", "sha256": "0"}, "recipe": {"lessons": parts}}
    (folder / "card.json").write_text(json.dumps(card))
    assert hop_timing.lessons_of("testbed-reader") == parts
