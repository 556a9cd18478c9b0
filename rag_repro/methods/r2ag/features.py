"""Retrieval features: what a list of passages looks like to the retriever (R²AG, appendix A).

Equations 10 to 12 over the vectors of a question and of its passages, as ranked:

    r_i     = sim(x_q, x_i)
    gamma_i = sim(x_i, sum over j < i of w_j x_j),   w = softmax(r)
    zeta_i  = mean of sim(x_i, x_i-1) and sim(x_i, x_i+1), of those that there are

The paper leaves open what an empty sum is similar to: gamma_1 = 1, as in the
authors' code. A passage alone has no neighbour either: zeta_1 = 1 where k = 1.
"""

from __future__ import annotations

import numpy as np

COLUMNS = ("relevance", "precedent", "neighbour")
"""The paper's r, gamma, zeta, in its order."""


def features(query: np.ndarray, passages: np.ndarray, similarity: str = "cosine") -> np.ndarray:
    """float32 (k, 3), one row a passage, by `COLUMNS`.

    query: (d,); passages: (k, d) in the retriever's order, k from 0. All encoders of
    ours, and by the authors' code the paper's on NQ, give vectors of length 1: then
    cosine and dot product only differ in gamma, whose sum is shorter.
    """
    query, passages = (np.asarray(x, dtype=np.float64) for x in (query, passages))
    r = alike(passages, query, similarity)  # (k,)
    gamma = precedent(passages, softmax(r), similarity)  # (k,)
    zeta = neighbour(passages, similarity)  # (k,)
    return np.stack([r, gamma, zeta], axis=1).astype(np.float32)


def alike(a: np.ndarray, b: np.ndarray, similarity: str) -> np.ndarray:
    """sim of the rows of a (k, d) and of b (k, d), or of each with b (d,) -> (k,)

    A vector of length 0 has cosine 0 with any.
    """
    products = (a * b).sum(axis=-1)
    if similarity == "dot":
        return products
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)


def softmax(r: np.ndarray) -> np.ndarray:
    """Weights (k,) that sum to 1."""
    powers = np.exp(r - r.max(initial=-np.inf))
    return powers / powers.sum()


def precedent(passages: np.ndarray, weights: np.ndarray, similarity: str) -> np.ndarray:
    """gamma (k,), equation 11: each passage beside the weighted sum of those before it.

    weights: (k,), or (k, k) with a row for each i, of which the part before i counts.
    Equation 11 divides by the sum over all k; the authors' code over the precedents. A
    factor common to a row's weights changes no cosine, so these are one and the same.
    """
    before = np.tril(np.broadcast_to(weights, (len(passages),) * 2), -1)  # (k, k)
    gamma = alike(passages, before @ passages, similarity)
    gamma[:1] = 1.0
    return gamma


def neighbour(passages: np.ndarray, similarity: str) -> np.ndarray:
    """zeta (k,), equation 12: each passage beside the ones next to it, averaged."""
    k = len(passages)
    if k < 2:
        return np.ones(k)
    pairs = alike(passages[:-1], passages[1:], similarity)  # (k - 1,)
    return (np.append(pairs[0], pairs) + np.append(pairs, pairs[-1])) / 2
