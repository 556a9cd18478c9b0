"""ERM4's memory on pages: what it saves, popularity, equal titles, time by τ and by latency."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.lm import hub
from rag_repro.report import memory, memory_times, printed
from rag_repro.report.picture import Note, Picture
from rag_repro.retrieval.reservoir import Reservoir
from rag_repro.schema import Gold, Passage, Question
from rag_repro.study import papers
from rag_repro.study.scores import Results

from . import erm4

WHERE = {"dataset": "world-B-again-halves"}


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    root = tmp_path / "results" / "records"
    root.mkdir(parents=True)
    return Results(root)


def number(cell):
    return float(cell.split(" ")[0])


def table2():
    return printed.values(papers.load("erm4"), "table2")


def counted(cell, i):
    """Without memory two searches; with it one at τ 0.6 and below, and a hit less in four."""
    inside = cell.keys["method"] == "memory" and cell.keys["tau"] <= 0.6
    hit = float(not (inside and i % 4 == 0))
    counts = {"searches": 2 - inside, "fetched": 5 * (2 - inside), "memory": 3 * inside}
    return {"counts": counts, "scores": {"acc_words": hit}}


def test_searches_saved_are_told_against_the_row_without_memory(results):
    asked = erm4.cells("table2", "memory", "outside", **WHERE)
    erm4.fill(results, asked, 8, counted)
    table = memory.saved(erm4.exhibit("table2"), asked, results, "acc_words", "x", "tab-x")
    rows = {row[1]: row for row in table.body}
    inside, beyond = (rows[f"memory and trigger, τ {tau}"] for tau in ("0.6", "0.8"))
    assert [number(inside[3]), number(beyond[3])] == [50, 0]
    assert inside[4:6] == ["5.00", "3.00"]
    assert [number(inside[-1]), number(beyond[-1])] == [-25, 0]
    nobody = rows[erm4.exhibit("table2").methods["outside"].label]
    assert (nobody[3], nobody[-1]) == ("", "")


def test_items_along_tau_stand_beside_the_papers(results):
    asked = erm4.cells("table2", "memory", **WHERE)
    erm4.fill(results, asked, 8, counted)
    shown = memory.by_tau(asked, results, table2())
    assert isinstance(shown, Picture)
    assert "external: 5.0 at 0.2, 5.0 at 0.4, 5.0 at 0.6, 10.0 at 0.8, 10.0 at 1" in shown.alt
    assert "answers: 75.0 at 0.2" in shown.alt


def test_what_nobody_has_run_says_how_to(results):
    exhibit, asked = erm4.exhibit("table2"), erm4.cells("table2")
    for shown in (
        memory.saved(exhibit, asked, results, "acc_words", "x"),
        memory.by_tau(asked, results, table2()),
        memory.grid(exhibit, erm4.cells("trigger", "memory"), results, "recall"),
        memory.areas(erm4.cells("trigger", "memory"), erm4.cells("trigger", "everything"), results),
    ):
        assert isinstance(shown, Note)
        assert "rag-repro run erm4." in repr(shown)
    times = erm4.cells("times")
    for shown in (
        memory_times.table(erm4.exhibit("times"), times, results, table2()),
        memory_times.by_latency(erm4.cells("latency"), results, {}),
    ):
        assert "rag-repro time erm4." in repr(shown)


# -------------------------------------------------------------------- both thresholds


def triggered(cell, i):
    """Popularity 4, 2 and 0 in turn at τ 0.5, one less for each tenth; gold with the first."""
    if cell.keys["method"] == "everything":
        return {"trigger": [[9, 1, 10, 9, 5, int(i % 3 == 0)]]}
    if cell.keys["method"] == "outside":
        return {"counts": {"searches": 1}, "scores": {"answer_recall": 1.0}}
    popular = max(0, (4, 2, 0)[i % 3] - round(10 * (cell.keys["tau"] - 0.5)))
    searched = int(popular < cell.keys["theta"])
    return {
        "counts": {"searches": searched},
        "trigger": [[popular, searched, 0, 0, 0, 0]],
        "scores": {"answer_recall": float(searched or i % 3 == 0)},
    }


def test_grid_tells_searches_saved_and_what_is_lost(results):
    asked = erm4.cells("trigger", "memory", "outside", **WHERE)
    erm4.fill(results, asked, 9, triggered)
    memories = [cell for cell in asked if cell.keys["method"] == "memory"]
    table = memory.grid(erm4.exhibit("trigger"), memories, results, "answer_recall", "x", "tab-x")
    rows = {row[1]: dict(zip(table.head, row, strict=True)) for row in table.body}
    assert rows["0.5"]["θ 1"] == "67 % (-33.3)"
    assert rows["0.5"]["θ 3"] == "33 % (+0.0)"
    assert rows["1"]["θ 1"] == "0 % (+0.0)"


def test_thresholds_are_chosen_on_one_set_and_shown_on_others(results):
    there = {"dataset": "world-A-again-halves", "split": "tune"}
    tune = erm4.cells("trigger", "memory", "outside", **there)
    erm4.fill(results, tune, 9, triggered)
    erm4.fill(results, erm4.cells("trigger", "memory", "outside", **WHERE), 6, triggered)
    exhibit = erm4.exhibit("trigger")
    chosen_on, shown_on = (erm4.cells("trigger", "memory", **w) for w in (there, WHERE))
    table = memory.calibrated(
        exhibit, chosen_on, shown_on, results, "answer_recall", 3.0, "x", "tab-x"
    )
    # Without loss a third is saved by several pairs; the strictest has the highest τ.
    assert table.head[0] == "data set, at τ 0.8 and θ 1"
    assert [number(row[1]) for row in table.body] == [pytest.approx(33.3, abs=0.1)] * 2
    assert [number(row[2]) for row in table.body] == [0, 0]
    # Who may lose a third saves all.
    loose = memory.calibrated(exhibit, chosen_on, shown_on, results, "answer_recall", 70.0)
    assert number(loose.body[0][1]) > 60
    none = memory.calibrated(exhibit, chosen_on, [], results, "answer_recall", -5.0)
    assert "none" in none.body[0][0]
    empty = memory.calibrated(exhibit, [], shown_on, results, "answer_recall", 3.0)
    assert isinstance(empty, Note)


def test_areas_say_how_well_popularity_and_the_largest_similarity_tell(results):
    asked = erm4.cells("trigger", "memory", theta=3, **WHERE)
    whole = erm4.cells("trigger", "everything", **WHERE)
    erm4.fill(results, [*asked, *whole], 9, triggered)
    table = memory.areas(asked, whole, results, "x", "tab-x")
    rows = {row[1]: row for row in table.body}
    assert number(rows["popularity, τ 0.5"][2]) == 100
    # At 0.9 nothing is similar enough: half of all comparisons.
    assert number(rows["popularity, τ 0.9"][2]) == 50
    # 0.8, 0.6 and 0.4 are the last at which one is: in their order.
    assert number(rows["largest similarity"][2]) == 100
    assert rows["largest similarity"][3:] == ["33.3", 9]


def test_one_similar_title_is_enough_for_the_largest_similarity(results):
    asked = erm4.cells("trigger", "memory", theta=3, **WHERE)
    whole = erm4.cells("trigger", "everything", **WHERE)

    def line(cell, i):
        if cell.keys["method"] == "everything":
            return {"trigger": [[9, 1, 10, 9, 5, i % 2]]}
        similar = cell.keys["tau"] <= (0.8 if i % 2 else 0.4)
        return {"trigger": [[int(similar), 1, 0, 0, 0, 0]]}

    erm4.fill(results, [*asked, *whole], 6, line)
    rows = {row[1]: row for row in memory.areas(asked, whole, results).body}
    assert number(rows["largest similarity"][2]) == 100
    assert number(rows["popularity, τ 0.3"][2]) == 50


def test_where_nothing_is_known_of_gold_no_area_is_told(results):
    asked = erm4.cells("trigger", "memory", theta=3, dataset="ambignq_again")
    whole = erm4.cells("trigger", "everything", dataset="ambignq_again")
    rows = [[9, 1, 10, 9, 5, None]]
    erm4.fill(results, [*asked, *whole], 3, lambda cell, i: {"trigger": rows})
    assert isinstance(memory.areas(asked, whole, results), Note)


# ---------------------------------------------------------------------- equal titles


class Letters:
    """A vector of how often a, b and c occur."""

    fingerprint = "letters"

    def encode(self, texts):
        return np.array([[text.count(letter) + 1e-9 for letter in "abc"] for text in texts])


def test_popularity_is_counted_over_all_titles_that_memory_has():
    reservoir = Reservoir(Letters())
    reservoir.remember([Passage("1", "aa", "x"), Passage("2", "ab", "y"), Passage("3", "c", "z")])
    question = Question("q", "a", ("x",), kind="k", gold=(Gold("1", "static"),))
    near, popular = memory.nearest(question, reservoir.freeze(), (0.5, 0.9), most=1)
    assert [(row[1], row[3]) for row in near.body] == [("aa", "yes")]
    assert popular.body == [[2, 1]]


# ------------------------------------------------------------------------------ time


def seconds(took, searches):
    """0.5 s of models, the rest search."""
    clock = [["reader", 0.5, 1], ["retriever", took - 0.5, 1]]
    return {"turns": [{"seconds": took, "clock": clock}], "counts": {"searches": searches}}


def test_an_answer_that_was_held_up_moves_the_mean_and_not_the_median(results):
    asked = erm4.cells("times", "memory", **WHERE)
    erm4.fill(results, asked, 4, lambda cell, i: seconds(21.0 if i == 3 else 1.0, 1))
    shown = memory_times.table(erm4.exhibit("times"), asked, results, table2())
    row = dict(zip(shown.head, shown.body[0], strict=True))
    assert number(row["seconds [95 %], n"]) == 6
    assert row["median"] == "1.00"


def test_a_time_that_goes_one_way_is_called_so():
    assert memory_times.way([0.1, 0.0, 2.0]) == "never falls"
    assert memory_times.way([-0.1, 0.0]) == "never rises"
    assert memory_times.way([-0.1, 0.1]) == "up and down"


def test_time_along_latency_has_a_line_a_kind_of_row(results):
    asked = erm4.cells("latency")
    assert sorted({memory_times.latency(cell) for cell in asked}) == [0.0, 0.5, 1.0, 2.0]

    def line(cell, i):
        searches = {"outside": 1, "memory": 0, "exact": 1}[memory_times.kind(cell)]
        return seconds(1 + searches * memory_times.latency(cell), searches)

    erm4.fill(results, asked, 3, line)
    shown = memory_times.by_latency(asked, results, {"outside": "searched for"})
    assert "searched for: 1.00 s at 0, 1.50 s at 0.5, 2.00 s at 1, 3.00 s at 2" in shown.alt
    assert "memory: 1.00 s at 0, 1.00 s at 0.5" in shown.alt
    assert "exact: 1.00 s at 0, 1.50 s at 0.5, 2.00 s at 1, 3.00 s at 2" in shown.alt
    assert "searched for, by its searches: 3.00 s at 2" in shown.alt
    assert "memory, by its searches: 1.00 s at 2" in shown.alt
