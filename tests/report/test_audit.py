"""The audit computes what it says: each finding moves with the printed values."""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
from decimal import Decimal

import pytest

from rag_repro.report import audit
from rag_repro.study import audits, papers
from rag_repro.study.papers import StudyError
from rag_repro.study.printed import Gain


@pytest.fixture(params=audit.AUDITED)
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
    monkeypatch.setattr(Gain, "of", lambda gain, paper: (1.0, 50.0))

    def other(_, row):
        value = Decimal(row["value"])
        if row["metric"] in ("test", "passages") and value == value.to_integral():
            return str(int(value) + rng.randint(5, 90))
        return str((value * Decimal(rng.uniform(0.6, 0.98))).quantize(value))

    before = audit.findings(paper)
    after = audit.findings(copy_of(paper, tmp_path, other))
    assert len(before) == len(after) > 9
    for old, new in zip(before, after, strict=True):
        assert (old.place, old.said, old.claims) == (new.place, new.said, new.claims)
        assert old.working != new.working, old.said


def test_findings_name_claims_that_there_are_and_places(paper):
    ids = {claim.id for claim in paper.claims}
    for found in audit.findings(paper):
        assert set(found.claims) <= ids, found.claims
        assert found.place
        assert found.working.endswith(".")
        assert not found.settles.endswith(".")
    for one in audit.readings(paper):
        assert set(one.claims) <= ids
        assert all((one.place, one.said, one.beside, one.told))


def test_what_differs_is_not_called_supported(paper):
    for found in audit.findings(paper):
        for name in found.claims:
            if found.outcome == audit.DIFFERS:
                assert paper.claim(name).support in ("no", "partly"), (found.said, name)


def outcomes(paper, said):
    return [f.outcome for f in audit.findings(paper) if said in f.said]


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
            *("drrag", "F1 cannot be below EM", audit.DIFFERS),
            {"table": "table3", "value": "25.05", "to": "35.05"},
            audit.AGREES,
        ),
        (
            *("drrag", "better than Self-RAG", audit.AGREES),
            {
                **{"table": "table2", "method": "self_rag", "dataset": "musique"},
                **{"metric": "em", "to": "99.00"},
            },
            audit.IN_PART,
        ),
        (
            *("drrag", "less than 2 %", audit.AGREES),
            {"table": "table6", "classifier": "longformer", "k": "4", "metric": "em", "to": "60.0"},
            audit.IN_PART,
        ),
        (
            *("erm4", "the same runs of CAmbigNQ", audit.IN_PART),
            {
                **{"table": "table3", "dataset": "cambignq", "method": "plus", "metric": "hit"},
                "to": "59.00",
            },
            audit.AGREES,
        ),
        (
            *("erm4", "time is least", audit.OPEN),
            {"table": "table2", "tau": "0.6", "metric": "seconds", "to": "6.10"},
            audit.AGREES,
        ),
        (
            *("dragin", "different readers", audit.COINCIDES),
            {
                **{"table": "table2", "method": "none", "reader": "vicuna-13b-v1.5"},
                **{"dataset": "2wikimultihopqa", "metric": "em", "to": "0.150"},
            },
            audit.AGREES,
        ),
        (
            *("dragin", "thresholds compared on HotpotQA", audit.COINCIDES),
            {"table": "table5", "threshold": "0.6", "metric": "em", "to": "0.310"},
            audit.OPEN,
        ),
        (
            *("dragin", "DRAGIN with BM25 on HotpotQA", audit.DIFFERS),
            {
                **{"table": "table7", "method": "bm25", "dataset": "hotpotqa"},
                **{"metric": "precision", "to": "0.440"},
            },
            audit.AGREES,
        ),
        (
            *("r2ag", "accuracies are shares of NQ", audit.IN_PART),
            {"table": "table1", "dataset": "nq10", "value": "0.6886", "to": "0.6893"},
            audit.AGREES,
        ),
        (
            *("r2ag", "relevant documents", audit.OPEN),
            {"table": "table4", "dataset": "hotpotqa", "metric": "gold", "to": "2"},
            audit.AGREES,
        ),
    ],
)
def test_an_outcome_turns_with_what_is_printed(name, said, was, change, becomes, tmp_path):
    paper = papers.load(name)
    assert outcomes(paper, said) == [was]
    assert outcomes(copy_of(paper, tmp_path, setting(**change)), said) == [becomes]


