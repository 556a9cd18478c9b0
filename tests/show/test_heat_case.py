"""Which question a heat map shows, and what it says where it can show none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rag_repro import data
from rag_repro.show.heat_map import HeatMap, choose, heat_map
from rag_repro.show.picture import Note
from rag_repro.study.conditions import Condition
from rag_repro.study.papers import Cell
from rag_repro.study.services import Workshop
from tests.lm.scripted_reader import ScriptedReader
from tests.show.heat_case import said

DATASET = data.load("world-B")
ASKED = DATASET.questions[0].id


def line(name, right, alarms):
    dynamic = {"drafts": 2, "alarms": alarms, "again": False, "found": []}
    return {
        **{"id": name, "cluster": name, "hits": [], "dynamic": dynamic, "kind": "compositional"},
        "scores": {"em": float(right)},
    }


def test_the_first_question_that_shows_most_is_chosen():
    dragin = [
        line("calm", True, 0),
        line("both", True, 2),
        line("wrong", False, 1),
        line("best", True, 1),
        line("later", True, 3),
    ]
    flare = [line(n, n in ("both", "calm"), 1) for n in ("both", "later", "best", "wrong", "calm")]
    assert choose([dragin, flare]) == "best"
    assert choose([dragin[:3], flare]) == "both"  # a right answer goes before the others' wrong
    assert choose([[dragin[0], dragin[2]], flare]) == "wrong"  # an alarm goes before all
    assert choose([dragin[:1], flare]) == "calm"
    assert choose([dragin[3:], flare[:2]]) == "later"  # of those that all have answered
    assert choose([dragin]) == "both"  # the first of equals
    assert choose([dragin, []]) is None


class Shelf(Workshop):
    """A workshop whose reader says what the test has it say."""

    here = True

    def services(self, condition):
        said_so = " It is so. So the answer is no."
        reader = ScriptedReader(lambda prompt: said(said_so, {"so.": 2.0}, {"so.": 0.3}))
        return {"reader": reader, "retriever": self.retriever("bm25", DATASET.corpus)}

    def ready(self, condition):
        return self.here


def cell(dataset="world-B", **settings):
    condition = Condition(
        dataset, "dynamic", settings, retriever="bm25", reader="testbed-reader", split="test"
    )
    tier = "testbed" if dataset.startswith("world") else "public"
    keys = {"dataset": dataset}
    return Cell("dragin.table2", tier, "primary", keys, condition, None)


def desk(lines, workshop):
    return SimpleNamespace(results=SimpleNamespace(lines=lambda cell: lines), workshop=workshop)


CELLS = {"DRAGIN": cell(threshold=0.01), "FLARE": cell(timing="flare", query="sure_sentence")}


def test_the_question_is_answered_again_by_each():
    made = heat_map(desk([line(ASKED, True, 1)], Shelf()), CELLS, "Two ways", "fig-heat")
    assert isinstance(made, HeatMap)
    assert made.question.id == ASKED
    assert [shown.label for shown in made.shown] == ["DRAGIN", "FLARE"]
    assert all(shown.answer.trace for shown in made.shown)
    assert made.shown[0].settings.threshold == 0.01
    html = made._repr_html_()
    found = [e for shown in made.shown for e in shown.answer.trace if e["stage"] == "retrieve"]
    title = DATASET.corpus.by_id[found[0]["found"][0]].title
    assert f"<li>{title}" in html
    assert "<figcaption>Two ways</figcaption>" in html


@pytest.mark.parametrize(
    ("cells", "lines", "here", "words"),
    [
        ({"DRAGIN": cell("musique")}, [], True, "Texts of public data sets are not shown here."),
        (CELLS, None, True, "Not run: `rag-repro train testbed-reader`, then"),
        ({}, None, True, "Two ways: this exhibit has no such condition at this tier."),
        (CELLS, [], True, "No question has been answered by all of these methods."),
        (CELLS, [line(ASKED, True, 1)], False, "Not run: `rag-repro train"),
    ],
)
def test_where_nothing_can_be_shown_it_says_why(cells, lines, here, words, monkeypatch):
    monkeypatch.setattr("rag_repro.lm.hub.artifacts", dict)
    shelf = Shelf()
    shelf.here = here
    made = heat_map(desk(lines, shelf), cells, "Two ways")
    assert isinstance(made, Note)
    assert made.text.startswith(words)
