"""Similarity of sentence vectors, exact: FAISS IndexFlatIP, then settled in float64.

FAISS finds the candidates. Its float32 sums depend on how many queries come
at once, and an encoder's on how texts were batched, in about the seventh
digit; so the candidates' inner products are computed again, one by one, and
rounded to six decimals before ids break the ties.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rag_repro.retrieval.analyzer import Analyzer, suited
from rag_repro.retrieval.interface import (
    CARD,
    Encoder,
    RetrievalError,
    Stored,
    best,
    check_corpus,
    check_fields,
    passage_text,
)
from rag_repro.schema.dataset import Corpus

DECIMALS = 6
_SLACK = 1e-5  # more than FAISS's float32 sums and the rounding can be off together
_VECTORS = "vectors.npy"


def encoded(encoder: Encoder, texts: Sequence[str]) -> np.ndarray:
    """The encoder's vectors, float32 (texts, d). Raises RetrievalError where they cannot be."""
    vectors = np.ascontiguousarray(encoder.encode(list(texts)), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise RetrievalError(
            f"encoder {encoder.fingerprint!r} gave shape {vectors.shape} for "
            f"{len(texts)} texts; it must give (texts, d)"
        )
    lengths = np.linalg.norm(vectors, axis=1)
    wrong = np.flatnonzero(~(np.abs(lengths - 1) < 1e-3))  # also where a length is nan
    if len(wrong):
        raise RetrievalError(
            f"encoder {encoder.fingerprint!r} gave a vector of length "
            f"{lengths[wrong[0]]} for {texts[wrong[0]][:60]!r}; it must normalise to length 1"
        )
    return vectors


class Dense(Stored):
    """Inner product of normalised vectors (cosine) over a corpus.

    encoder: any `interface.Encoder`; it encodes the corpus here and each query
    later. fields as in `BM25`. query_prefix, passage_prefix: put before each
    text, for encoders that were trained with them ("query: ", "passage: ").
    folder: where its vectors are kept: they are taken from there, or encoded
    and written to it where there are none.

    Raises RetrievalError where the encoder's vectors are not finite float32
    of length 1, one for each text; StoreError as `Stored`.
    """

    kind: ClassVar[str] = "dense"
    version: ClassVar[int] = 1

    def __init__(
        self,
        corpus: Corpus,
        encoder: Encoder,
        *,
        fields: Sequence[str] = ("title", "text"),
        query_prefix: str = "",
        passage_prefix: str = "",
        folder: str | Path | None = None,
    ):
        self.corpus = check_corpus(corpus)
        self.encoder = encoder
        self.fields = check_fields(fields)
        self.query_prefix, self.passage_prefix = query_prefix, passage_prefix
        if folder is not None and Path(folder, CARD).is_file():
            self._check(Path(folder))
            self._index_of(np.load(Path(folder, _VECTORS), allow_pickle=False))
            return
        texts = [passage_prefix + passage_text(p, self.fields) for p in corpus.passages]
        self._index_of(encoded(encoder, texts))
        if folder is not None:
            self.save(folder)

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "encoder": self.encoder.fingerprint,
            "fields": list(self.fields),
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
        }

    @property
    def versions(self) -> dict[str, str]:
        import faiss

        return {"faiss": faiss.__version__}

    def _index_of(self, vectors: np.ndarray) -> None:
        import faiss

        count, d = vectors.shape
        self._index = faiss.IndexFlatIP(d)
        self._index.add(vectors)
        # A view of FAISS's own copy, (passages, d): the vectors are held once.
        self._vectors = faiss.rev_swig_ptr(self._index.get_xb(), count * d).reshape(count, d)

    def _write(self, folder: Path) -> None:
        np.save(folder / _VECTORS, self._vectors, allow_pickle=False)

    def _found(
        self, queries: Sequence[str], k: int, pools: Sequence[np.ndarray | None]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if not len(queries):
            return
        vectors = encoded(self.encoder, [self.query_prefix + query for query in queries])
        open_ = np.array([i for i, pool in enumerate(pools) if pool is None], dtype=np.int64)
        candidates = dict(zip(open_.tolist(), self._candidates(vectors[open_], k), strict=True))
        for i, pool in enumerate(pools):
            places = candidates[i] if pool is None else pool
            scores = self._similarity(vectors[i], places)
            top = best(scores, self._id_ranks[places], k)
            yield places[top], scores[top]

    def _candidates(self, vectors: np.ndarray, k: int) -> list[np.ndarray]:
        """For each of `vectors` (queries, d), places that surely hold its k best, ties included."""
        n = len(self.corpus)
        found: list[np.ndarray | None] = [None] * len(vectors)
        waiting, size = np.arange(len(vectors)), min(n, 2 * k + 8)
        while len(waiting):
            scores, places = self._index.search(vectors[waiting], size)
            # Whole once the last one found is clearly worse than the k-th.
            whole = (scores[:, -1] < scores[:, min(k, n) - 1] - _SLACK) | (size == n)
            for row in np.flatnonzero(whole):
                found[waiting[row]] = places[row]
            waiting, size = waiting[~whole], min(n, 4 * size)
        return found

    def _similarity(self, vector: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Rounded inner products of `vector` (d,) with the passages at `places`."""
        # Row by row in one fixed order, so that a passage's score does not
        # depend on which others are asked for.
        products = self._vectors[places].astype(np.float64) * vector.astype(np.float64)
        return np.round(products.sum(axis=1), DECIMALS)


_NOTHING = 1e-9  # shorter than this a projection is rounding alone


class LatentSemantics:
    """An encoder (`interface.Encoder`) without a neural network, fitted on the corpus itself.

    Deerwester et al. 1990: each text's tf-idf weights, with 1 + log tf for tf, projected on the
    directions in which the corpus varies most. It knows words that stand together in this
    corpus, and no others, and so is the weak member of a row of encoders.

    width: directions that are kept, fewer where the corpus has fewer. fields, analyzer: as
    `BM25` has them. Fitted at the first call, in seconds for thousands of passages; the same
    for the same corpus, but for the last digits.

    A text without a word of the corpus is like no other text but its kind: its vector is the
    last axis, on which no other text has a part.

    Raises RetrievalError for a width below 1, and for a corpus without any term.
    """

    version = 1

    def __init__(
        self,
        corpus: Corpus,
        *,
        width: int = 256,
        analyzer: Analyzer | None = None,
        fields: Sequence[str] = ("title", "text"),
    ):
        if width < 1:
            raise RetrievalError(f"width is {width!r}; it must be a whole number from 1")
        self.corpus = check_corpus(corpus)
        self.analyzer = analyzer or Analyzer(**suited(corpus))
        self.fields = check_fields(fields)
        self._most = width

    @property
    def fingerprint(self) -> str:
        """Of the corpus and the settings: what is fitted on another one is another encoder."""
        facts = [self.version, self._most, list(self.fields), self.analyzer.card]
        facts += [self.corpus.sha256, metadata.version("scikit-learn")]
        return f"lsa:{hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()}"

    @property
    def width(self) -> int:
        """Numbers of a vector, the last axis included."""
        return self._fitted[1].components_.shape[0] + 1

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (texts, width), each row of length 1, whatever texts stand beside it."""
        made = np.zeros((len(texts), self.width))
        if len(texts):
            words, directions = self._fitted
            made[:, :-1] = directions.transform(words.transform(texts))
        lengths = np.linalg.norm(made, axis=1)
        unknown = lengths < _NOTHING
        made[unknown] = np.eye(1, self.width, self.width - 1)
        made[~unknown] /= lengths[~unknown, None]
        return made.astype(np.float32)

    @cached_property
    def _fitted(self) -> tuple[Any, Any]:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = [passage_text(passage, self.fields) for passage in self.corpus.passages]
        words = TfidfVectorizer(analyzer=self.analyzer, sublinear_tf=True)
        try:
            table = words.fit_transform(texts)  # (passages, terms)
        except ValueError as error:
            raise RetrievalError(
                f"corpus {self.corpus.name!r} has no term under {self.analyzer} ({error})"
            ) from error
        # The search for the directions begins at random vectors, which are always the same.
        directions = TruncatedSVD(min(self._most, *table.shape), random_state=0)
        return words, directions.fit(table)
