"""A memory of passages found by their titles: ERM4's Memory Knowledge Reservoir (section 3.3).

Title-content pairs, of which the newest replaces an older one of the same title. It is no
index: passages come in one after another, and what it holds depends on their order. Filled
and then frozen it is as constant as an index, its fingerprint a hash of what it holds; until
then it is `ordered`, and questions that use it are asked one at a time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rag_repro.retrieval.interface import Encoder, RetrievalError, best
from rag_repro.schema import Hit, Passage

SAME = {
    "title": lambda passage: passage.title,
    "folded": lambda passage: " ".join(passage.title.casefold().split()),
    "passage": lambda passage: (passage.title, passage.text),
}
"""What two pairs must have in common for the newer to replace the older."""

DIGITS = 6
"""Cosines are told to so many: that of equal texts is 1, not a last bit less."""


class Reservoir:
    """Passages by title.

    encoder: whose vectors of queries and titles are compared by cosine.
    same: a name in `SAME`. capacity: most pairs; beyond, those written longest ago leave
        (a pair that is replaced is written anew). A pair that has just come leaves last.

    """

    def __init__(self, encoder: Encoder, *, same: str = "title", capacity: int = 10_000):
        self.encoder, self.same, self.capacity = encoder, same, capacity
        self.ordered = True
        self._held: dict[object, Passage] = {}
        self._vectors: dict[str, np.ndarray] = {}
        self._table: tuple[list[Passage], np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self._held)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """What it holds, written longest ago first."""
        return tuple(self._held.values())

    def remember(self, passages: Iterable[Passage]) -> None:
        """Write passages, one after another. RetrievalError: it is frozen."""
        if not self.ordered:
            raise RetrievalError("the reservoir is frozen; it takes up nothing more")
        self._table = None
        for passage in passages:
            name = SAME[self.same](passage)
            self._held.pop(name, None)
            self._held[name] = passage
            if len(self._held) > self.capacity:
                del self._held[next(iter(self._held))]

    def freeze(self) -> Reservoir:
        """From now on it is constant: no passage comes in, and questions may be batched."""
        self._prepared()
        self.ordered = False
        return self

    def recall(self, query: str, k: int) -> list[Hit]:
        """The k passages whose titles are most similar, their cosine as the score, ties by id."""
        if not self._held:
            return []
        passages, vectors, ranks = self._prepared()
        scores = np.round(vectors @ _unit(self.encoder.encode([query]))[0], DIGITS)
        places = best(scores, ranks, k)
        return [Hit(passages[i], float(scores[i]), n) for n, i in enumerate(places, start=1)]

    def _prepared(self) -> tuple[list[Passage], np.ndarray, np.ndarray]:
        """Passages, unit vectors of their titles (n, d), and their places in the order of ids."""
        if self._table is None:
            passages = list(self._held.values())
            titles = [passage.title for passage in passages]
            new = [title for title in dict.fromkeys(titles) if title not in self._vectors]
            if new:
                self._vectors |= dict(zip(new, _unit(self.encoder.encode(new)), strict=True))
            vectors = np.stack([self._vectors[t] for t in titles]) if titles else np.zeros((0, 0))
            order = sorted(range(len(passages)), key=lambda i: passages[i].id)
            ranks = np.empty(len(passages), dtype=np.int64)
            ranks[order] = np.arange(len(passages))
            self._table = passages, vectors, ranks
        return self._table

    @property
    def fingerprint(self) -> str:
        """Of a frozen one by what it holds; of an ordered one by how it goes on."""
        held = None if self.ordered else [[p.id, p.title, p.text] for p in self.passages]
        return _hash(["reservoir", self.encoder.fingerprint, self.same, self.capacity, held])


class QueryCache:
    """What each query found when it was asked before: a plain cache, ERM4's missing control.

    found: query -> passages, best first. Only the very same text counts.
    """

    ordered = False

    def __init__(self, found: Mapping[str, Sequence[Passage]]):
        self._found = {query: tuple(passages) for query, passages in found.items()}

    def __len__(self) -> int:
        return len(self._found)

    def recall(self, query: str, k: int) -> list[Hit]:
        """What this query found, up to k; nothing for any other."""
        passages = self._found.get(query, ())[:k]
        return [Hit(passage, 1.0, n) for n, passage in enumerate(passages, start=1)]

    def remember(self, passages: Iterable[Passage]) -> None:
        """RetrievalError: it knows queries, and passages do not say by which they were found."""
        raise RetrievalError("a query cache takes up nothing more")

    @property
    def fingerprint(self) -> str:
        listed = {q: [[p.id, p.title, p.text] for p in ps] for q, ps in self._found.items()}
        return _hash(["queries", sorted(listed.items())])


def _unit(vectors: np.ndarray) -> np.ndarray:
    """float64, each row of length 1; null vectors stay."""
    rows = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def _hash(facts: list) -> str:
    text = json.dumps(facts, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
