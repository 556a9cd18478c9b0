"""ERM4's figure 2 out of records, and one question through its pipelines with scripted models."""

from __future__ import annotations

import pytest

from rag_repro import data
from rag_repro.data import synthworld
from rag_repro.lm import hub
from rag_repro.lm.scripted import Said, ScriptedReader
from rag_repro.report import pipelines, plateaus
from rag_repro.report.picture import Note, Picture
from rag_repro.retrieval import BM25
from rag_repro.schema import Hit
from rag_repro.study import papers
from rag_repro.study.scores import Results
from rag_repro.training import rewriting

from . import erm4

ROWS = {"Rewriter": "rrr", "Rewriter+": "plus", "with filter": "full"}


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    root = tmp_path / "results" / "records"
    root.mkdir(parents=True)
    return Results(root)


@pytest.fixture(scope="module")
def world():
    return data.load("world-B", split="test")


# -------------------------------------------------------------------------- figure 2


def test_curves_are_means_over_the_questions_at_every_number_of_passages():
    lines = [
        {"hits": ["p"] * 30, "held": [[2], [12, 13]]},
        {"hits": ["p"] * 30, "held": [[], []]},
        {"hits": [], "held": [[]]},  # without any passage there is no precision
        {"hits": ["p"] * 30},
    ]
    found = plateaus.curves(lines)
    recall, precision = found.values()
    assert [recall[n - 1] for n in (1, 2, 11, 12)] == pytest.approx([0, 50 / 3, 50 / 3, 100 / 3])
    assert [precision[n - 1] for n in (1, 2, 30)] == pytest.approx([0, 25, 5])
    assert plateaus.curves(lines[3:]) is None


def test_figure_2_has_a_panel_a_data_set_and_a_line_a_row(results):
    asked = erm4.cells("fig2", "sequential", "one", dataset=["popqa", "hotpotqa"])

    def line(cell, i):
        return {"hits": ["p"] * 30, "held": [[11 if cell.keys["method"] == "one" else 1]]}

    erm4.fill(results, asked, 2, line)
    shown = plateaus.figure(erm4.exhibit("fig2"), asked, results, ("sequential", "one"), "x", "f")
    assert isinstance(shown, Picture)
    label = erm4.exhibit("fig2").methods["one"].label
    assert f"PopQA, {label}, answer recall, %: 0 at 5, 0 at 10, 100 at 20, 100 at 30" in shown.alt
    assert "HotpotQA" in shown.alt
    nobody = plateaus.figure(erm4.exhibit("fig2"), erm4.cells("fig2"), results, ("matched",), "x")
    assert isinstance(nobody, Note)
    assert "rag-repro run erm4.fig2" in repr(nobody)


def test_ranks_of_gold_by_each_query_and_by_all(world):
    question = next(q for q in world.questions if q.kind == "compositional")
    queries = rewriting.rewritten(synthworld.world("B"), question).queries
    retriever = BM25(world.corpus)
    table = plateaus.ranks(question, queries, world, retriever)
    assert [row[0] for row in table.body[1:-1]] == list(queries)
    first = retriever.search([question.text], 30, None)[0]
    places = {hit.passage.id: hit.rank for hit in first}
    assert table.body[0][2:] == [places.get(g.passage_id, "") for g in question.gold]
    assert table.body[0][1] == 30
    assert all(row[1] == 10 for row in table.body[1:-1])


class Fixed:
    """Finds the passages that a query names."""

    def __init__(self, world):
        self.by_id = world.corpus.by_id

    def search(self, queries, k, within=None):
        names = ([n for n in q.split() if n in self.by_id][:k] for q in queries)
        return [[Hit(self.by_id[n], 1.0, i) for i, n in enumerate(ns, 1)] for ns in names]


