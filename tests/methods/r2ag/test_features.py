"""Retrieval features: worked by hand, and what must hold of any vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_repro.methods.r2ag.features import COLUMNS, features, neighbour, precedent, softmax


def at(*degrees: float) -> np.ndarray:
    """Unit vectors of a plane, (n, 2)."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def cos(degrees: float) -> float:
    return float(np.cos(np.radians(degrees)))


def test_three_passages_worked_by_hand():
    # The question at 0 degrees; the passages at 0, 60 and 90.
    made = features(at(0)[0], at(0, 60, 90))
    assert made.shape == (3, len(COLUMNS))
    assert made.dtype == np.float32
    assert made[:, 0] == pytest.approx([1, 0.5, 0], abs=1e-6)
    # Before the second stands the first alone. Before the third w_1 (1, 0) + w_2 (0.5, 0.866),
    # w_1 : w_2 = e : e^0.5, so (1 + 0.5 e^-0.5, 0.866 e^-0.5), whose sine is what cos 90 meets.
    x, y = 1 + 0.5 * np.exp(-0.5), np.sqrt(0.75) * np.exp(-0.5)
    assert made[:, 1] == pytest.approx([1, 0.5, y / np.hypot(x, y)], abs=1e-6)
    assert made[:, 2] == pytest.approx([cos(60), (cos(60) + cos(30)) / 2, cos(30)], abs=1e-6)


def test_four_passages_have_two_in_the_middle():
    zeta = features(at(0)[0], at(0, 10, 40, 100))[:, 2]
    wanted = [cos(10), (cos(10) + cos(30)) / 2, (cos(30) + cos(60)) / 2, cos(60)]
    assert zeta == pytest.approx(wanted, abs=1e-6)


def test_dot_product_keeps_lengths():
    # Weights over all three: softmax(2, 2, 0), though the third has no successor.
    made = features(np.array([2.0, 0]), np.array([[1.0, 0], [1, 1], [0, 3]]), "dot")
    w = np.exp([2.0, 2, 0]) / np.exp([2.0, 2, 0]).sum()
    assert made[:, 0].tolist() == [2, 2, 0]
    assert made[:, 1] == pytest.approx([1, w[0], 3 * w[1]], abs=1e-6)
    assert made[:, 2].tolist() == [1, 2, 3]


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_few_passages(similarity):
    assert features(at(0)[0], np.zeros((0, 2)), similarity).shape == (0, 3)
    one = features(at(0)[0], at(60), similarity)
    assert one == pytest.approx(np.array([[0.5, 1, 1]]), abs=1e-6)
    two = features(at(0)[0], at(60, 90), "cosine")
    assert two == pytest.approx(np.array([[0.5, 1, cos(30)], [0, cos(30), cos(30)]]), abs=1e-6)


def test_a_vector_of_no_length_is_like_nothing():
    made = features(at(0)[0], np.array([[0.0, 0], [1, 0]]))
    assert made.tolist() == [[0, 1, 0], [1, 0, 0]]


vectors = st.builds(
    lambda seed, k, d: np.random.default_rng(seed).normal(size=(k + 1, d)),
    st.integers(0, 2**32 - 1),
    st.integers(2, 12),
    st.integers(2, 9),
)


@settings(max_examples=60, deadline=None)
@given(vectors, st.floats(1e-3, 1e3))
def test_gamma_does_not_depend_on_a_factor_of_the_weights_under_cosine(drawn, factor):
    x, w = drawn[1:], softmax(drawn[0, :1] * np.arange(len(drawn) - 1))
    assert precedent(x, factor * w, "cosine") == pytest.approx(precedent(x, w, "cosine"))
    # Under dot product it is the factor itself.
    dots = precedent(x, w, "dot")
    assert precedent(x, factor * w, "dot")[1:] == pytest.approx(factor * dots[1:])


@settings(max_examples=60, deadline=None)
@given(vectors)
def test_weights_over_all_and_over_the_precedents_are_one_under_cosine(drawn):
    q, x = drawn[0], drawn[1:]
    r = x @ q / np.linalg.norm(x, axis=1) / np.linalg.norm(q)
    k = len(r)
    among = np.zeros((k, k))
    for i in range(1, k):
        among[i, :i] = softmax(r[:i])
    assert precedent(x, among, "cosine") == pytest.approx(precedent(x, softmax(r), "cosine"))
    dots = [precedent(x, w, "dot")[1:] for w in (among, softmax(r))]
    assert not np.allclose(*dots)


@settings(max_examples=60, deadline=None)
@given(vectors)
def test_a_passage_knows_only_those_before_it_and_its_neighbours(drawn):
    """The last vector replaced: only what the equations let it reach may change."""
    q, x = drawn[0], drawn[1:]
    other = np.concatenate([x[:-1], x[-1:] + 1])
    a, b = (features(q, passages) for passages in (x, other))
    assert (a[:-1, 0] == b[:-1, 0]).all()
    assert a[:-1, 1] == pytest.approx(b[:-1, 1], abs=1e-6)  # a common factor of the weights
    assert (a[:-2, 2] == b[:-2, 2]).all()
    assert a[-1].tolist() != b[-1].tolist()


@settings(max_examples=30, deadline=None)
@given(vectors)
def test_neighbours_read_backwards_are_the_same(drawn):
    zeta = neighbour(drawn, "cosine")
    assert neighbour(drawn[::-1], "cosine") == pytest.approx(zeta[::-1])
    assert (np.abs(zeta) <= 1 + 1e-9).all()
