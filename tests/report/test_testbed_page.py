"""Tables and figures of the testbed's chapter, on a small world."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro import data
from rag_repro.data.synthworld.calibration import CalibrationRow
from rag_repro.data.synthworld.world import world
from rag_repro.report import testbed
from rag_repro.schema import Hit
from rag_repro.study import papers


@pytest.fixture(scope="module")
def dataset():
    return data.load("world-B@1000")


@pytest.fixture(scope="module")
def here():
    return world("B", 1000)


def test_the_inventory_counts_every_entity_and_fact(here):
    table = testbed.inventory(here)
    counted = [row[1] for row in table.body]
    assert sum(counted) == len(here.entities)
    assert counted == sorted(counted, reverse=True)
    names = Counter(entity.name for entity in here.entities)
    assert sum(row[2] for row in table.body) == sum(n for n in names.values() if n > 1)
    facts = sum(row[1] * float(row[3]) for row in table.body)
    assert facts == pytest.approx(len(here.facts), rel=0.05)  # one decimal each


def test_every_relation_has_wordings_and_an_example(here):
    from rag_repro.data.synthworld.wordings import relations

    body = testbed.relation_table(here).body
    assert [row[0] for row in body] == sorted(relations())
    for name, _, said, asked, sentence in body:
        assert said >= 5, name
        assert asked >= 5, name
        assert "…" in sentence


def test_each_kind_of_question_is_shown_once_with_its_count(dataset):
    body = testbed.kind_table(dataset).body
    makers = Counter(q.meta["maker"] for q in dataset.questions)
    assert {row[0]: row[1] for row in body} == makers
    first = {}
    for question in dataset.questions:
        first.setdefault(question.meta["maker"], question)
    for kind, _, text, answer, needs in body:
        question = first[kind]
        assert (text, answer) == (question.text, question.answers[0])
        said = dict(part.split()[::-1] for part in needs.split(", "))
        assert sum(map(int, said.values())) == len(question.gold)


def test_a_chain_step_by_step(dataset):
    body = testbed.chain_table(dataset, "compositional3").body
    question = next(q for q in dataset.questions if q.meta["maker"] == "compositional3")
    assert body[0] == ["question", question.text, " | ".join(question.answers)]
    assert [row[0] for row in body[1:4]] == ["step 1", "step 2", "step 3"]
    assert body[3][2] in question.answers
    assert [row[0] for row in body[4:]] == [f"{g.role}, hop {g.hop}" for g in question.gold]
    passages = dataset.corpus.by_id
    assert body[4][2] == passages[question.gold[0].passage_id].text


def test_groups_and_passages(dataset):
    body = testbed.group_table(dataset, 2).body
    groups = Counter(row[0] for row in body)
    assert len(groups) == 2
    assert min(groups.values()) > 1
    assert all(len({r[1] for r in body if r[0] == g}) == n for g, n in groups.items())
    shown = testbed.passage_table(dataset, 3).body
    assert [row[0] for row in shown] == [p.id for p in dataset.corpus.passages[:3]]


def row(dial, value, recall, dynamic):
    return CalibrationRow("world-B", dial, value, 3, 200, recall, 0.875, dynamic, 0.5, {})


ROWS = [
    row(None, None, 0.5, 0.125),
    row("hooks", 0.0, 0.4, 0.0),
    row("hooks", 1.0, 0.6, 0.25),
    row("ties", 0.5, 0.55, 0.2),
]


def test_the_calibration_in_numbers():
    assert testbed.calibration_table(ROWS).body == [
        ["world-B", 200, "50.0", "87.5", "12.5", "50.0"]
    ]
    picture = testbed.calibration_figure(ROWS)
    assert picture.alt == (
        "BM25's recall at 3 by dial. hooks: 0 gives 40 %, 1 gives 60 %; ties: 0.5 gives 55 %"
    )
    assert testbed.calibration_figure(ROWS).svg == picture.svg


def test_gold_passages_by_rank(dataset):
    asked = [q for q in dataset.questions if "dynamic" in {g.role for g in q.gold}]

    class FindsStatic:
        """The first static passage at rank 1, a dynamic one at rank 4 of every other question."""

        def search(self, queries, k, within=None):
            assert queries == [q.text for q in asked]
            return [self._hits(q, i % 2 == 0)[:k] for i, q in enumerate(asked)]

        def _hits(self, question, also):
            named = {role: [g for g in question.gold if g.role == role] for role in ROLES}
            hits = [(g.passage_id, 1) for g in named["static"]]
            hits += [(g.passage_id, 4) for g in named["dynamic"] if also]
            passages = dataset.corpus.by_id
            return [Hit(passages[name], 1.0, rank) for name, rank in hits]

    ROLES = ("static", "dynamic")
    dynamic = [sum(g.role == "dynamic" for g in q.gold) for q in asked]
    share = 100 * sum(dynamic[::2]) / sum(dynamic)
    picture = testbed.rank_figure(dataset, FindsStatic(), depth=5)
    assert picture.alt == (
        "Share of gold passages by rank. static: 100 % within 3, 100 % within 5; "
        f"dynamic: 0 % within 3, {share:.0f} % within 5"
    )


class Recorded:
    """Records of an exhibit's cells: two hits of three questions, and levels of a reader."""

    levels = {"closed": 10.0, "plain": 40.0, "gold": 70.0}  # noqa: RUF012

    def lines(self, cell):
        if cell.keys["dataset"] == "musique" or cell.keys["method"] not in ("bm25", "minilm"):
            return None
        kinds = ("compositional", 2), ("compositional", 5), ("comparison", 1)
        gold = [[kind, [["static", 1, 1], ["dynamic", 2, rank]]] for kind, rank in kinds]
        return [{"kind": k, "gold": g, "cluster": str(i)} for i, (k, g) in enumerate(gold)]

    def scores(self, cell, metric):
        return SimpleNamespace(values=np.array([self.levels[cell.keys["method"]]]))


def test_recall_and_the_way_to_gold_are_read_off_the_records():
    _, shown = papers.exhibit("tools.calibration")
    recall = {row[0]: row[1:] for row in testbed.recall_table(shown, Recorded()).body}
    assert recall["musique"] == ["not run", "not run"]
    # One of two chains within four hits; the comparison is none.
    assert all(cell.startswith("50.0") and cell.endswith("n 2") for cell in recall["world-Z"])
    assert testbed.way_table(shown, Recorded()).body == [["world-Z", "10.0", "40.0", "70.0", "50"]]