def test_perfect_queries_are_counted_against_the_question_itself(world):
    one, two = [q for q in world.questions if len(q.gold_ids) == 2][:2]
    gold = [" ".join(q.gold_ids) for q in (one, two)]
    made = plateaus.oracle({one.id: ["nothing"], two.id: gold[1].split()}, world, Fixed(world))
    assert made.shown == two
    kinds = {row[0]: row[1:] for row in made.counts.body}
    assert kinds["all"] == [1, 0, 0, 1, 2]
    assert kinds[two.kind][0] == 1
    half = [two.gold_ids[0]]
    nothing = plateaus.oracle({two.id: half}, world, Fixed(world))
    assert nothing.counts.body == [[two.kind, 0, 0, 0, 1, 1], ["all", 0, 0, 0, 1, 1]]
    assert nothing.shown == two


def test_room_is_what_perfect_queries_find_beyond_the_question(world):
    one, two = [q for q in world.questions if len(q.gold_ids) == 2][:2]
    queries = {one.id: ["nothing"], two.id: list(two.gold_ids)}
    table = plateaus.room(queries, world, {"fixed": Fixed(world)}, (2, 1), "tab-x")
    head = table.head
    rows = [dict(zip(head, row, strict=True)) for row in table.body]
    assert [row["passages"] for row in rows] == [2, 1]
    assert rows[0]["by perfect queries, %"] == "50.0"
    assert rows[0]["by the question, %"] == "0.0"
    assert rows[0]["room, points"] == "50.0"
    assert (rows[0]["only by the queries"], rows[0]["only by the question"]) == (1, 0)
    # One passage cannot hold both.
    assert rows[1]["room, points"] == "0.0"
    few = plateaus.oracle(queries, world, Fixed(world), most=1)
    assert {row[0]: row[1:] for row in few.counts.body}["all"] == [0, 0, 0, 2, 2]


def test_figure_3_has_a_bar_for_each_row_that_has_records(results):
    from rag_repro.report import bar_groups
    from rag_repro.report.exhibits import rows

    paper = papers.load("erm4")
    asked = erm4.cells("fig3", "direct", "rewritten_none", dataset="world-B-ambiguous")

    def line(cell, i):
        value = 0.75 if cell.keys["method"] == "direct" else 0.25
        return {"scores": {"em": value, "set_f1": 0.5}}

    erm4.fill(results, asked, 4, line)
    made = rows(paper, paper.exhibit("fig3"), results)
    methods = {"direct": "org", "rewritten_none": "rewrt", "plus": "rewrt_rag"}
    shown = bar_groups.figure(made, methods, {"em": "EM", "set_f1": "F1"}, "x", "fig-x")
    assert isinstance(shown, Picture)
    assert "org: EM 75, F1 50" in shown.alt
    assert "rewrt: EM 25, F1 50" in shown.alt
    assert "rewrt_rag" not in shown.alt
    assert "world-B-ambiguous,direct,testbed-reader,em,,75.00" in shown.data.text
    nobody = bar_groups.figure(made, {"plus": "rewrt_rag"}, {"em": "EM"})
    assert isinstance(nobody, Note)
    assert "rag-repro run erm4.fig3" in repr(nobody)


def test_readings_mark_the_one_that_is_meant():
    question = data.load("world-B-ambiguous", split="test").questions[0]
    table = plateaus.readings(question)
    meant = [row[2] for row in table.body].index("yes")
    assert meant == question.meta["intent"]


# -------------------------------------------------------------------------- figure 4


class Shop:
    """A workshop with BM25 over the world, and models that say what the test tells them."""

    batch_size = 1

    def __init__(self, world):
        self.world, self.retriever = world, BM25(world.corpus)

    def dataset(self, name, split):
        assert (name, split) == ("world-B-several", "test")
        return self.world

    def services(self, condition):
        models = ScriptedReader(self._says, reads=self._reads)
        named = [n for n, k in condition.configured.needs.items() if k == "reader"]
        return {"reader": models, "retriever": self.retriever, **dict.fromkeys(named, models)}

    def _says(self, prompt):
        last = prompt.rpartition("\n")[2]
        if last == "Query:":
            return " the only query"
        if last == "Clear question and queries:":
            return " In clear words?**first query**second query"
        return " Thinking. Answer: Nobody"

    def _reads(self, prompt, text):
        odds = {"entailment": 0.7, "neutral": 0.2, "contradiction": 0.1}[text.strip()]
        return Said(text, probability=[odds] * len(text.split()))


