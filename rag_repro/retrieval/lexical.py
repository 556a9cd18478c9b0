"""What the two BM25 implementations share: terms, settings, one query at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from ..data.dataset import Corpus
from .analyzer import Analyzer
from .base import Index, RetrievalError, best, check_corpus, check_fields, passage_text

# Sums of the same weights in another order differ in the sixteenth digit.
# Rounded, passages that BM25 calls equal are equal, and the id decides.
DECIMALS = 9


class Lexical(Index):
    """Scores from the terms that query and passage share."""

    analyzer: Analyzer
    fields: tuple[str, ...]
    k1: float
    b: float

    def _configure_terms(
        self, corpus: Corpus, analyzer: Analyzer, fields: Sequence[str], k1: float, b: float
    ) -> None:
        if not (k1 >= 0 and k1 < float("inf")):
            raise RetrievalError(f"k1 is {k1!r}; it must be a number from 0 (usual: 0.9 to 2)")
        if not 0 <= b <= 1:
            raise RetrievalError(f"b is {b!r}; it must lie between 0 and 1 (usual: 0.4 to 0.75)")
        self.corpus = check_corpus(corpus)
        self.analyzer = analyzer
        self.fields = check_fields(fields)
        self.k1, self.b = float(k1), float(b)

    @property
    def _term_settings(self) -> dict[str, Any]:
        return {
            "k1": self.k1,
            "b": self.b,
            "fields": list(self.fields),
            "analyzer": self.analyzer.card,
        }

    @property
    def versions(self) -> dict[str, str]:
        # Another PyStemmer may stem the query otherwise than the index was stemmed.
        names = ["bm25s"] + (["pystemmer"] if self.analyzer.stemmer else [])
        return {name: metadata.version(name) for name in names}

    def _terms_of_passages(self) -> Iterator[list[str]]:
        """Terms of each passage. Raises RetrievalError where no passage has any."""
        found = False
        for passage in self.corpus.passages:
            terms = self.analyzer(passage_text(passage, self.fields))
            found = found or bool(terms)
            yield terms
        if not found:
            raise RetrievalError(
                f"corpus {self.corpus.name!r} has no term under {self.analyzer}; "
                "its pattern must match the words of the text"
            )

    def _found(
        self, queries: Sequence[str], k: int, pools: Sequence[np.ndarray | None]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for query, pool in zip(queries, pools, strict=True):
            scores = np.round(self._scores(self.analyzer(query), pool), DECIMALS)
            places = best(scores, self._id_ranks if pool is None else self._id_ranks[pool], k)
            yield (places if pool is None else pool[places]), scores[places]

    @abstractmethod
    def _scores(self, terms: Sequence[str], pool: np.ndarray | None) -> np.ndarray:
        """float64 scores of the passages at `pool` (sorted places), of all where None."""
