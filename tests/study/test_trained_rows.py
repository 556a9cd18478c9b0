"""Rows with readers of their own, trained over one that the others use as it is."""

from __future__ import annotations

import pytest

from rag_repro.study import gate, papers, records
from rag_repro.study.judge import judge, pair_cells
from rag_repro.study.papers import Contrast, StudyError
from rag_repro.study.retarget import retarget
from rag_repro.study.scores import Results


@pytest.fixture(autouse=True)
def _what_is_trained_is_proven(monkeypatch):
    """Proofs, and what has none, are tested with the gate."""
    monkeypatch.setattr(gate, "of_training", lambda *_: None)


PAPER = """
title: A paper that trains readers
short: Trained
cite: trained2026
gate: {exhibit: readers, given: {method: gold}, bare: {method: closed}}
exhibits:
  readers:
    title: Readers
    place: own
    own: true
    metrics: [acc]
    methods:
      gold: {label: Gold, run: gold_passages, retriever: bm25}
      closed: {label: Closed, run: no_retrieval}
    grids:
      - {tier: public, datasets: [hotpotqa], methods: [gold, closed], reader: READ}
  table1:
    title: Answers
    place: table 1
    metrics: [acc]
    methods:
      plain: {label: Plain, run: single_step, retriever: bm25}
      ours: {label: Ours, run: single_step, retriever: bm25, baseline: plain}
      theirs: {label: Theirs, run: single_step, retriever: bm25, baseline: plain}
    grids:
      - tier: public
        datasets: [hotpotqa]
        methods: [plain, ours, theirs]
        reader: smollm2-135m
        trained: {ours: testbed-reader, theirs: public-reader}
        seeds: [0, 1, 2]
"""
CLAIMS = """
- id: trained.c01
  place: abstract
  claim: Better answers.
  exhibit: trained.table1
  paper_numbers: ""
  support: "none"
  support_note: ""
  test: paired
  n_needed: null
  scale: "yes"
  contrasts: [{metric: acc, more: {method: ours}, less: {method: theirs}, delta: 2.0}]
"""


def read(tmp_path, old="", new="", tried="smollm2-135m"):
    assert old in PAPER
    folder = tmp_path / "trained"
    folder.mkdir(exist_ok=True)
    text = PAPER.replace(old, new, 1) if old else PAPER
    (folder / "paper.yaml").write_text(text.replace("READ", tried))
    (folder / "claims.yaml").write_text(CLAIMS)
    return papers.read(folder)


def cells(paper, **keys):
    return [c for c in paper.exhibit("table1").cells() if c.matches(keys)]


def test_a_trained_row_has_a_cell_a_seed_and_the_key_of_what_was_frozen(tmp_path):
    paper = read(tmp_path)
    assert [c.condition.reader for c in cells(paper, method="ours")] == [
        "testbed-reader",
        "testbed-reader-1",
        "testbed-reader-2",
    ]
    assert [c.keys["seed"] for c in cells(paper, method="theirs")] == [0, 1, 2]
    assert {c.keys["reader"] for c in cells(paper)} == {"smollm2-135m"}
    [plain] = cells(paper, method="plain")
    assert (plain.condition.reader, "seed" in plain.keys) == ("smollm2-135m", False)
    assert len({c.condition.hash for c in cells(paper)}) == 7


def test_without_seeds_it_is_the_bare_name(tmp_path):
    paper = read(tmp_path, "        seeds: [0, 1, 2]\n", "")
    [ours] = cells(paper, method="ours")
    assert ours.condition.reader == "testbed-reader"
    assert "seed" not in ours.keys


