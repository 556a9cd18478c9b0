"""The claims' verdicts as rows, what has been run, two folders compared, one question shown."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import shutil

import pytest

from rag_repro import data
from rag_repro.commands import differences, progress
from rag_repro.evaluation.intervals import Interval
from rag_repro.evaluation.verdicts import Verdict
from rag_repro.schema import Gold, Passage, Question
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.show import ledger
from rag_repro.show import recorded_answers as show
from rag_repro.study import papers, records
from rag_repro.study.judge import Part
from rag_repro.study.papers import Contrast, StudyError
from rag_repro.study.records import RecordError, open_record
from tests.show.conftest import GAIN
from tests.study import mini
from tests.study.mini import rewrite

# -------------------------------------------------------------------------------- the ledger


def test_a_claim_has_a_row_a_tier_with_its_first_primary_contrast(book):
    book.fill()
    made = ledger.rows(book.results())
    assert [row["tier"] for row in made] == ["testbed", "public", "paper"]
    beside = ("main", "small", "parts", "contrasts", "told", "smallest")
    assert {tuple(row) for row in made} == {(*ledger.COLUMNS, *beside)}
    idle, row, _ = made
    assert (row["id"], row["paper"], row["exhibit"]) == ("mini.c01", "Mini", "mini.table1")
    assert (row["verdict"], row["effect"], row["n"], row["delta"]) == (
        *("reproduced", "16.00", 200, "2.00"),
    )
    assert 0 < float(row["lo"]) < 16 < float(row["hi"])
    assert (row["support"], row["place"]) == ("yes", "abstract")
    assert (idle["verdict"], idle["effect"], idle["n"]) == ("not run", "", "")
    assert "no records of world-B, Concatenation, k = 3" in idle["reason"]


def test_a_claim_of_several_parts_shows_the_numbers_of_the_one_that_decides(book):
    first, _ = GAIN.split("\n")
    back = "- {metric: recall, more: {method: sm}, less: {method: qdc}, delta: 3.0, label: back}"
    mini.paper(book.root, f"{first}\n{back}")
    papers.load.cache_clear()
    book.fill()
    [row] = ledger.rows(book.results(), tiers=["public"])
    assert (row["verdict"], row["reason"]) == ("not reproduced", "fails: back (of 2 parts)")
    assert (row["effect"], row["delta"], row["n"]) == ("-16.00", "3.00", 200)


def test_papers_and_tiers_can_be_chosen_and_unknown_ones_are_refused(book):
    assert len(ledger.rows(book.results(), ["mini"], ["paper"])) == 1
    with pytest.raises(StudyError, match=r"no paper 'mimi', did you mean 'mini'"):
        ledger.rows(book.results(), ["mimi"])


def test_the_ledger_as_csv_json_and_markdown(book):
    book.fill()
    made = ledger.rows(book.results())
    made[0]["claim"] = "a | b"
    [one, *_] = csv.DictReader(io.StringIO(ledger.text(made, "csv")))
    assert tuple(one) == ledger.COLUMNS
    assert one["claim"] == "a | b"
    assert json.loads(ledger.text(made, "json")) == made
    lines = ledger.text(made, "md").splitlines()
    assert "a \\| b" in lines[2]
    assert len(lines) == 5


# ------------------------------------------------------------------------------ what has run


def test_progress_counts_conditions_answers_and_failures(book):
    book.fill()
    [cell, *_] = book.exhibit.cells("public")
    rewrite(
        book.records,
        cell.condition,
        lambda line: line | ({"error": "E: no"} if mini.number(line) in (1, 2) else {}),
    )
    public = {
        "exhibit": "mini.table1",
        "tier": "public",
        "conditions": 8,
        "run": 8,
        "complete": 0,  # of 1,000 questions each has 100
        "answers": 800,
        "failed": 2,
    }
    none = {"run": 0, "complete": 0, "answers": 0, "failed": 0}
    testbed = public | {"tier": "testbed", "conditions": 4} | none
    assert progress.rows(book.records) == [testbed, public]
    lines = progress.text(book.records).splitlines()
    assert lines[0].split() == list(public)
    assert lines[2].split() == ["mini.table1", "public", "8", "8", "0", "800", "2"]
    assert len(set(map(len, lines))) == 1


# --------------------------------------------------------------------------------- compare


@pytest.fixture
def two(book):
    """Two equal folders of records, and the condition of one of them."""
    book.fill()
    other = book.root / "other"
    shutil.copytree(book.records, other)
    return book.records, other, book.exhibit.cells("public")[2].condition


def test_equal_folders_agree_on_everything(two):
    a, b, _ = two
    made = differences.rows(a, b)
    assert {row["same"] for row in made} == {1.0}
    assert {(row["diff"], row["lo"], row["hi"]) for row in made} == {(0.0, 0.0, 0.0)}
    assert len(made) == 8 * 2
    text = differences.text(a, b)
    assert text.count("100.0% of the answers are the same") == 8
    assert "difference" not in text


def test_records_of_other_data_or_of_other_questions_say_so(two):
    a, b, condition = two
    record = records.load(b, condition)
    path = records.find(b, condition)
    path.unlink()
    with records.open_record(b, condition, {"corpus": "another"}) as writer:
        for line in record.lines:
            writer.append(line | {"id": f"other-{line['id']}"})
    text = differences.text(a, b)
    assert f"{condition.path}: no question in common" in text
    assert "made otherwise, fingerprint: corpus: a None, b 'another'" in text


def test_a_changed_record_is_found_with_its_difference(two):
    a, b, condition = two

    def worse(line):
        if mini.number(line) < 50 and line["scores"]["recall"] == 1.0:
            return line | {"hits": ["x"], "scores": line["scores"] | {"recall": 0.0}}
        return line

    lost = sum(line["scores"]["recall"] for line in records.load(b, condition).lines[:50])  # of 100
    rewrite(b, condition, worse)
    [row] = [r for r in differences.rows(a, b) if r["same"] < 1 and r["metric"] == "recall"]
    assert row["condition"] == condition.path
    assert row["same"] == pytest.approx(1 - lost / 100)
    assert (row["a"], row["n"]) == (78.0, 100)
    assert row["diff"] == pytest.approx(-lost)
    assert row["lo"] < -lost < row["hi"] < 0
    text = differences.text(a, b)
    assert f"recall: 78.00 -> {78 - lost:.2f}, difference -{lost:.2f} [" in text
    assert "passages:" not in text


@pytest.mark.parametrize("change", [{"prediction": "x"}, {"error": "E"}, {"hits": ["x"]}])
def test_an_answer_is_the_same_only_with_equal_hits_prediction_and_error(two, change):
    a, b, condition = two
    rewrite(b, condition, lambda line: line | (change if mini.number(line) == 5 else {}))
    assert {r["same"] for r in differences.rows(a, b) if r["condition"] == condition.path} == {0.99}
    # The scores are what they were: only the share tells.
    assert "99.0% of the answers are the same" in differences.text(a, b)


def test_questions_that_hang_together_widen_the_difference(two):
    a, b, condition = two

    def worse(line):
        lost = mini.number(line) < 40
        return line | {"scores": line["scores"] | ({"recall": 0.0} if lost else {})}

    rewrite(b, condition, worse)
    [free] = [r for r in differences.rows(a, b) if r["diff"]]
    for folder in (a, b):
        rewrite(folder, condition, lambda line: line | {"cluster": f"c{mini.number(line) // 20}"})
    [bound] = [r for r in differences.rows(a, b) if r["diff"]]
    assert bound["diff"] == free["diff"]
    assert bound["hi"] - bound["lo"] > 1.5 * (free["hi"] - free["lo"])


def test_only_common_questions_are_compared(two):
    a, b, condition = two
    rewrite(b, condition, lambda line: line if mini.number(line) < 30 else None)
    assert {r["n"] for r in differences.rows(a, b) if r["condition"] == condition.path} == {30}


def test_folders_that_cannot_be_compared_are_refused(book, tmp_path):
    book.fill()
    with pytest.raises(RecordError, match="there is no folder"):
        differences.rows(book.records, tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match="no condition in common"):
        differences.rows(book.records, tmp_path / "empty")


# ------------------------------------------------------------------------------------ show

PASSAGES = (Passage("a", "First", "text of a"), Passage("b", "Second", "text of b"))
QUESTION = Question("q7", "Who?", ("Her", "She"), kind="bridge", gold=(Gold("b", "dynamic", 2),))


@pytest.fixture
def shown(book, monkeypatch):
    """One question recorded in two cells of one data set and one of another."""
    sets = {
        "hotpotqa": Dataset("hotpotqa", (QUESTION,), Corpus("h", PASSAGES)),
        "musique": Dataset("musique", (), Corpus("m", ())),
    }
    monkeypatch.setattr(data, "load", lambda name, *, data_dir, split: sets[name])
    line = {"id": "q7", "kind": "bridge", "cluster": "q7", "hits": ["a", "b"]}
    line |= {"scores": {"recall": 1.0, "map": 0.5}}
    cells = book.exhibit.cells("public")
    lines = {
        0: line,
        2: line | {"hits": ["a"], "error": "E: no"},
        4: line | {"hits": ["elsewhere"]},
        3: line | {"id": "q8", "text": "It is she.", "prediction": "she"},
    }
    for place, held in lines.items():
        with open_record(book.records, cells[place].condition, {}) as writer:
            writer.append(held)
    return book


def shown_text(book, question: str, tier: str | None = None) -> str:
    """What `rag-repro show mini.table1 --question ID` prints of these records."""
    recorded = show.RecordedExhibit(papers.exhibit("mini.table1")[1], book.records, tier=tier)
    return show.text(show.question(recorded, question))


def test_a_record_is_joined_with_the_data(shown):
    text = shown_text(shown, "q7")
    lines = text.splitlines()
    assert lines[0] == "q7 (hotpotqa, bridge)"
    assert "  question  Who?" in lines
    assert "  answers   Her | She" in lines
    assert "  gold      [dynamic] b Second: text of b" in lines
    sm = lines.index("method sm, k 3")
    assert lines[sm + 1 : sm + 6] == [
        "  row       Similarity",
        "  hit 1     a First",
        "  hit 2     b Second (gold)",
        "  verdict   right, by recall",
        "  scores    recall 100%",
    ]
    qdc = lines.index("method qdc, k 3")
    assert "  failed    E: no" in lines[qdc:]
    # Another data set has a question of the same id: it is not mixed in.
    assert text.count("\nmethod ") == 2


def test_the_readers_words_are_shown(shown, monkeypatch):
    asked = dataclasses.replace(QUESTION, id="q8")
    dataset = Dataset("hotpotqa", (asked,), Corpus("h", PASSAGES))
    monkeypatch.setattr(data, "load", lambda name, *, data_dir, split: dataset)
    text = shown_text(shown, "q8")
    assert "  says      'It is she.', taken as 'she'" in text


def test_a_question_without_a_record_is_refused(shown):
    with pytest.raises(StudyError, match=r"no record of mini.table1 holds the question 'q9'"):
        shown_text(shown, "q9")
    with pytest.raises(StudyError, match="holds the question 'q7'"):
        shown_text(shown, "q7", tier="testbed")


def test_records_of_other_data_than_at_hand_are_refused(shown, monkeypatch):
    less = Dataset("hotpotqa", (QUESTION,), Corpus("h", PASSAGES[:1]))
    monkeypatch.setattr(data, "load", lambda name, *, data_dir, split: less)
    with pytest.raises(StudyError, match=r"made from other data than .* lacks 'b'"):
        shown_text(shown, "q7")


def test_the_committed_papers_are_seen_again_after_these_tests():
    assert "mini" not in papers.names()


def test_an_effect_is_told_in_what_it_is_counted():
    def unit(metric="em", less=None, **given):
        return ledger.unit(Contrast(metric, more={}, less=less, **given))

    assert unit(less={}, delta=1.0) == "points"
    assert unit("retrievals", less={}, delta=1.0) == "searches"
    assert unit(target=50.0, margin=5.0) == "%"
    assert unit("retrievals", target=1.0, margin=0.1) == "searches"
    assert unit(target=100.0, delta=10.0) == "points below 100 %"
    assert unit("retrievals", target=2.0, delta=0.5, above=True) == "searches above 2"
    ratio = {"less": {}, "target": 100.0, "ratio": True, "delta": 5.0}
    assert unit("retrievals", **ratio) == "% less than the other"
    assert unit("em", **ratio, above=True) == "% more than the other"


def test_an_effect_wholly_on_the_other_side_is_told_without_a_double_negative():
    def told(lo, hi, **given):
        contrast = Contrast("seconds", more={}, target=100.0, delta=5.0, ratio=True, **given)
        found = Verdict("inconclusive", "why", Interval((lo + hi) / 2, lo, hi, 30))
        return ledger.format_effect(Part(contrast, found))

    assert told(10.0, 30.0, less={}) == "+20.00 [+10.00, +30.00] % less than the other"
    assert told(-30.0, -10.0, less={}) == (
        "+20.00 [+10.00, +30.00] % more than the other, against the claim"
    )
    assert told(-10.0, 30.0, less={}) == "+10.00 [-10.00, +30.00] % less than the other"
    assert (
        told(-30.0, -10.0, less={}, above=True)
        == "+20.00 [+10.00, +30.00] % less than the other, against the claim"
    )


def test_a_smallest_effect_is_told_by_the_form_of_its_claim():
    def smallest(delta=5.0, **given):
        form = given or {"delta": 5.0}
        contrast = Contrast("em", more={}, less={}, **form)
        return ledger.smallest(Part(contrast, Verdict("inconclusive", "why", delta=delta)))

    assert smallest(delta=None) == ""
    assert smallest() == "5"
    assert smallest(margin=5.0, no_loss=True) == "no loss 5"
    assert smallest(margin=5.0) == "margin 5"
    assert smallest(margin=5.0, target=25.8) == "margin 5 around 25.8"
