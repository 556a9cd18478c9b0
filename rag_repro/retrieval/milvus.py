"""Retrieval from Milvus: full text (BM25), vectors, or both, over corpora that outgrow memory.

The index lies in Milvus, embedded in a folder or at an address; the corpus beside it tells
what the ids that come back are. Three modes:

    bm25     Milvus analyses and weighs the words itself. Its weight of a term is Lucene's, as
             `bm25.BM25`'s "lucene", times k1 + 1, which ranks alike; the embedded Milvus counts
             over each segment of its files, which differs a little where there are several
    dense    vectors of an encoder, by inner product
    hybrid   the `depth` best of each, fused by Milvus's ranker: sum of 1 / (constant + rank);
             with `within`, ranks are those among the passages to choose from

Milvus's standard tokenizer splits at punctuation and spaces, much as the pattern of our
analyzer does; where grams suit the corpus it is given our terms. Scores come in float32;
rounded, ties stand by id as elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from unicodedata import normalize

import numpy as np

from rag_repro.schema.dataset import Corpus

from ..words import choices
from .analyzer import Analyzer, suited
from .base import Encoder, RetrievalError, best, check_corpus, check_fields
from .dense import encoded
from .milvus_corpus import InMilvus
from .milvus_server import MOST, MilvusError, Server

MODES = ("bm25", "dense", "hybrid")
INDEXES = ("FLAT", "HNSW", "AUTOINDEX")
_DECIMALS = {"bm25": 4, "dense": 5, "hybrid": 7}  # float32, of some 10, of 1, and of 1/60
_QUERIES = 500  # in one request
_SLACK = 8


class Milvus(InMilvus):
    """A corpus in Milvus.

    where: an address, or a path that ends in .db (`milvus_server.Server`). Nothing is put in
    before `load`, which goes on where an earlier one stopped; nothing is found before all is.
    mode: "bm25", "dense" or "hybrid"; the last two need an encoder. fields, k1, b: as `BM25`
    has them. stop_words: a list that `Analyzer` knows. index: "FLAT" compares with every
    vector; "HNSW" and "AUTOINDEX" are faster and may miss some. depth, constant: of the fusion.

    Raises RetrievalError for a setting that cannot be, and MilvusError as `Server`.
    """

    kind: ClassVar[str] = "milvus"
    version: ClassVar[int] = 1

    def __init__(
        self,
        corpus: Corpus,
        where: str | Path,
        *,
        mode: str = "bm25",
        encoder: Encoder | None = None,
        fields: Sequence[str] = ("title", "text"),
        k1: float = 1.5,
        b: float = 0.75,
        stop_words: str | None = "english",
        index: str = "FLAT",
        depth: int = 100,
        constant: int = 60,
    ):
        if mode not in MODES:
            raise RetrievalError(f"Milvus has no mode {mode!r}" + choices(mode, MODES))
        if index not in INDEXES:
            raise RetrievalError(f"no index {index!r} of vectors" + choices(index, INDEXES))
        if (encoder is None) != (mode == "bm25"):
            raise RetrievalError(
                f"mode {mode!r}: 'dense' and 'hybrid' need an encoder, 'bm25' takes none"
            )
        if not (k1 > 0 and 0 <= b <= 1 and depth > 0 and constant > 0):
            raise RetrievalError(
                f"k1 {k1}, b {b}, depth {depth}, constant {constant}: all are above 0, b in [0, 1]"
            )
        self.corpus = check_corpus(corpus)
        self.mode, self.encoder, self.fields = mode, encoder, check_fields(fields)
        self.k1, self.b, self.index = float(k1), float(b), index
        self.analyzer = Analyzer(stop_words=stop_words, **suited(corpus))
        self.depth, self.constant = depth, constant
        self.server = Server(where)
        self._complete = False

    def _found(
        self, queries: Sequence[str], k: int, pools: Sequence[np.ndarray | None]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if not self._complete:
            self.open()
        if k > MOST:
            raise RetrievalError(f"k is {k}; Milvus gives {MOST:,} hits at most")
        vectors = encoded(self.encoder, queries) if self.encoder and len(queries) else None
        made: list[Any] = [None] * len(queries)
        open_ = [i for i, pool in enumerate(pools) if pool is None]
        parts = [open_[at : at + _QUERIES] for at in range(0, len(open_), _QUERIES)]
        parts += [[i] for i, pool in enumerate(pools) if pool is not None]
        for part in parts:
            asked = (
                {}
                if self.mode == "dense"
                else {"words": [self._searched(normalize("NFC", queries[i])) for i in part]}
            )
            if vectors is not None:
                asked["vector"] = vectors[part].tolist()
            for i, ranked in zip(part, self._ranked(asked, k, pools[part[0]]), strict=True):
                made[i] = ranked
        yield from made

    def _ranked(
        self, asked: Mapping[str, Sequence[Any]], k: int, pool: np.ndarray | None
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Places and scores of the k best for each query, ties and the rest by id."""
        n = len(self.corpus) if pool is None else len(pool)
        count = len(next(iter(asked.values())))
        if not n:
            return [(np.empty(0, np.int64), np.empty(0))] * count
        found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        waiting, size = list(range(count)), min(n, MOST, 2 * k + _SLACK)
        while waiting:
            part = {field: [data[i] for i in waiting] for field, data in asked.items()}
            for i, hits in zip(list(waiting), self._asked(part, k, size, pool), strict=True):
                places = np.array([self._placed(name) for name, _ in hits], dtype=np.int64)
                scores = np.round([score for _, score in hits], _DECIMALS[self.mode])
                # Whole once the last one found is worse than the k-th, or there are no more.
                if len(hits) < size or size in (n, MOST) or scores[-1] < scores[k - 1]:
                    found[i] = self._filled(places, scores, k, pool)
                    waiting.remove(i)
            size = min(n, MOST, 4 * size)
        return [found[i] for i in range(count)]

    def _asked(
        self, asked: Mapping[str, Sequence[Any]], k: int, size: int, pool: np.ndarray | None
    ) -> list[list[tuple[str, float]]]:
        passages = self.corpus.passages
        ids = None if pool is None else [passages[place].id for place in pool]
        if self.mode == "hybrid":
            depth = max(self.depth, k)  # not by `size`: more hits must not move the first ones
            return self.server.fused(self.name, asked, depth, self.constant, size, ids)
        [(field, data)] = asked.items()
        return self.server.search(self.name, field, data, size, ids)

    def _placed(self, name: str) -> int:
        if name not in self._place_of:
            raise MilvusError(
                f"{self._place} holds {name!r}, which is not in the corpus; {self._command} --anew "
                "drops it and loads all again"
            )
        return self._place_of[name]

    def _filled(
        self, places: np.ndarray, scores: np.ndarray, k: int, pool: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best; where fewer were found, the others follow by id: they share no word, or an
        index that is not FLAT missed them."""
        top = best(scores, self._id_ranks[places], k)
        places, scores = places[top], scores[top]
        if len(places) < k:
            every = np.arange(len(self.corpus)) if pool is None else pool
            rest = np.setdiff1d(every, places)
            rest = rest[np.argsort(self._id_ranks[rest])][: k - len(places)]
            least = scores.min(initial=0.0)  # products of vectors can be below 0
            places = np.concatenate([places, rest])
            scores = np.concatenate([scores, np.full(len(rest), least)])
        return places, scores
