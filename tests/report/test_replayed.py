"""Decisions of the released code and of its variants, on records worked by hand."""

from __future__ import annotations

import re
from pathlib import Path

from rag_repro.methods.dragin.replay import DIFFERENCES, VARIANTS
from rag_repro.report import replayed
from rag_repro.report.picture import Note
from rag_repro.study import papers
from rag_repro.study.papers import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

ROOT = Path(__file__).parents[2]
ROWS = {"replay": ExhibitMethod("each difference", "dragin_replay", None)}
GRID = Grid(tier="testbed", datasets=("world-B",), methods=("replay",), settings={})
MADE = Exhibit("x.replayed", "t", "p", (), ROWS, (GRID,), own=True)
CELLS = MADE.cells()


def line(name: str, released, **others):
    """The released code's entry for all variants, but for those that are given."""
    entries = [others.get(variant, released) for variant in VARIANTS]
    return {"id": name, "cluster": name, "hits": [], "scores": {}, "variants": entries}


LINES = [
    line("q0", [1, 4, "aa"], D1=[0, 9, ""], D8=[1, 6, "aa"]),
    line("q1", [1, 2, "bb"], D8=[1, 3, "bb"], D10=[1, 2, "cc"]),
    line("q2", [0, 7, ""], D1=[1, 5, "dd"], equations=[1, 5, "ee"]),
    line("q3", [0, 7, ""]),
]


def filled(tmp_path) -> Results:
    with open_record(tmp_path, CELLS[0].condition, {}) as record:
        for one in LINES:
            record.append(one)
    return Results(tmp_path)


def test_each_variant_is_compared_with_the_released_code(tmp_path):
    table = replayed.agreement(CELLS, filled(tmp_path), "Alike", "tab-alike")
    rows = {row[1].split(":")[0]: row[2:] for row in table.body}
    assert len(table.body) == len(VARIANTS)
    shares = {name: [cell.split(" ")[0] for cell in row[:4]] for name, row in rows.items()}
    assert shares["the released code"][0] == "50.0"
    # Alarms on q1 and q2; alike on q1 and q3; both on q1 alone, with its cut and query.
    assert shares["D1"] == ["50.0", "50.0", "100.0", "100.0"]
    assert shares["D8"] == ["50.0", "100.0", "0.0", "100.0"]
    assert shares["D10"] == ["50.0", "100.0", "100.0", "50.0"]
    assert shares["the equations, at a threshold of their own"][:2] == ["75.0", "75.0"]
    assert {row[-1] for row in table.body} == {4}


def test_a_difference_that_moves_nothing_is_named(tmp_path):
    moved = {"D1", "D8", "D10"}
    assert replayed.unmoved(CELLS, filled(tmp_path)) == [d for d in DIFFERENCES if d not in moved]


def test_what_moves_nothing_is_told_in_words(tmp_path):
    told = str(replayed.still(CELLS, filled(tmp_path)))
    assert told.startswith("No alarm, cut or query of the 4 recorded drafts is changed by D2: ")
    assert replayed.WORDS["D12"] in told
    assert "D1:" not in told


def test_where_each_difference_moves_something_this_is_told(tmp_path):
    with open_record(tmp_path, CELLS[0].condition, {}) as record:
        record.append(line("q0", [1, 4, "aa"], **{key: [0, 9, ""] for key in DIFFERENCES}))
    told = str(replayed.still(CELLS, Results(tmp_path)))
    assert told == (
        "Each of the 12 differences changes an alarm, a cut or a query of the 1 recorded drafts."
    )


def test_without_records_nothing_is_said_of_differences(tmp_path):
    assert "rag-repro run x.replayed" in str(replayed.still(CELLS, Results(tmp_path)))


def test_without_records_it_is_not_run(tmp_path):
    shown = replayed.agreement(CELLS, Results(tmp_path), "Alike", "tab-alike")
    assert isinstance(shown, Note)
    assert "rag-repro run x.replayed" in str(shown)


def test_every_variant_has_its_words():
    assert tuple(replayed.WORDS) == VARIANTS


def test_where_the_answer_is_read():
    """D28: the first "the answer is" to the text's end, or the last "So the answer is" in its line.

    Of StrategyQA the released code takes what is not "yes" at once for "no".
    """
    rows = [row[2:] for row in replayed.answers().body]
    assert rows == [
        ["Sarnby", "Sarnby"],
        ["Sarnby", "none"],
        ["Sarnby. So the answer is Old Perrin", "Old Perrin"],
        ["Sarnby. Ada lived there. \u21b5 She wrote", "Sarnby. Ada lived there"],
        ["no", "no"],
        ["no", "no"],
    ]
    assert replayed.released_answer("It is Sarnby.", yes_no=True) is None
    assert replayed.released_answer("the answer is yes, so it is.", yes_no=True) == "yes"


def test_chapter_35_lists_each_difference_once_and_counts_them():
    chapter = (ROOT / "notebooks" / "35_dragin_equations.py").read_text(encoding="utf-8")
    listed = [name.removeprefix("D") for name in DIFFERENCES]
    listed += re.findall(r'^(?:# \| |\s+")D(\d+): ', chapter, flags=re.MULTILINE)
    last = int(max(listed, key=int))
    assert sorted(map(int, listed)) == [*range(1, last + 1)]
    assert last == 30
    assert f"# {last} differences were found, D1 to D{last}." in chapter
    assert f"D1 to D{last}: points in which the released code" in papers.load("dragin").legend
