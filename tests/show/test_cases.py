"""Questions on which one method does better than another, out of records written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro import data
from rag_repro.lm import hub
from rag_repro.show import cases
from rag_repro.show.picture import Note
from rag_repro.study.exhibits import Exhibit, ExhibitMethod, Grid
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results
from rag_repro.study.services import Workshop

WORLD = "world-B@1000"
METHODS = {
    "sm": ExhibitMethod("SM", "single_step", "bm25"),
    "qdc": ExhibitMethod("QDC", "qdc", "bm25"),
}
SM, QDC = {"method": "sm", "k": 4}, {"method": "qdc"}


@pytest.fixture(autouse=True)
def no_artifacts(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))


@pytest.fixture(scope="module")
def world():
    return data.load(WORLD, split="test")


@pytest.fixture
def exhibit():
    settings = {"k": (4, 6)}
    public = Grid("public", ("musique",), ("sm", "qdc"), settings, reader="public-reader")
    testbed = Grid("testbed", (WORLD,), ("sm", "qdc"), settings, reader="testbed-reader")
    return Exhibit("mini.answers", "Answers", "", ("acc",), METHODS, (public, testbed))


def fill(root, exhibit, questions, score, more=lambda method, i: {}, **wanted):
    """score: (method, place) -> acc or None, for the questions of the wanted cells."""
    for cell in exhibit.cells():
        if not cell.matches({"k": 4, **wanted}):
            continue
        with open_record(root, cell.condition, {}) as record:
            for i, question in enumerate(questions):
                method = cell.keys["method"]
                acc = score(method, i)
                line = {
                    "id": question.id,
                    "kind": question.kind,
                    "cluster": question.id,
                    "hits": list(question.gold_ids)[: 1 + (method == "qdc")],
                    "text": f"{method} says {i}",
                    "scores": {} if acc is None else {"acc": float(acc)},
                }
                record.append(line | more(method, i))
    return Results(root)


def mixed(method, i):
    """sm is right in 0 to 3, qdc in 2 to 8."""
    return i < 4 if method == "sm" else 2 <= i < 9


@pytest.fixture
def results(exhibit, world, tmp_path):
    return fill(tmp_path / "records", exhibit, world.questions[:10], mixed)


def sides(exhibit):
    """SM and QDC at k = 4."""
    return [c for c in exhibit.cells("testbed") if c.keys["k"] == 4]


# ------------------------------------------------------------------ head to head


def test_two_cells_head_to_head_with_mcnemars_p(exhibit, results, world):
    found = cases.versus(results, *sides(exhibit))
    assert [c.keys["method"] for c in (found.before, found.after)] == ["sm", "qdc"]
    names = [question.id for question in world.questions]
    assert [before["id"] for before, _ in found.gained] == names[4:9]
    assert [after["text"] for _, after in found.lost] == ["qdc says 0", "qdc says 1"]
    assert found.of == 10
    assert found.p == pytest.approx(0.453125)  # two-sided sign test of 5 against 2


def test_what_nobody_can_tell_is_not_counted(exhibit, world, tmp_path):
    def score(method, i):
        return None if (method, i) in (("sm", 0), ("qdc", 5)) else mixed(method, i)

    results = fill(tmp_path / "records", exhibit, world.questions[:10], score)
    found = cases.versus(results, *sides(exhibit))
    assert (len(found.gained), len(found.lost), found.of) == (4, 1, 8)


def test_questions_of_one_side_alone_are_not_counted(exhibit, world, tmp_path):
    fill(tmp_path / "records", exhibit, world.questions[:10], mixed, method="sm")
    results = fill(tmp_path / "records", exhibit, world.questions[:6], mixed, method="qdc")
    assert cases.versus(results, *sides(exhibit)).of == 6
    assert cases.versus(Results(tmp_path / "no"), *sides(exhibit)) is None


def test_the_reverse_can_be_something_else(exhibit, results):
    def always(before, after):
        return True

    found = cases.versus(results, *sides(exhibit), always, lambda before, after: False)
    assert (len(found.gained), len(found.lost)) == (10, 0)
    assert found.p == pytest.approx(2 / 2**10)


def test_no_p_is_shown_where_the_reverse_is_no_second_methods_outcome(exhibit, results):
    told = cases.case(exhibit, results, Workshop(), SM, QDC, worse=lambda before, after: False)
    assert told[-1].head == ["QDC alone", "SM alone", "both or neither", "questions"]
    assert told[-1].body == [[5, 0, 5, 10]]
    assert cases.case(exhibit, results, Workshop(), SM, QDC)[-1].head[-1] == "McNemar's p"


def test_counts_have_a_line_a_data_set(exhibit, results, tmp_path):
    table = cases.counts(exhibit, results, SM, QDC)
    assert table.body == [
        ["MuSiQue", "public-reader", 5, 2, 10, "0.453"],
        [WORLD, "testbed-reader", 5, 2, 10, "0.453"],
    ]
    reverse = cases.counts(exhibit, results, {"method": "qdc", "k": 4}, {"method": "sm"})
    assert [row[2:4] for row in reverse.body] == [[2, 5], [2, 5]]
    none = cases.counts(exhibit, Results(tmp_path / "no"), SM, QDC)
    assert none.text.startswith("Not run: `rag-repro train public-reader`, then ")


# ----------------------------------------------------------------- a worked case


def test_a_case_is_the_first_that_is_better_with_both_counts_at_its_end(exhibit, results, world):
    pages = cases.case(exhibit, results, Workshop(), SM, QDC)
    question = world.questions[4]
    assert pages[0].body[0] == ["question", question.text]
    assert [page.caption for page in pages[1:-1]] == [
        "Handed on by SM, k = 4",
        "Handed on by QDC, k = 4",
        "What the reader makes of it",
    ]
    title = world.corpus.by_id[question.gold_ids[1]].title
    assert [title in [row[1] for row in page.body] for page in pages[1:3]] == [False, True]
    assert pages[3].body == [["SM", "sm says 4"], ["QDC", "qdc says 4"]]
    assert pages[-1].head[:2] == ["QDC alone", "SM alone"]
    assert pages[-1].body == [[5, 2, 3, 10, "0.453"]]


def test_a_case_is_walked_through_now_where_nothing_is_lacking(exhibit, world, tmp_path):
    read = cases.case(
        exhibit,
        fill(tmp_path / "read", exhibit, world.questions[:10], mixed),
        Workshop(),
        SM,
        QDC,
        walked=True,
    )
    assert read[1].caption == "Handed on by SM, k = 4"  # its reader is not trained here
    found = Exhibit(
        "mini.found", "", "", ("acc",), METHODS, (replace(exhibit.grids[1], reader=None),)
    )
    results = fill(tmp_path / "found", found, world.questions[:10], mixed)
    question = world.questions[4]
    pages = cases.case(found, results, Workshop(), SM, QDC, walked=True)
    assert pages[1].caption == "Every step of QDC, taken now"
    searched = [row[2] for row in pages[1].body if row[1] == "search"]
    assert searched[0] == question.text
    assert len(searched) == 3  # with the question, and with each of two first passages
    assert all(query.startswith(question.text) for query in searched[1:])
    assert "yes" in [row[4] for row in pages[1].body]


def test_the_same_passages_in_the_same_order_are_shown_once(exhibit, world, tmp_path):
    first = world.questions[0]
    ids = list(first.gold_ids)

    def more(method, i):
        return {"hits": ids if i == 0 or method == "sm" else ids[::-1]}

    asked, right = world.questions[:2], lambda method, i: method == "qdc"
    results = fill(tmp_path / "records", exhibit, asked, right, more)
    pages = cases.case(exhibit, results, Workshop(), SM, QDC)
    assert [p.caption for p in pages[1:3]] == [
        "Handed on by both, k = 4",
        "What the reader makes of it",
    ]
    pages = cases.case(exhibit, results, Workshop(), SM, QDC, fine=lambda _, b: b["id"] != first.id)
    assert [page.caption for page in pages[1:3]] == [
        "Handed on by SM, k = 4",
        "Handed on by QDC, k = 4",
    ]


def test_a_finer_wish_chooses_what_is_shown_and_not_what_is_counted(exhibit, results, world):
    gained = world.questions[4:9]
    kind = next(q.kind for q in gained if q.kind != gained[0].kind)
    of_kind = cases.of_kind(kind)
    pages = cases.case(exhibit, results, Workshop(), SM, QDC, fine=of_kind)
    shown = next(q for q in gained if q.kind == kind)
    assert pages[0].body[0] == ["question", shown.text]
    assert pages[-1].body == [[5, 2, 3, 10, "0.453"]]
    both = cases.each(of_kind, cases.higher("recall"))
    line = {"kind": kind, "scores": {"recall": 0.0}}
    assert both(line, line | {"scores": {"recall": 0.5}})
    assert not both(line, line)
    assert not both(line | {"kind": "other"}, line | {"scores": {"recall": 0.5}})
    never = cases.case(exhibit, results, Workshop(), SM, QDC, fine=cases.of_kind("no such kind"))
    assert "No such question is of the kind looked for" in repr(never[0])
    assert never[1].body[0] == ["question", gained[0].text]


def test_what_a_classifier_was_asked_is_shown_where_it_was(exhibit, world, tmp_path):
    first = world.questions[0]
    other = next(p.id for p in world.corpus.passages if p.id not in first.gold_ids)
    judged = [[first.gold_ids[0], first.gold_ids[1], 0.75, 2], [first.gold_ids[0], other, 0.25, 1]]

    def more(method, i):
        return {"judged": judged} if method == "qdc" else {}

    results = fill(tmp_path / "records", exhibit, [first], lambda m, i: m == "qdc", more)
    pages = cases.case(exhibit, results, Workshop(), SM, QDC, names=("one", "two"), counted="ab")
    assert pages[1].caption == "Handed on by one, k = 4"
    assert [row[2:] for row in pages[4].body] == [["0.75", 2, "yes"], ["0.25", 1, "no"]]
    assert pages[-1].head[:3] == ["a", "b", "both or neither"]


def test_better_may_be_anything_that_two_lines_tell(exhibit, world, tmp_path):
    def more(method, i):
        found = i == 1 if method == "qdc" else i == 2
        return {"gold": [["static", 1, 1], ["dynamic", 2, 2 if found else None]]}

    results = fill(tmp_path / "records", exhibit, world.questions[:3], mixed, more)

    def better(before, after):
        return after["gold"][1][2] is not None and before["gold"][1][2] is None

    pages = cases.case(exhibit, results, Workshop(), SM, QDC, better)
    assert pages[0].body[0] == ["question", world.questions[1].text]
    assert pages[-1].body == [[1, 1, 1, 3, "1.000"]]


def test_without_a_case_there_is_a_note_with_the_reason(exhibit, world, tmp_path):
    root = tmp_path / "records"
    results = fill(root, exhibit, world.questions[:10], lambda method, i: method == "sm")
    [none] = cases.case(exhibit, results, Workshop(), SM, QDC)
    assert isinstance(none, Note)
    assert "none of the 10 recorded questions is one; the reverse is true of 10" in none.text
    [empty] = cases.case(exhibit, Results(tmp_path / "no"), Workshop(), SM, QDC)
    assert empty.text == (
        "Not run: `rag-repro train testbed-reader`, then "
        "`rag-repro run mini.answers --tier testbed`."
    )
    [nothing] = cases.case(exhibit, results, Workshop(), {"method": "sm", "k": 9}, QDC)
    assert "no such condition" in nothing.text


def test_texts_of_real_data_are_never_shown(exhibit, world, tmp_path):
    root = tmp_path / "records"
    results = fill(root, exhibit, world.questions[:10], mixed, dataset="musique")
    [told] = cases.case(exhibit, results, Workshop(), SM, QDC)
    assert told.text.startswith("Not run: ")
    public = Exhibit("mini.answers", "", "", ("acc",), METHODS, exhibit.grids[:1])
    [told] = cases.case(public, results, Workshop(), SM, QDC)
    assert told.text == "Texts of public data sets are not shown here."
