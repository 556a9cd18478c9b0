"""The pages on answers: question by question, readers, and the paper's arithmetic."""

from __future__ import annotations

import pytest

from rag_repro import data
from rag_repro.show import arithmetic, exhibit_rows, readers
from rag_repro.study import papers, printed
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

WORLD = "world-B@1000"
PAPER = f"""
title: A paper on answers
short: Answers
cite: answers2026
gate: {{exhibit: readers, given: {{method: gold}}, bare: {{method: closed}}}}
exhibits:
  readers:
    title: Readers
    place: own
    own: true
    metrics: [acc]
    methods:
      gold: {{label: Gold, run: gold_passages, retriever: bm25}}
      closed: {{label: Closed, run: no_retrieval}}
    grids:
      - {{tier: testbed, datasets: [{WORLD}], methods: [gold, closed], reader: testbed-reader}}
      - {{tier: public, datasets: [musique], methods: [gold, closed], reader: public-reader}}
  table3:
    title: Answers
    place: table 3
    metrics: [acc, recall]
    values: table3.csv
    beside: [{{ours: {{reader: public-reader}}, printed: {{reader: llama}}}}]
    methods:
      guess: {{label: Guess, run: guess}}
      sm: {{label: SM, run: single_step, retriever: bm25, baseline: guess}}
      qdc: {{label: QDC, run: qdc, retriever: bm25, baseline: sm}}
    grids:
      - &public
        tier: public
        datasets: [musique]
        methods: [sm, qdc]
        settings: {{k: [4]}}
        reader: public-reader
      - {{<<: *public, tier: testbed, datasets: [{WORLD}], reader: testbed-reader}}
      - {{tier: public, datasets: [musique], methods: [guess], settings: {{k: [4]}}}}
"""
TABLE = """dataset,k,method,reader,metric,value,note
musique,4,qdc,llama,acc,53.09,
musique,4,qdc,gpt,acc,60.00,
"""


@pytest.fixture
def paper(tmp_path):
    folder = tmp_path / "answers"
    folder.mkdir()
    (folder / "paper.yaml").write_text(PAPER)
    (folder / "claims.yaml").write_text("[]")
    (folder / "table3.csv").write_text(TABLE)
    return papers.read(folder)


@pytest.fixture(scope="module")
def world():
    return data.load(WORLD, split="test")


class Book:
    """Records under one folder, and how to make them."""

    def __init__(self, paper, root, world):
        self.paper, self.root, self.world = paper, root, world

    @property
    def results(self):
        return Results(self.root)

    def fill(self, key, score, **wanted):
        """score: (method, place) -> (acc, recall), for ten questions of the wanted cells."""
        for cell in self.paper.exhibits[key].cells():
            if not cell.matches(wanted):
                continue
            with open_record(self.root, cell.condition, {}) as record:
                for i, question in enumerate(self.world.questions[:10]):
                    acc, recall = score(cell.keys["method"], i)
                    record.append(
                        {
                            "id": question.id,
                            "kind": question.kind,
                            "cluster": question.id,
                            "hits": [self.world.corpus.passages[i].id],
                            "gold": [
                                ["static", 1, 1 if recall > 0 else None],
                                ["dynamic", 2, 2 if recall == 1 else None],
                            ],
                            "text": f"{cell.keys['method']} says {i}",
                            "scores": {"acc": float(acc), "recall": float(recall)}
                            | {"all_gold": float(recall == 1), "any_gold": float(recall > 0)},
                        }
                    )


@pytest.fixture
def book(paper, tmp_path, world):
    return Book(paper, tmp_path / "records", world)


def mixed(method, i):
    """sm is right in 0 to 3, qdc in 2 to 8; qdc finds more in 4 to 9, less in 0 and 1."""
    if method == "sm":
        return i < 4, 0.5
    return 2 <= i < 9, 1.0 if i >= 4 else 0.0 if i < 2 else 0.5


# ------------------------------------------------------------------------- rows