def trained(tmp_path, *names):
    for name in names:
        (tmp_path / "artifacts" / name).mkdir(parents=True)
        (tmp_path / "artifacts" / name / hub.ADAPTER).write_bytes(b"")


def stages():
    return {
        said: erm4.cells("table1", row, dataset="world-B-several")[0] for said, row in ROWS.items()
    }


def test_without_the_models_it_says_how_to_train_them(results, world):
    trained(results.folder.parents[1], "testbed-reader")
    [note] = pipelines.case(stages(), results, Shop(world), judge="with filter")
    assert "rag-repro train erm4-rewriter-testbed" in repr(note)
    assert "rag-repro train erm4-filter-testbed-label" in repr(note)
    assert "testbed-reader" not in repr(note).replace("erm4-filter", "")


def test_the_first_comparison_goes_through_every_pipeline(results, world):
    names = ("testbed-reader", "erm4-rewriter-testbed", "erm4-filter-testbed-label")
    trained(results.folder.parents[1], *names)
    asked, rewriters, judged = pipelines.case(stages(), results, Shop(world), judge="with filter")
    question = next(q for q in world.questions if q.kind == "comparison")
    assert asked.body[0] == ["question", question.text]
    rows = {row[0]: row for row in rewriters.body if row[0]}
    assert [rows[said][1] for said in ROWS] == ["", "In clear words?", "In clear words?"]
    assert [row[2] for row in rewriters.body] == [
        "the only query",
        *("first query", "second query"),
        *("first query", "second query"),
    ]
    assert {row[4] for row in rows.values()} == {"Nobody"}
    assert 0 < len(judged.body) <= 10
    assert {row[4] for row in judged.body} == {"entailment"}
    assert {row[5] for row in judged.body} == {"70"}


def test_by_the_records_a_question_is_shown_that_only_the_last_answers(results, world):
    names = ("testbed-reader", "erm4-rewriter-testbed", "erm4-filter-testbed-label")
    trained(results.folder.parents[1], *names)
    two = [q for q in world.questions if q.kind == "comparison"][1]
    other = next(q for q in world.questions if q.kind != "comparison")

    def line(cell, i):
        right = cell.keys["method"] == "full"
        question = (other, two)[i]
        scores = {"acc_words": float(right)}
        return {"id": question.id, "kind": question.kind, "scores": scores}

    erm4.fill(results, stages().values(), 2, line)
    asked, *_ = pipelines.case(stages(), results, Shop(world), judge="with filter")
    assert asked.body[0] == ["question", two.text]


def test_a_question_of_which_one_query_misses_a_passage_comes_first(results, world):
    names = ("testbed-reader", "erm4-rewriter-testbed", "erm4-filter-testbed-label")
    trained(results.folder.parents[1], *names)
    compared = [q for q in world.questions if q.kind == "comparison"][:3]

    def line(cell, i):
        several = cell.keys["method"] != "rrr"
        right = several and i < 2  # of the first two the last answers; of the second one is missed
        recall = 0.5 if not several and i > 0 else 1.0
        scores = {"acc_words": float(right), "recall": recall}
        return {"id": compared[i].id, "kind": "comparison", "scores": scores}

    erm4.fill(results, stages().values(), 3, line)
    asked, *_ = pipelines.case(stages(), results, Shop(world), judge="with filter")
    assert asked.body[0] == ["question", compared[1].text]


def test_texts_of_public_data_are_not_shown(results, world):
    trained(results.folder.parents[1], "public-reader", "erm4-rewriter-testbed", "erm4-filter")
    public = {said: erm4.cells("table1", row, dataset="popqa")[0] for said, row in ROWS.items()}
    [note] = pipelines.case(public, results, Shop(world), judge="with filter")
    assert "not shown" in repr(note)