def test_trained_rows_are_compared_as_one_cell_of_all_trainings(tmp_path):
    exhibit = read(tmp_path).exhibit("table1")

    def of(**sides):
        found = pair_cells(exhibit, Contrast("acc", delta=1.0, **sides), "public")
        return [(a.condition.reader, b.condition.reader) for a, b in found]

    assert of(more={"method": "ours"}, less={"method": "theirs"}) == [
        ("testbed-reader", "public-reader")
    ]
    assert of(more={"method": "ours"}, less={"method": "plain"}) == [
        ("testbed-reader", "smollm2-135m")
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("reader: smollm2-135m\n", "\n", "`trained` needs the `reader`"),
        ("        trained: {ours: testbed-reader, theirs: public-reader}\n", "", "`seeds` are"),
        ("{ours: testbed", "{hours: testbed", "method 'hours' is unknown, did you mean 'ours'"),
        ("testbed-reader,", "testbed-reeder,", "'testbed-reeder'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(tmp_path, old, new, message):
    with pytest.raises(StudyError, match=message):
        read(tmp_path, old, new)


def test_a_claim_names_no_training(tmp_path, monkeypatch):
    """It is about all of them: asked of one it would find no cell."""
    monkeypatch.setitem(
        globals(), "CLAIMS", CLAIMS.replace("{method: ours}", "{method: ours, seed: [0, 1]}")
    )
    with pytest.raises(StudyError, match="key 'seed' is unknown"):
        read(tmp_path)


def fill(root, paper, right):
    """A record of each cell: the first `right(cell)` of 100 questions are right."""
    for cell in [c for e in paper.exhibits.values() for c in e.cells()]:
        with records.open_record(root, cell.condition, {}) as record:
            for i in range(100):
                line = {"id": f"q{i}", "kind": "bridge", "cluster": f"q{i}", "hits": []}
                record.append({**line, "scores": {"acc": float(i < right(cell))}})


OURS = {"testbed-reader": 50, "testbed-reader-1": 60, "testbed-reader-2": 70}


def right(able):
    def count(cell):
        method = cell.keys["method"]
        if method in ("gold", "closed"):
            return able[method]
        return OURS.get(cell.condition.reader, 30)

    return count


def verdict(tmp_path, able, **options):
    paper = read(tmp_path, **options)
    fill(tmp_path / "records", paper, right(able))
    [judged] = judge(paper, "public", Results(tmp_path / "records"))
    return judged.verdict


def test_a_verdict_is_of_the_mean_over_the_seeds(tmp_path):
    found = verdict(tmp_path, {"gold": 60, "closed": 10})
    assert found.word == "reproduced"
    assert (found.interval.estimate, found.interval.n) == (pytest.approx(30), 100)


def test_one_training_of_each_is_not_judged_where_none_tells_how_far_they_lie_apart(tmp_path):
    """Its interval would hold the questions' noise alone."""
    able = {"gold": 60, "closed": 10}
    found = verdict(tmp_path, able, old="seeds: [0, 1, 2]", new="seeds: [0]")
    assert found.word == "not judged"
    assert "of this metric no row of several tells how far another would lie" in found.reason


def test_a_trained_reader_goes_by_what_it_was_trained_over(tmp_path):
    found = verdict(tmp_path, {"gold": 20, "closed": 10})
    assert found.word == "reader too weak"
    assert "smollm2-135m: gold passages add 10.0 [" in found.reason


def test_unless_it_is_tried_itself(tmp_path):
    paper = read(tmp_path, "        seeds: [0, 1, 2]\n", "", tried="testbed-reader")
    fill(tmp_path / "records", paper, right({"gold": 60, "closed": 10}))
    [judged] = judge(paper, "public", Results(tmp_path / "records"))
    assert judged.verdict.word == "reproduced"


def test_one_that_nobody_tried_is_told_by_the_frozen_ones_name(tmp_path):
    found = verdict(tmp_path, {"gold": 60, "closed": 10}, tried="gemma3-270m")
    assert found.word == "not run"
    assert "whether smollm2-135m can read hotpotqa is not tried" in found.reason


def test_trained_rows_move_with_data_but_not_to_another_reader(tmp_path):
    paper = read(tmp_path)
    moved = retarget(paper, datasets=["musique"]).exhibit("table1").cells()
    assert len(moved) == 7
    moved = retarget(paper, reader="gemma3-270m").exhibit("table1").cells()
    assert {(c.keys["method"], c.condition.reader) for c in moved} == {("plain", "gemma3-270m")}
    moved = retarget(paper, reader="smollm2-135m").exhibit("table1").cells()
    assert len(moved) == 7


def test_trainings_lie_as_far_apart_where_one_of_them_has_more_answers(tmp_path):
    """The first counts with all of its hundred; how far others lie from it forty tell."""
    paper = read(
        tmp_path, "        seeds: [0, 1, 2]\n", "        seeds: [0, 1, 2]\n        n: 40\n"
    )
    root = tmp_path / "records"
    fill(root, paper, right({"gold": 60, "closed": 10}))
    for cell in cells(paper):
        if cell.keys.get("seed"):
            kept = records.load(root, cell.condition).lines[:40]
            records.find(root, cell.condition).unlink()
            with records.open_record(root, cell.condition, {}) as record:
                for line in kept:
                    record.append(dict(line))
    found = judge(paper, "public", Results(root))[0].verdict
    assert found.word != "not judged"
    assert found.interval.n == 100