def test_printed_values_stand_beside_the_reader_that_is_said_to_match(book):
    rows = exhibit_rows.rows(book.paper, book.paper.exhibits["table3"], book.results)
    held = {(r.keys.get("reader"), r.keys["method"]): r.paper for r in rows if r.metric == "acc"}
    assert held["public-reader", "qdc"] == "53.09"
    assert held["gpt", "qdc"] == "60.00"  # the other stands by itself
    assert ("llama", "qdc") not in held
    assert held["testbed-reader", "qdc"] is None


def test_a_guess_without_a_reader_is_a_readers_baseline(book):
    book.fill("table3", score=lambda method, i: (i < {"guess": 2, "sm": 5, "qdc": 5}[method], 1.0))
    rows = exhibit_rows.rows(book.paper, book.paper.exhibits["table3"], book.results, "public")
    [sm] = [r for r in rows if r.keys["method"] == "sm" and r.metric == "acc"]
    assert sm.diff.estimate == pytest.approx(30)


# ----------------------------------------------------------- recall and answers


# ------------------------------------------------------------------------ readers


def test_the_gate_says_whose_answers_count(book):
    book.fill("readers", dataset=WORLD, score=lambda m, i: (i < {"gold": 8, "closed": 1}[m], 1.0))
    table = readers.gate(book.paper, book.results, ["testbed", "public"])
    [world, musique] = table.body
    assert world[1:3] == [WORLD, "testbed-reader"]
    assert (world[3][:4], world[4][:4], world[6]) == ("14.3", "85.7", "counts")
    assert world[5].startswith("+71.4 [+")
    assert musique[3:] == ["", "", "", "not run"]


def test_a_row_that_could_not_count_says_why_nobody_ran_it(book):
    book.fill("readers", dataset="musique", score=lambda m, i: (i < 2, 1.0))
    exhibit = book.paper.exhibits["table3"]
    made = exhibit_rows.rows(book.paper, exhibit, book.results, "public")
    notes = {(r.keys["method"], r.metric): r.note for r in made if "reader" in r.keys}
    assert notes["sm", "acc"] == "not run: reader too weak"
    assert notes["sm", "recall"] == "not run"  # what is found counts all the same


# ---------------------------------------------------------------- printed values


@pytest.mark.parametrize(
    ("value", "n", "whole"),
    [
        ("50.0", 2, True),
        ("33.3", 3, True),
        ("33.4", 3, False),
        ("0.00", 7, True),
        ("42.15", 500, False),
        ("42.15", 2299, True),  # 969 of 2299 is 42.149
        ("42.2", 500, True),
    ],
)
def test_what_a_percentage_can_be_a_share_of(value, n, whole):
    assert printed.fits(value, n) is whole


def test_sizes_are_those_that_fit_all_values():
    assert printed.sizes(["50.0", "33.3"], range(1, 13)) == [6, 12]


def test_readers_compete_where_they_are_asked_to():
    paper = papers.load("r2ag")
    line = ("acc_line", "f1_line")
    rivals = ["cot", "recomp", "crag", "long_llmlingua", "r2ag"]
    recomp = {"recomp": "RECOMP", "cot": "not used: it has a row of ours"}
    held = arithmetic.best(paper, "table1", rivals, metrics=line, labels=recomp)
    assert dict(held.body) == {
        "CoT": 0, "RECOMP": 0, "CRAG": 0, "LongLLMLingua": 1, "R²AG": 8, "two alike": 0,
    }  # fmt: skip
    # GPT4 is the best of the frozen rows in five of the seven columns that have it (r2ag.c08).
    frozen = arithmetic.best(paper, "table1", ["rag", *rivals], metrics=line, across=["reader"])
    won = dict(frozen.body)
    assert (won["RAG, gpt-4-turbo"], won["RAG, gpt-3.5-turbo"]) == (5, 2)
    assert "in the 9 cells" in frozen.caption
    small = arithmetic.best(paper, "table1", ["rag"], metrics=line, reader="llama2-7b")
    assert dict(small.body) == {"RAG": 7, "two alike": 0}


def test_the_best_of_the_papers_cells():
    best = arithmetic.best(papers.load("drrag"), "table3", ["qdc", "cis", "cfs"])
    assert [cells for _, cells in best.body] == [0, 12, 41, 1]
