"""What cells are called in a verdict's reasons."""

from __future__ import annotations

from rag_repro.study import exhibits
from tests.study import mini


def test_cells_side_by_side_are_named_by_what_tells_them_apart(tmp_path):
    exhibit = mini.paper(tmp_path, "").exhibits["table1"]
    cells = [cell for cell in exhibit.cells("public") if cell.keys["method"] == "sm"]
    assert len({cell.keys["dataset"] for cell in cells}) == 2
    one = [cell for cell in cells if cell.keys["k"] == 4]
    both = [
        c for c in exhibit.cells("public") if (c.keys["dataset"], c.keys["k"]) == ("musique", 4)
    ]
    assert sorted(exhibits.short_names(exhibit, one)) == ["HotpotQA", "MuSiQue"]
    assert "MuSiQue, k = 4" in exhibits.short_names(exhibit, cells)
    assert {*exhibits.short_names(exhibit, both)} >= {
        "MuSiQue, Similarity",
        "MuSiQue, Concatenation",
    }
    [alone] = exhibits.short_names(exhibit, one[:1])
    assert alone == exhibits.full_name(exhibit, one[0]) == "HotpotQA, Similarity, k = 4"


def test_cells_side_by_side_have_names_of_their_own(tmp_path):
    exhibit = mini.paper(tmp_path, "").exhibits["table1"]
    cells = exhibit.cells()
    assert len({*exhibits.short_names(exhibit, cells)}) == len(cells)
