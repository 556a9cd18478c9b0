"""Wrong answers by the words that were shown, on records made by hand."""

from __future__ import annotations

import pytest

from rag_repro.report import reading_errors
from rag_repro.report.picture import Note
from rag_repro.study import papers
from rag_repro.study.scores import Results


def line(name, hops, words, acc, all_gold=1):
    scores = {"shown_words": words, "acc": acc, "all_gold": all_gold}
    return {"id": name, "cluster": name, "hops": hops, "hits": ["p"], "scores": scores}


def made(lines):
    exhibit = papers.load("dragin").exhibit("readers")
    cell = next(c for c in exhibit.cells("testbed") if c.keys["method"] == "gold")
    results = Results(None)
    results.lines = lambda _: lines
    return reading_errors.by_length(exhibit, [cell], results, "Errors", "tab-errors")


def test_thirds_are_taken_among_questions_of_as_many_hops():
    words = {"a": 10.0, "b": 30.0, "c": 20.0, "d": 100.0, "e": 300.0, "f": 200.0}
    hops = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 2, "f": 2, "not shown": 2}
    assert reading_errors.thirds(words, hops) == {"a": 0, "c": 1, "b": 2, "d": 0, "f": 1, "e": 2}


def test_errors_rise_with_the_words_shown():
    # Of two hops all are longer than any of one: pooled, the longest third would be theirs alone.
    lines = [
        line(f"{hops}-{i}", hops, 100 * hops + i, acc=float(i < 20))
        for hops in (1, 2)
        for i in range(30)
    ]
    lines.append(line("unseen", 1, 5000, acc=0.0, all_gold=0))
    [[_, label, words, *shares, more]] = made(lines).body
    assert (label, words) == ("gold passages", "164")
    assert [share.split(" ")[0] for share in shares] == ["0.0", "0.0", "100.0"]
    assert all(share.endswith("n 20") for share in shares)
    assert more.startswith("+100.0 [")


def test_a_third_without_questions_says_nothing():
    [[*_, short, middle, long, more]] = made([line("a", 1, 10, 1.0)]).body
    assert short.startswith("0.0")
    assert (middle, long, more) == ("", "", "")


@pytest.mark.parametrize("lines", [None, [], [line("a", 1, 10, 1.0, all_gold=0)]])
def test_without_records_it_is_not_run(lines):
    assert isinstance(made(lines), Note)
