"""Where the first alarm stands, beside the first error, on records made by hand."""

from __future__ import annotations

from types import SimpleNamespace

from rag_repro.methods.dragin.timing_check import SIGNALS
from rag_repro.report import first_errors
from rag_repro.report.picture import Note
from rag_repro.report.timing_auc import EVERY
from rag_repro.study.conditions import Condition
from rag_repro.study.papers import Cell

CONDITION = Condition("world-B", "timing_check", {}, reader="testbed-reader")
CELL = Cell("dragin.hops", "testbed", "secondary", {"dataset": "world-B"}, CONDITION, None)
THRESHOLDS = {"score": 0.5, "surprise": 0.2}


def line(name, wrong, scores, surprises):
    hops = []
    for error, score, surprise in zip(wrong, scores, surprises, strict=True):
        told = {"score": score, "surprise": surprise}
        hops.append([error, *(told.get(signal, 0.0) for signal in SIGNALS)])
    return {"id": name, "cluster": name, "timing": hops}


LINES = [
    line("at", [0, 1, 1], [0.1, 0.9, 0.9], [0.2, 0.9, 0.9]),
    line("before", [0, 1], [0.9, 0.9], [0.1, 0.1]),
    line("behind", [1, 0], [0.5, 0.6], [0.1, 0.2]),  # above 0.5, up to a p of 0.8
    line("none", [1, 1], [0.1, 0.2], [0.9, 0.0]),
    line("right", [0, 0], [0.9, 0.1], [0.1, 0.1]),
    line("spared", [0, 0], [0.1, 0.1], [0.1, 0.1]),
    {"id": "no chain", "cluster": "x"},
]


def results(lines):
    return SimpleNamespace(lines=lambda cell: lines)


def made(lines=LINES):
    return first_errors.table([CELL], results(lines), THRESHOLDS, "First", "tab-first")


def test_where_the_first_alarm_stands():
    rows = {row[0]: row[1:] for row in made().body}
    score = rows["RIND, H a s, above 0.5"]
    assert score[0].startswith("25.0 [")
    assert score[1:] == ["25.0", "25.0", "25.0", 4, "50.0", 2]
    # FLARE: of "at" the alarm is a hop too early, of "none" at once; of "before" there is none.
    flare = rows["probability alone, 1 - p of its own words (FLARE), p up to 0.8"]
    assert flare[0].startswith("25.0 [")
    assert flare[1:] == ["25.0", "25.0", "25.0", 4, "0.0", 2]
    # After every sentence: at the first hop, in error for two of four.
    assert rows[EVERY][0].startswith("50.0 [")
    assert rows[EVERY][1:] == ["50.0", "0.0", "0.0", 4, "100.0", 2]


def test_errors_alone_or_none():
    [score, *_] = made([LINES[0]]).body
    assert score[1].startswith("100.0")
    assert score[-2:] == ["", 0]
    [score, *_] = made([LINES[4]]).body
    assert score[1:5] == ["", "", "", ""]
    assert score[5:] == [0, "100.0", 1]


def test_without_records_it_is_not_run():
    for lines in (None, [{"id": "x", "cluster": "x"}]):
        assert isinstance(made(lines), Note)
    assert "rag-repro run dragin.hops" in str(made(None))