def test_what_rests_on_a_table_that_is_not_at_hand_says_so():
    [found] = [f for f in audit.findings(papers.load("drrag")) if "Jeong" in f.working]
    assert found.outcome == audit.COINCIDES
    assert "not verified here" in found.working
    assert found.settles


def test_a_share_of_n_questions_is_told_to_the_digits_that_are_printed():
    assert audit.near(Decimal("86.746"), "86.75")
    assert not audit.near(Decimal("86.744"), "86.75")
    assert audit.near(Decimal("46.66"), "46.7", 1)


@pytest.mark.parametrize(
    ("held", "of", "wanted"), [(3, 3, "agrees"), (1, 3, "agrees in part"), (0, 3, "differs")]
)
def test_outcomes_of_counts(held, of, wanted):
    assert audit.outcome(held, of) == wanted


def test_an_unknown_outcome_is_refused():
    with pytest.raises(StudyError, match="'proves fraud' of an audit is none of"):
        audit.Finding("1", "a", working="b", outcome="proves fraud")


def test_the_tables_show_every_finding(paper):
    shown = repr(audit.table(paper))
    for found in audit.findings(paper):
        assert found.said.replace("|", "\\|") in shown
    assert audit.table(paper).stacked
    assert audit.reading_table(paper).stacked
    assert len(audit.reading_table(paper).body) == len(audit.readings(paper)) > 0
    [row] = audit.tally([paper]).body
    assert sum(n or 0 for n in row[1:]) == len(audit.findings(paper))
    bearing = [f for f in audit.findings(paper) for _ in f.claims]
    assert sum(map(len, audit.of_claims(paper).values())) == len(bearing)


def test_a_paper_of_ones_own_has_no_audit():
    assert audit.findings(papers.load("tools")) == audit.readings(papers.load("tools")) == []


def test_no_motive_is_told(paper):
    """What coincides is told, and what would settle it; not why it might be so."""
    told = " ".join(f"{f.said} {f.working} {f.settles}" for f in audit.findings(paper))
    assert not re.search(r"copied|stolen|fake|fraud|careless|mistake|wrong", told)


SENTENCE = {"place": "section 1", "said": "it is better", "claims": ["drrag.c01"]}
PLACES = {"place": "section 1", "said": "it is", "beside": "section 2", "told": "it is not"}


def written(folder, **held):
    """DR-RAG from a copy of its folder with this `audit.yaml`."""
    target = folder / "drrag"
    shutil.copytree(papers.load("drrag").folder, target)
    (target / "audit.yaml").write_text(json.dumps(held), encoding="utf-8")
    return papers.read(target)


def test_a_file_is_read_with_its_findings_by_key(tmp_path):
    paper = written(tmp_path, findings={"better": SENTENCE}, readings=[PLACES])
    made = audits.load(paper, ["better"])
    sentence = audits.Sentence("section 1", "it is better", ("drrag.c01",))
    assert made.findings == {"better": sentence}
    assert made.readings == (audits.Reading("section 1", "it is", "section 2", "it is not"),)


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({"reading": []}, "audit.yaml: unknown key 'reading', did you mean 'readings'"),
        ({"findings": {"a": SENTENCE | {"sad": ""}}}, "audit.yaml, finding a: unknown key 'sad'"),
        ({"findings": {"a": {"place": "1"}}}, "finding a: the key 'said' is missing"),
        ({"findings": {"a": SENTENCE, "b": SENTENCE}}, "audit.yaml: nothing computes 'b'"),
        ({"findings": {}}, "the finding 'a', which is computed, is missing"),
        ({"findings": {"a": SENTENCE | {"claims": ["drrag.c99"]}}}, "finding a: .* 'drrag.c99'"),
        ({"findings": {"a": SENTENCE}, "readings": [{}]}, "reading 1: the key 'place' is missing"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_place(held, words, tmp_path):
    paper = written(tmp_path, **({"findings": {"a": SENTENCE}} | held))
    with pytest.raises(StudyError, match=f"drrag/.*{words}"):
        audits.load(paper, ["a"])


def test_a_file_that_is_not_there_is_named(tmp_path):
    paper = written(tmp_path)
    (paper.folder / "audit.yaml").unlink()
    with pytest.raises(StudyError, match=r"audit\.yaml: .*restore it"):
        audit.findings(paper)
