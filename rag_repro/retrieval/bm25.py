"""BM25 on bm25s: every term's weight in every passage computed once, then summed.

Variants, after Kamphuis et al., "Which BM25 Do You Mean?" (ECIR 2020); with
N passages, df of them holding the term, tf its count in the passage, and
B = 1 - b + b * length / mean length:

    lucene     log(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * B)
    robertson  log((N - df + 0.5) / (df + 0.5)), at least 0, * tf / (tf + k1 * B)
    atire      log(N / df) * tf * (k1 + 1) / (tf + k1 * B)

BM25L and BM25+ are left out on purpose. bm25s adds their lower bound also to
passages without the term, so that it moves all alike: the order that comes
out is that of tf / (tf + (k1 + delta) * B) and of ATIRE's term weight.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Container, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar
from unicodedata import normalize

import numpy as np

from rag_repro.plain import shortened
from rag_repro.retrieval.analyzer import Analyzer, suited
from rag_repro.retrieval.interface import (
    Index,
    RetrievalError,
    Stored,
    best,
    check_corpus,
    check_fields,
    passage_text,
)
from rag_repro.schema.dataset import Corpus
from rag_repro.without_jax import bm25s
from rag_repro.words import choices

# Sums of the same weights in another order differ in the sixteenth digit.
# Rounded, passages that BM25 calls equal are equal, and the id decides.
DECIMALS = 9

log = logging.getLogger(__name__)


class Lexical(Index):
    """What the two BM25 implementations share: scores from the terms of query and passage.

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


VARIANTS = ("lucene", "robertson", "atire")


class BM25(Lexical, Stored):
    """BM25 over a corpus.

    variant: "lucene", "robertson" or "atire". "robertson" ranks as
    rank_bm25's BM25Okapi wherever no term of the query stands in more than
    half of the passages (with stop words removed, hardly any does).
    analyzer: None: the one that suits the corpus (`analyzer.suited`).
    fields: what of a passage is searched, joined by a space; ("title",
    "text") or ("text",); a field named twice counts twice.

    Raises RetrievalError for an unknown variant, k1, b or field out of range,
    and a corpus without any term.
    """

    kind: ClassVar[str] = "bm25"
    version: ClassVar[int] = 1

    def __init__(
        self,
        corpus: Corpus,
        *,
        variant: str = "lucene",
        k1: float = 1.5,
        b: float = 0.75,
        analyzer: Analyzer | None = None,
        fields: Sequence[str] = ("title", "text"),
    ):
        if variant not in VARIANTS:
            raise RetrievalError(f"no BM25 variant {variant!r}" + choices(variant, VARIANTS))
        self._configure_terms(corpus, analyzer, fields, k1, b)
        self.variant = variant
        # Numbered in order of first occurrence: the same files from the same corpus.
        numbers: dict[str, int] = {}
        passages = [
            [numbers.setdefault(term, len(numbers)) for term in terms]
            for terms in self._terms_of_passages()
        ]
        self._index = bm25s().BM25(method=self.variant, k1=self.k1, b=self.b, dtype="float64")
        self._index.index((passages, numbers), create_empty_token=False, show_progress=False)

    @property
    def settings(self) -> dict[str, Any]:
        return {"variant": self.variant, **self._term_settings}

    def _write(self, folder: Path) -> None:
        self._index.save(folder, show_progress=False)

    @property
    def _vocabulary(self) -> Container[str]:
        return self._index.vocab_dict

    def _scores(self, terms: Sequence[str], pool: np.ndarray | None) -> np.ndarray:
        known = self._index.get_tokens_ids(terms)
        if pool is None:
            return self._index.get_scores_from_ids(known)
        # Only the pool's weights are looked up, term by term in the order in
        # which bm25s adds them: the sums are the same to the last bit.
        table = self._index.scores
        scores = np.zeros(len(pool))
        for term in known:
            start, end = table["indptr"][term : term + 2]
            holders = table["indices"][start:end]  # sorted places of passages with the term
            at = np.searchsorted(holders, pool)
            at[at == len(holders)] = 0
            held = holders[at] == pool
            scores[held] += table["data"][start:end][at[held]]
        return scores


class RankBM25(Lexical):
    """rank_bm25's BM25Okapi, which scores every passage in Python: slow, well known, the reference.

    A test holds `BM25` with variant "robertson" to its rankings; its scores are (k1 + 1) times
    those. Negative weights (a term in more than half of the passages) are 0 in bm25s, and here
    `epsilon` times the mean of all weights: with 0 the two agree without exception.
    Built anew each time, since it has no files of its own.

    Raises RetrievalError as `BM25` does.
    """

    kind: ClassVar[str] = "rank_bm25"
    version: ClassVar[int] = 1

    def __init__(
        self,
        corpus: Corpus,
        *,
        k1: float = 1.5,
        b: float = 0.75,
        epsilon: float = 0.25,
        analyzer: Analyzer | None = None,
        fields: Sequence[str] = ("title", "text"),
    ):
        from rank_bm25 import BM25Okapi

        self._configure_terms(corpus, analyzer, fields, k1, b)
        self.epsilon = float(epsilon)
        terms = list(self._terms_of_passages())
        self._index = BM25Okapi(terms, k1=self.k1, b=self.b, epsilon=self.epsilon)

    @property
    def settings(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, **self._term_settings}

    @property
    def versions(self) -> dict[str, str]:
        return {"rank-bm25": metadata.version("rank-bm25"), **super().versions}

    @property
    def _vocabulary(self) -> Container[str]:
        return self._index.idf

    def _scores(self, terms: Sequence[str], pool: np.ndarray | None) -> np.ndarray:
        if pool is None:
            return self._index.get_scores(terms)
        return np.array(self._index.get_batch_scores(terms, pool.tolist()))
