"""DR-RAG's classifier C over similarities of single texts, where pairs to learn from are few.

    v(t)       = the sentence encoder's vector of t, of length one;  q+a = question and passage
    s(q, a, b) = [v(q)·v(a), v(q)·v(b), v(a)·v(b), v(q+a)·v(b), v(q+a)·v(a)]
    C(q, a, b) = sigmoid(w · squares(z) + c),  z = (s - mean) / scale

squares(z) are the z and all products of two of them, so that "alike, but not
too alike" can be said. q+a is the query of DR-RAG's second stage, and v(q+a)·v(b)
its score. A cross-encoder (`lm.pairs`) reads all three texts at once and can
learn more; from some hundreds of questions it did not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from rag_repro.digest import sha256
from rag_repro.lm.weights import ADAPTER, Weights
from rag_repro.schema.errors import ReaderError, WeightsError

PARTS = {"mean": (5,), "scale": (5,), "weights": (20,), "bias": (1,)}
"""What the file of weights holds, with shapes."""

Item = tuple[str, str, str]


def similarities(encoder: Any, items: Sequence[Item]) -> np.ndarray:
    """float32 (items, 5): how alike question, passages and question with passage are.

    encoder: anything with `encode(texts) -> (texts, width)`, rows of length one. Each text is
    encoded once.
    """
    asked = [(q, a, b, f"{q} {a}") for q, a, b in items]
    place = {text: i for i, text in enumerate(dict.fromkeys(t for item in asked for t in item))}
    vectors = encoder.encode(list(place))
    q, a, b, qa = (vectors[[place[item[n]] for item in asked]] for n in range(4))
    compared = ((q, a), (q, b), (a, b), (qa, b), (qa, a))
    return np.stack([(x * y).sum(axis=1) for x, y in compared], axis=1)


def squares(z: np.ndarray) -> np.ndarray:
    """(n, 5) -> (n, 20): the columns, then the products of two of them."""
    pairs = combinations_with_replacement(range(z.shape[1]), 2)
    return np.concatenate([z, *(z[:, [i]] * z[:, [j]] for i, j in pairs)], axis=1)


class SimilarityClassifier:
    """A trained C as the engine's scorer: items (question, passage found first, passage).

    weights: a folder of `rag-repro train` (kind "adapter") over a sentence encoder.
    encoder: that encoder, or one that keeps its vectors.
    """

    def __init__(self, weights: Weights, encoder: Any):
        if weights.base is None:
            raise ReaderError(
                f"{weights.name}: not a trained classifier; "
                "`rag-repro train drrag-classifier` makes one"
            )
        self.weights, self.name = weights, weights.name
        self.encoder = encoder
        self._parts = _read(weights)
        facts = f"similarities:{encoder.fingerprint}:{sha256(weights.path / ADAPTER)}"
        self.fingerprint = hashlib.sha256(facts.encode()).hexdigest()

    def score(self, items: Sequence[Item]) -> np.ndarray:
        """float32 (items,): the probability that both passages are critical to the question."""
        if not items:
            return np.zeros(0, dtype=np.float32)
        return self.of(similarities(self.encoder, items))

    def of(self, found: np.ndarray) -> np.ndarray:
        """float32 (items,): the probability, from `similarities` (items, 5)."""
        part = self._parts
        z = (found - part["mean"]) / part["scale"]
        logits = squares(z) @ part["weights"] + part["bias"]
        # Capped, since float32 has no exp(89); below it the probability is nothing already.
        return (1 / (1 + np.exp(np.minimum(-logits, 80)))).astype(np.float32)

    def __repr__(self) -> str:
        return f"SimilarityClassifier({self.name})"


def _read(weights: Weights) -> dict[str, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = weights.path / ADAPTER
    try:
        parts = load_file(path)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{path}: not readable ({error}); train it again") from error
    if {name: part.shape for name, part in parts.items()} != PARTS:
        raise WeightsError(
            f"{path}: not a classifier over similarities (it holds {', '.join(parts)}); "
            "train it again"
        )
    return parts
