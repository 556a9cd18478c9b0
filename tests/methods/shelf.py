"""Passages with texts, and services that look at words: for compressors, traced by hand."""

from __future__ import annotations

import numpy as np

from rag_repro.schema import Gold, Hit, Passage, Question
from tests.lm.scripted_reader import Said, pieces

FILM = Passage(
    "film", "Glass Harbour", "Glass Harbour is a film. Ilvo Brannek directed it. It was long."
)
MAN = Passage("man", "Ilvo Brannek", "Ilvo Brannek was a director. He was born in Sarrow.")
SONG = Passage("song", "Ash", "Ash is a song. Nobody sang it. It was short.")
QUESTION = Question(
    "q",
    "Who directed the film Glass Harbour?",
    ("Ilvo Brannek",),
    gold=(Gold("film", "static", 1), Gold("man", "dynamic", 2)),
)
OTHER = Question("o", "Where is Sarrow?", ("nowhere",), gold=(Gold("man", "static", 1),))


class Shelf:
    """Retriever: always the same passages, in this order; `asked` are its queries."""

    def __init__(self, *passages):
        self.passages = passages
        self.asked = []

    def search(self, queries, k, within=None):
        self.asked += queries
        hits = [Hit(p, 1 / rank, rank) for rank, p in enumerate(self.passages[:k], start=1)]
        return [hits for _ in queries]


class Words:
    """Encoder: a place a known word, 1 where a text has it; `asked` are the texts."""

    known = ("glass", "harbour", "film", "directed", "brannek", "born", "sarrow", "song")

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked.append(list(texts))
        rows = [[float(word in bag(text)) for word in self.known] for text in texts]
        return np.array(rows, dtype=np.float32)


def size(text: str) -> int:
    """Characters but blanks, as compressors count."""
    return len(text.replace(" ", ""))


SIZES = {p.id: size(p.text) for p in (FILM, MAN, SONG)}


def bag(text: str) -> set[str]:
    return {word.strip(".,:;?()").lower() for word in text.split()}


class Shares:
    """Evaluator: how many of the question's words a passage has, of eight."""

    def __init__(self):
        self.asked = []

    def score(self, items):
        self.asked.append(list(items))
        return np.array([len(bag(q) & bag(p)) / 8 for q, p in items], dtype=np.float32)


def told_before(prompt: str, text: str) -> Said:
    """A reading in which a word that the prompt or the text has said is likely."""
    words = pieces(text)
    seen = bag(prompt)
    odds = []
    for word in words:
        odds.append(0.8 if bag(word) <= seen else 0.1)
        seen |= bag(word)
    return Said(text, probability=odds)
