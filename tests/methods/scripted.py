"""Services that answer from a table, for traces worked out by hand."""

from __future__ import annotations

import numpy as np

from rag_repro.engine import Task, run
from rag_repro.schema import Generation, Hit, Passage, Question
from tests.lm.scripted_reader import Said, pieces


class Tables:
    """Retriever: query -> passage ids in order. A passage's text is its id doubled."""

    def __init__(self, rankings):
        self.rankings = rankings
        self.asked = []

    def search(self, queries, k, within=None):
        self.asked.append((tuple(queries), k, within))
        found = []
        for place, query in enumerate(queries):
            ids = self.rankings[query]
            if within is not None and within[place] is not None:
                ids = [i for i in ids if i in within[place]]
            found.append(
                [Hit(passage(i), 1.0 / rank, rank) for rank, i in enumerate(ids[:k], start=1)]
            )
        return found


class Says:
    """Reader that always says the same, and keeps the prompts it was shown."""

    def __init__(self, text):
        self.text = text
        self.prompts = []

    def generate(self, calls):
        self.prompts.extend(
            "".join(getattr(s, "text", s) for s in c.prompt.segments) for c in calls
        )
        return [Generation(self.text, (1,), (0,), "eos", 10, 10) for _ in calls]


def passage(name: str) -> Passage:
    return Passage(name, f"Title {name}", name * 2)


def said(text: str, entropy: dict[str, float] | None = None, p: dict[str, float] | None = None):
    """A text whose named words are uncertain; every token is looked at alike by later ones."""
    words = [word.strip() for word in pieces(text)]
    return Said(
        text,
        probability=[(p or {}).get(word, 0.95) for word in words],
        entropy=[(entropy or {}).get(word, 0.0) for word in words],
    )


def answer_of(method, question: Question, settings, **services):
    [(_, answer)] = run([Task(question, method, settings)], services)
    if answer.error:
        raise AssertionError(answer.error)
    return answer


class Scores:
    """Pair scorer: "ac" -> probability for passages a and c, in this order.

    A pair that the table lacks fails the test: no method may ask for it.
    """

    def __init__(self, table):
        self.table = table
        self.asked = []

    def score(self, items):
        pairs = []
        for question, a, b in items:
            assert question == "q?"
            pairs.append(a[0] + b[0])
        self.asked.append(pairs)
        return np.array([self.table[pair] for pair in pairs], dtype=np.float32)


def ids(hits):
    return [hit.passage.id for hit in hits]
