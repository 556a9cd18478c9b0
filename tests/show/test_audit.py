"""The audit computes what it says: each finding moves with the printed values."""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
from decimal import Decimal

import pytest

from rag_repro.study import audits, papers
from rag_repro.study.papers import StudyError
from rag_repro.study.printed import Gain


@pytest.fixture(params=("drrag", "erm4", "dragin", "r2ag"))
def paper(request):
    return papers.load(request.param)


def copy_of(paper, folder, change):
    """The paper from a copy of its folder in which `change` made new values of the old."""
    target = folder / paper.name
    shutil.copytree(paper.folder, target)
    for path in sorted(target.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["value"] = change(path.stem, row)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return papers.read(target)


def test_no_number_of_a_finding_is_typed(paper, tmp_path, monkeypatch):
    rng = random.Random(3)
    # Other values may gain nothing and set no effect, which no finding asks for.
    monkeypatch.setattr(Gain, "amounts", lambda gain, paper: (1.0, 50.0))

    def other(_, row):
        value = Decimal(row["value"])
        if row["metric"] in ("test", "passages") and value == value.to_integral():
            return str(int(value) + rng.randint(5, 90))
        return str((value * Decimal(rng.uniform(0.6, 0.98))).quantize(value))

    before = audits.findings(paper)
    after = audits.findings(copy_of(paper, tmp_path, other))
    assert len(before) == len(after) > 9
    for old, new in zip(before, after, strict=True):
        assert old.sentence == new.sentence
        assert old.working != new.working, old.sentence.said


def test_findings_name_claims_that_there_are_and_places(paper):
    ids = {claim.id for claim in paper.claims}
    for found in audits.findings(paper):
        assert set(found.sentence.claims) <= ids, found.sentence.claims
        assert found.sentence.place
        assert found.working.endswith(".")
        assert not found.sentence.settles.endswith(".")
    for one in audits.load(paper).readings:
        assert set(one.claims) <= ids
        assert all((one.place, one.said, one.beside, one.told))


def test_what_differs_is_not_called_supported(paper):
    for found in audits.findings(paper):
        for name in found.sentence.claims:
            if found.outcome == audits.DIFFERS:
                assert paper.claim(name).support in ("no", "partly"), (found.sentence.said, name)


def outcomes(paper, said):
    return [f.outcome for f in audits.findings(paper) if said in f.sentence.said]


def setting(**wanted):
    """A change of one printed value; keys of the row, `table` and `to`."""
    table, to = wanted.pop("table"), wanted.pop("to")

    def change(name, row):
        fits = name == table and all(row.get(k) == v for k, v in wanted.items())
        return to if fits else row["value"]

    return change


@pytest.mark.parametrize(
    ("name", "said", "was", "change", "becomes"),
    [
        (
            *("drrag", "F1 cannot be below EM", audits.DIFFERS),
            {"table": "table3", "value": "25.05", "to": "35.05"},
            audits.AGREES,
        ),
        (
            *("drrag", "better than Self-RAG", audits.AGREES),
            {
                **{"table": "table2", "method": "self_rag", "dataset": "musique"},
                **{"metric": "em", "to": "99.00"},
            },
            audits.IN_PART,
        ),
        (
            *("drrag", "less than 2 %", audits.AGREES),
            {"table": "table6", "classifier": "longformer", "k": "4", "metric": "em", "to": "60.0"},
            audits.IN_PART,
        ),
        (
            *("erm4", "the same runs of CAmbigNQ", audits.IN_PART),
            {
                **{"table": "table3", "dataset": "cambignq", "method": "plus", "metric": "hit"},
                "to": "59.00",
            },
            audits.AGREES,
        ),
        (
            *("erm4", "time is least", audits.OPEN),
            {"table": "table2", "tau": "0.6", "metric": "seconds", "to": "6.10"},
            audits.AGREES,
        ),
        (
            *("dragin", "different readers", audits.COINCIDES),
            {
                **{"table": "table2", "method": "none", "reader": "vicuna-13b-v1.5"},
                **{"dataset": "2wikimultihopqa", "metric": "em", "to": "0.150"},
            },
            audits.AGREES,
        ),
        (
            *("dragin", "thresholds compared on HotpotQA", audits.COINCIDES),
            {"table": "table5", "threshold": "0.6", "metric": "em", "to": "0.310"},
            audits.OPEN,
        ),
        (
            *("dragin", "DRAGIN with BM25 on HotpotQA", audits.DIFFERS),
            {
                **{"table": "table7", "method": "bm25", "dataset": "hotpotqa"},
                **{"metric": "precision", "to": "0.440"},
            },
            audits.AGREES,
        ),
        (
            *("r2ag", "accuracies are shares of NQ", audits.IN_PART),
            {"table": "table1", "dataset": "nq10", "value": "0.6886", "to": "0.6893"},
            audits.AGREES,
        ),
        (
            *("r2ag", "relevant documents", audits.OPEN),
            {"table": "table4", "dataset": "hotpotqa", "metric": "gold", "to": "2"},
            audits.AGREES,
        ),
    ],
)
def test_an_outcome_turns_with_what_is_printed(name, said, was, change, becomes, tmp_path):
    paper = papers.load(name)
    assert outcomes(paper, said) == [was]
    assert outcomes(copy_of(paper, tmp_path, setting(**change)), said) == [becomes]


def test_what_rests_on_a_table_that_is_not_at_hand_says_so():
    [found] = [f for f in audits.findings(papers.load("drrag")) if "Jeong" in f.working]
    assert found.outcome == audits.COINCIDES
    assert "not verified here" in found.working
    assert found.sentence.settles


def test_a_share_of_n_questions_is_told_to_the_digits_that_are_printed():
    assert audits.near(Decimal("86.746"), "86.75")
    assert not audits.near(Decimal("86.744"), "86.75")
    assert audits.near(Decimal("46.66"), "46.7", 1)


@pytest.mark.parametrize(
    ("held", "of", "wanted"), [(3, 3, "agrees"), (1, 3, "agrees in part"), (0, 3, "differs")]
)
def test_outcomes_of_counts(held, of, wanted):
    assert audits.outcome(held, of) == wanted


def test_an_unknown_outcome_is_refused():
    with pytest.raises(StudyError, match="'proves fraud' is none of"):
        audits.Finding(audits.Sentence("1", "a", text="b"), working="b", outcome="proves fraud")


def test_findings_are_kept_by_the_claims_that_they_bear_on(paper):
    bearing = [f for f in audits.findings(paper) for _ in f.sentence.claims]
    assert sum(map(len, audits.claim_findings(paper).values())) == len(bearing)


def test_a_paper_of_ones_own_has_no_audit():
    assert audits.load(papers.load("tools")) == audits.Audit()


def test_no_motive_is_told(paper):
    """What coincides is told, and what would settle it; not why it might be so."""
    told = " ".join(
        f"{f.sentence.said} {f.working} {f.sentence.settles}" for f in audits.findings(paper)
    )
    assert not re.search(r"copied|stolen|fake|fraud|careless|mistake|wrong", told)


SENTENCE = {
    "place": "section 1",
    "said": "it is better",
    "claims": ["drrag.c01"],
    "cells": [{"dataset": ["musique", "hotpotqa"], "metric": "em"}],
    "values": {"ours": "value('table2', method='dr_rag')"},
    "holds": "ours > 30",
    "item": "{{ name(dataset) }}",
    "text": "{{ right }} of {{ n }}, not {{ odd | items }}: {{ ours | points }}.",
}
PLACES = {"place": "section 1", "said": "it is", "beside": "section 2", "told": "it is not"}


def written(folder, **content):
    """DR-RAG from a copy of its folder with this `audit.yaml`."""
    target = folder / "drrag"
    shutil.copytree(papers.load("drrag").folder, target)
    (target / "audit.yaml").write_text(json.dumps(content), encoding="utf-8")
    return papers.read(target)


def test_a_sentence_is_tried_in_each_of_its_cells(tmp_path):
    paper = written(tmp_path, findings={"better": SENTENCE}, readings=[PLACES])
    [found] = audits.findings(paper)
    assert found.working == "1 of 2, not MuSiQue: 26.97, 48.58."
    assert found.outcome == audits.IN_PART
    assert found.sentence.claims == ("drrag.c01",)
    reading = audits.Reading("section 1", "it is", "section 2", "it is not")
    assert audits.load(paper).readings == (reading,)


def one_with(**changed):
    return {"findings": {"a": SENTENCE | changed}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"reading": []}, "audit.yaml: unknown key 'reading', did you mean 'readings'"),
        (one_with(sad=""), "audit.yaml, finding a: unknown key 'sad'"),
        ({"findings": {"a": {"place": "1"}}}, "finding a: the key 'said' is missing"),
        (one_with(claims=["drrag.c99"]), "finding a: .* 'drrag.c99'"),
        ({"readings": [{}]}, "reading 1: the key 'place' is missing"),
        (one_with(holds="ours >"), "finding a: .*"),
        (one_with(holds="theirs > 30"), "finding a: 'theirs' is undefined"),
        (one_with(holds="ours > 'many'"), "finding a: .*not supported"),
        (one_with(values={"ours": "value('table2')"}), r"finding a: table2 prints \d+ values with"),
        (one_with(cells=[{"dataset": "nq"}]), "finding a: table2 prints nothing with"),
        (one_with(outcome="'well'"), "finding a: the outcome 'well' is none of"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_place(content, words, tmp_path):
    paper = written(tmp_path, **content)
    with pytest.raises(StudyError, match=f"drrag/.*{words}"):
        audits.findings(paper)
