"""Ranking by chance: what any retriever must beat, and where random passages come from.

A query is only a seed: the same text gives the same ranking of the corpus, at
any batch, and other texts independent ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any, ClassVar

import numpy as np

from rag_repro.schema.dataset import Corpus

from .base import Index, best, check_corpus


class Chance(Index):
    """Every passage's score is drawn evenly from [0, 1) for each query.

    With `within`, the same scores are used: the ranking is that of the whole
    corpus with the other passages left out.

    Raises RetrievalError for a corpus without passages.
    """

    kind: ClassVar[str] = "random"
    version: ClassVar[int] = 1

    def __init__(self, corpus: Corpus):
        self.corpus = check_corpus(corpus)

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    @property
    def versions(self) -> dict[str, str]:
        return {"numpy": metadata.version("numpy")}

    def _found(
        self, queries: Sequence[str], k: int, pools: Sequence[np.ndarray | None]
    ) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        for query, pool in zip(queries, pools, strict=True):
            seed = int.from_bytes(hashlib.sha256(query.encode()).digest())
            # Dealt out by id, so that the order of the corpus does not decide.
            scores = np.random.default_rng(seed).random(len(self.corpus))[self._id_ranks]
            if pool is None:
                places = best(scores, self._id_ranks, k)
            else:
                places = pool[best(scores[pool], self._id_ranks[pool], k)]
            yield places, scores[places]
