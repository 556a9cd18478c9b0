"""The reference: rank_bm25's BM25Okapi, which scores every passage in Python.

It is slow and well known; `bm25.BM25` with variant "robertson" is held to
its rankings by a test. Both weigh a term of df among N passages with
log((N - df + 0.5) / (df + 0.5)). Where that is negative (a term in more than
half of the passages), bm25s takes 0, and rank_bm25 `epsilon` times the mean
of all weights: 0.25 by default, and with 0 the two agree without exception.
Its scores are (k1 + 1) times those of "robertson".
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from importlib import metadata
from typing import Any, ClassVar

import numpy as np

from ..data.dataset import Corpus
from .analyzer import Analyzer
from .lexical import Lexical


class RankBM25(Lexical):
    """BM25Okapi over a corpus; built anew each time, since it has no files of its own.

    epsilon: what stands in for negative weights, as a share of the mean weight.

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
