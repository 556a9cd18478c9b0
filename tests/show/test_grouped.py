"""Columns over groups of questions."""

from __future__ import annotations

from types import SimpleNamespace

from rag_repro import show
from rag_repro.study import records
from rag_repro.study.scores import Results
from tests.study import mini


def test_a_group_is_of_all_data_sets_together_and_has_levels_and_gains(tmp_path):
    """SM finds everything of even questions, QDC of all."""
    paper = mini.paper(tmp_path, "- {metric: recall, more: {method: sm}, target: 1.0, margin: 1.0}")
    cells = [c for c in paper.exhibits["table1"].cells("public") if c.matches({"k": 3})]
    datasets = {cell.keys["dataset"] for cell in cells}
    for cell in cells:
        with records.open_record(tmp_path / "records", cell.condition, {}) as record:
            for i in range(50):
                found = float(cell.keys["method"] == "qdc" or i % 2 == 0)
                name = f"{cell.keys['dataset']}-{i}"
                line = {"id": name, "cluster": name, "kind": None, "hits": []}
                record.append(line | {"scores": {"recall": found}})
    results = Results(tmp_path / "records")
    desk = SimpleNamespace(paper=paper, results=results, tiers=lambda: ["public"])
    shown = show.entries(desk, "table1", method=["sm", "qdc"], k=3)
    parity = {
        name: {f"{dataset}-{i}" for dataset in datasets for i in range(first, 50, 2)}
        for name, first in (("even", 0), ("odd", 1))
    }
    n = 25 * len(datasets)
    assert n > 25
    columns = {
        "group": show.group(),
        "method": show.label(),
        "recall": show.level("recall"),
        "added": show.gain("recall", over={"method": "sm"}),
    }
    made = show.table(show.grouped(shown, parity), columns)
    rows = {(row[0], row[1]): row[2:] for row in made.body}
    assert len(rows) == 4
    assert rows["even", "Similarity"][0].startswith("100.0 [")
    assert rows["even", "Similarity"][1] == ""  # against itself
    assert rows["odd", "Similarity"][0].startswith("0.0 [")
    assert rows["odd", "Concatenation"][0].endswith(f"n {n}")
    assert rows["odd", "Concatenation"][1].startswith("+100.0 [")
    assert show.grouped([], parity) == []
