"""What the two BM25 implementations share: terms, settings, one query at a time."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Container, Iterator, Sequence
from importlib import metadata
from typing import Any
from unicodedata import normalize

import numpy as np

from rag_repro.schema.dataset import Corpus

from ..plain import shortened
from .analyzer import Analyzer, suited
from .base import Index, RetrievalError, best, check_corpus, check_fields, passage_text

# Sums of the same weights in another order differ in the sixteenth digit.
# Rounded, passages that BM25 calls equal are equal, and the id decides.
DECIMALS = 9

log = logging.getLogger(__name__)


class Lexical(Index):
    """Scores from the terms that query and passage share.

    warns: whether a query without any term of the index is told, the first one alone.
    """

    warns = True

    analyzer: Analyzer
    fields: tuple[str, ...]
    k1: float
    b: float

    def _configure_terms(
        self, corpus: Corpus, analyzer: Analyzer | None, fields: Sequence[str], k1: float, b: float
    ) -> None:
        if not (k1 >= 0 and k1 < float("inf")):
            raise RetrievalError(f"k1 is {k1!r}; it must be a number from 0 (usual: 0.9 to 2)")
        if not 0 <= b <= 1:
            raise RetrievalError(f"b is {b!r}; it must lie between 0 and 1 (usual: 0.4 to 0.75)")
        self.corpus = check_corpus(corpus)
        self.analyzer = analyzer or Analyzer(**suited(corpus))
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
            # Passages are read as they stand: those of public data keep their scores.
            terms = self.analyzer(normalize("NFC", query))
            scores = np.round(self._scores(terms, pool), DECIMALS)
            if self.warns and not scores.any() and not any(t in self._vocabulary for t in terms):
                self.warns = False
                log.warning(
                    "%s: no term of the query %r is in the corpus %r, so its passages come by id; "
                    "search in the language of the passages (told once)",
                    *(self.kind, shortened(query, 60), self.corpus.name),
                )
            places = best(scores, self._id_ranks if pool is None else self._id_ranks[pool], k)
            yield (places if pool is None else pool[places]), scores[places]

    @property
    @abstractmethod
    def _vocabulary(self) -> Container[str]:
        """The terms of the index."""

    @abstractmethod
    def _scores(self, terms: Sequence[str], pool: np.ndarray | None) -> np.ndarray:
        """float64 scores of the passages at `pool` (sorted places), of all where None."""
