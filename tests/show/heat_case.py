"""Answers of dynamic retrieval on a scripted reader: what a heat map is drawn from."""

from __future__ import annotations

from rag_repro.engine import Task, run
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings
from rag_repro.methods.dragin.loop import dynamic
from rag_repro.schema import Gold, Hit, Passage, Question
from rag_repro.show.heat_map import Shown
from tests.lm.scripted_reader import Said, ScriptedReader, pieces
from tests.methods.dragin.language import SMALL

QUESTION = Question(
    "q",
    "How many people can the arena of the <b>Maine</b> Mariners seat?",
    ("3,677", "3677"),
    gold=(Gold("p1", "static", 1),),
)
TITLES = {"p1": "Androscoggin Bank <i>Colisée</i>", "p2": "Bank Hall & Co.", "p3": "Ice"}
DRAGIN = DynamicSettings(threshold=0.1, top_n=5)
FLARE = DynamicSettings(timing="flare", query="sure_sentence", doubt=0.8, mask=0.4)


class Library:
    """Finds passages p1, p2 and p3, whatever is asked."""

    def search(self, queries, k, within=None):
        hits = [Hit(Passage(name, title, "Text."), 1.0, i) for i, (name, title) in HITS]
        return [hits[:k] for _ in queries]


HITS = list(enumerate(TITLES.items(), start=1))


def said(text, entropy=None, p=None):
    """A text of which some words are uncertain."""
    words = [w.strip() for w in pieces(text)]
    return Said(
        text,
        probability=[(p or {}).get(w, 0.95) for w in words],
        entropy=[(entropy or {}).get(w, 0.02 * (i % 7)) for i, w in enumerate(words)],
    )


def shown(label, settings, script) -> Shown:
    def method(question, settings):
        return dynamic(question, settings, SMALL)

    services = {"reader": ScriptedReader(script), "retriever": Library()}
    [(_, answer)] = run([Task(QUESTION, method, settings)], services)
    assert answer.error is None, answer.error
    return Shown(label, answer, settings)


def by_dragin() -> Shown:
    return shown(
        "DRAGIN <by its equations>",
        DRAGIN,
        [
            said(
                " The Mariners played at the Androscoggin Bank Colisée. It seats 4,250 <men>. "
                "So the answer is 4,250.",
                {"4,250": 3.0, "Bank": 0.4},
            ),
            said(" 3,677 people. So the answer is 3,677.", {"3,677": 1.5}),
        ],
    )


def by_flare() -> Shown:
    return shown(
        "FLARE",
        FLARE,
        [
            said(" The Mariners played at Bank Hall. It", p={"Bank": 0.3, "Hall.": 0.7}),
            said(" The Mariners played in Maine. It"),
            said(" It seats 4,250. So", p={"4,250.": 0.35}),
            said(" It seats 4,000. So"),
            said(" So the answer is 4,000.", p={"4,000.": 0.9}),
        ],
    )
