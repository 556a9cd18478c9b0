"""Latent semantics: an encoder without a neural network, fitted on the corpus itself.

Deerwester et al. 1990: each text's tf-idf weights, with 1 + log tf for tf, projected on the
directions in which the corpus varies most. It knows words that stand together in this
corpus, and no others, and so is the weak member of a row of encoders; like any other it
gives vectors, to search with (`Dense`) and to compare passages by (R²AG's features).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np

from rag_repro.schema.dataset import Corpus

from .analyzer import Analyzer, suited
from .base import RetrievalError, check_corpus, check_fields, passage_text

_NOTHING = 1e-9  # shorter than this a projection is rounding alone


class LatentSemantics:
    """Texts to unit vectors, by the words of a corpus; a `base.Encoder`.

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
        """tf-idf weights of the corpus, and the directions."""
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
