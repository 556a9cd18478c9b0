"""One question step by step, on rankings made to order."""

from __future__ import annotations

import pytest

from rag_repro.methods import base
from rag_repro.methods.base import MethodSpec, Settings
from rag_repro.schema import Answer, Gold, Hit, Passage, Question, Retrieve
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.show import traces
from rag_repro.study.conditions import Condition

PASSAGES = tuple(Passage(f"p{i}", f"Title {i}", f"text {i} " + "x" * 200) for i in range(6))


def question(name, kind, *dynamic):
    gold = (Gold("p0", "static", 1), *(Gold(p, "dynamic", 2) for p in dynamic))
    return Question(name, name, ("an answer", "or so"), kind=kind, gold=gold)


QUESTIONS = (
    question("both", "a", "p1"),
    question("static", "b"),  # needs no dynamic-relevant passage: not asked
    question("gained", "a", "p2"),
    question("lost", "b", "p3"),
    question("half", "b", "p4", "p5"),
    question("gained too", "b", "p1"),
    question("beyond n", "c", "p1"),
)
FOUND = {
    "both": "p1", "both again": "p1 p0",
    "gained": "p0", "gained again": "p5 p2",
    "lost": "p3", "lost again": "p0 p1",
    "half": "p0", "half again": "p4 p0",
    "gained too": "p5", "gained too again": "p1 p0",
    "beyond n": "p0", "beyond n again": "p1 p0",
}  # fmt: skip
DATASET = Dataset("little", QUESTIONS, Corpus("little", PASSAGES))


def once(question, settings):
    return Answer(hits=(yield Retrieve(question.text, k=1)))


def twice(question, settings):
    yield Retrieve(question.text, k=1)
    return Answer(hits=(yield Retrieve(f"{question.text} again", k=2)))


class Tables:
    """Finds what FOUND says."""

    fingerprint = "tables"

    def search(self, queries, k, within=None):
        by = DATASET.corpus.by_id
        return [
            [Hit(by[name], 1 / rank, rank) for rank, name in enumerate(FOUND[q].split(), 1)][:k]
            for q in queries
        ]


class Shop:
    def dataset(self, name, split):
        return DATASET

    def services(self, condition):
        return {"retriever": Tables()}


@pytest.fixture
def conditions(monkeypatch):
    methods = {m.__name__: MethodSpec(m.__name__, 1, m, Settings, "") for m in (once, twice)}
    monkeypatch.setattr(base, "get", methods.__getitem__)
    return [Condition("little", name, retriever="tables") for name in methods]


def test_a_walk_tells_every_search_with_what_it_finds_and_what_of_it_is_gold(conditions):
    [_, after] = conditions
    made = traces.walk(after, QUESTIONS[2], Shop(), "Every step")
    assert made.caption == "Every step"
    hits = [row for row in made.body if row[3][:1].isdigit()]
    assert [row[:3] for row in hits] == [
        [1, "search", "gained"],
        [2, "search", "gained again"],
        ["", "", ""],
    ]
    assert [row[3].split(":")[0] for row in hits] == ["1. 1.00 p0", "1. 1.00 p5", "2. 0.50 p2"]
    assert [row[4] for row in hits] == ["yes", "", "yes"]
    assert "answer" not in [row[1] for row in made.body]  # it hands on passages alone


def test_the_tables_of_a_question():
    asked, hits = QUESTIONS[2], Tables().search(["gained again"], 2)[0]
    body = traces.question_table(asked, DATASET).body
    assert body[:2] == [["question", "gained"], ["answer", "an answer | or so"]]
    assert [row[0] for row in body[2:]] == ["gold, static, hop 1", "gold, dynamic, hop 2"]
    assert body[3][1] == f"Title 2: {PASSAGES[2].text}"
    (first, second) = traces.context_table(Answer(hits=tuple(hits)), asked, "Handed on").body
    assert (first[0], first[1], first[3]) == (1, "Title 5", "")
    assert (second[0], second[1], second[3]) == (2, "Title 2", "dynamic")
    assert len(first[2]) == traces.SHOWN
    assert first[2].endswith("x…")


def test_long_text_is_cut_and_short_text_is_not():
    assert traces.short("x" * traces.SHOWN) == "x" * traces.SHOWN
    assert traces.short("x" * (traces.SHOWN + 1)) == "x" * (traces.SHOWN - 1) + "…"
    assert traces.short("ab " * 99) == "ab " * 52 + "ab…"
