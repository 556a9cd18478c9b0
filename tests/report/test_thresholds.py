"""A setting chosen on one half and scored on the other, on records made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro.report import thresholds
from rag_repro.report.picture import Note
from rag_repro.report.thresholds import SPLITS, Swept, halved
from rag_repro.study import papers
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid

ROWS = {
    "dragin": ExhibitMethod("RIND", "dynamic", "bm25"),
    "fl": ExhibitMethod("FL-RAG", "dynamic", "bm25", {"timing": "window"}),
    "sr": ExhibitMethod("SR-RAG", "dynamic", "bm25", {"timing": "never", "first": True}),
}
GRIDS = (
    Grid("public", ("hotpotqa",), ("dragin",), {"threshold": (0.1, 0.4)}, reader="public-reader"),
    Grid("public", ("hotpotqa",), ("fl",), {"window": (16, 25)}, reader="public-reader"),
    Grid("public", ("hotpotqa",), ("sr",), {}, reader="public-reader"),
)
MADE = Exhibit("x.tuning", "t", "p", (), ROWS, GRIDS, own=True)


def swept(scores, costs=None, units=None):
    scores = np.array(scores, dtype=float)
    costs = np.zeros_like(scores) if costs is None else np.array(costs, dtype=float)
    names = units or tuple(map(str, range(scores.shape[1])))
    return Swept(tuple(0.1 * (i + 1) for i in range(len(scores))), scores, costs, names)


def test_the_best_is_the_cheapest_of_equal_ones():
    every = np.ones(2, dtype=bool)
    held = swept([[100, 0], [0, 100], [0, 0]], [[3, 3], [1, 2], [0, 0]])
    assert held.best(every) == 1
    assert held.best(np.array([True, False])) == 0


def test_of_values_that_do_the_same_nothing_is_gained_by_choosing():
    half = [100, 0] * 20
    made = halved(swept([half, half]))
    assert (made.own - made.other).mean() == pytest.approx(0, abs=1.5)
    assert len(made.chosen) == SPLITS


def test_of_noise_the_chosen_one_looks_better_than_it_is():
    rng = np.random.default_rng(3)
    made = halved(swept(100 * (rng.random((8, 40)) < 0.5)))
    assert (made.own - made.other).mean() > 8
    assert len(set(made.chosen.tolist())) > 2


def test_one_that_is_better_everywhere_is_chosen_on_every_half():
    made = halved(swept([[0] * 10, [100] * 10]))
    assert set(made.chosen.tolist()) == {1}
    assert (made.own == 100).all()
    assert (made.other == 100).all()


def test_what_hangs_together_is_not_parted():
    """Two units of opposite taste: whichever is chosen on, it is the other that is scored."""
    held = swept([[100, 100, 0, 0], [0, 0, 100, 100]], units=("a", "a", "b", "b"))
    made = halved(held)
    assert (made.own == 100).all()
    assert (made.other == 0).all()
    assert halved(swept([[1, 2]], units=("a", "a"))) is None


# -------------------------------------------------------------------------- tables


def line(name, em, searches):
    return {
        **{"id": name, "cluster": name, "hits": [], "scores": {"em": float(em)}},
        "cost": {"retrievals": searches},
    }


def results(by_value):
    """cell -> its lines, by the value of what it varies."""
    from rag_repro.study.scores import Results

    class Held(Results):
        def lines(self, cell):
            value = cell.keys.get("threshold", cell.keys.get("window"))
            return by_value.get(value)

    return Held(None)


def test_one_line_a_row_with_its_setting():
    low = [line(f"q{i}", i % 2, 3) for i in range(20)]
    high = [line(f"q{i}", i % 2, 1) for i in range(1, 21)]
    held = results({0.1: low, 0.4: high, 16: low})
    table = thresholds.optimism(MADE, MADE.cells(), held, caption="Halves", name="tab-halves")
    [row] = table.body  # of one window alone there is nothing to choose
    assert row[:2] == ["HotpotQA", "RIND: threshold"]
    assert row[2:4] == ["0.4 (100%)", "0.4"]  # as good, and cheaper
    assert float(row[4]) == pytest.approx(100 * 10 / 19, abs=1.5)
    assert row[-1] == 19  # those that both have


def test_without_records_it_is_not_run():
    made = thresholds.optimism(MADE, MADE.cells(), results({}), caption="Halves")
    assert isinstance(made, Note)
    assert "rag-repro run x.tuning" in str(made)


def test_released_thresholds_stand_beside_the_printed_ones():
    table = thresholds.shipped(papers.load("dragin"), "Shipped", "tab-shipped")
    assert table.head[2] == "the paper"
    assert len(table.body) == 13
    rows = {tuple(row[:2]): row[2:] for row in table.body}
    # 0.6, which the paper prints, was in no released configuration.
    assert rows["llama2-13b-chat", "2WikiMultihopQA"] == ["0.6", "0.9", "0.8"]
    assert rows["vicuna-13b-v1.5", "IIRC"] == ["1.3", "1.3", "1.3"]
    assert rows["as printed", ""] == ["", "7 of 12", "7 of 12"]


def test_a_state_that_lacks_a_cell_is_seen():
    paper = papers.load("dragin")
    entries = {key: paper.printed(key) for key in ("table9", "configurations")}
    short = {**entries, "configurations": entries["configurations"][1:]}
    with pytest.raises(KeyError):
        thresholds.shipped(SimpleNamespace(printed=short.__getitem__))
