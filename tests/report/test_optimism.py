"""A retriever tuned on vectors drawn by chance: it knows its own questions, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro import data
from rag_repro.methods.r2ag.features import features
from rag_repro.report import lists, optimism

from .test_lists import Words


def drawn(n, k=5, d=32, seed=0):
    """Lists in which nothing tells the gold passage from others."""
    rng = np.random.default_rng(seed)
    unit = lambda x: (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)  # noqa: E731
    gold = np.arange(k) == rng.integers(k, size=n)[:, None]
    q, x = unit(rng.standard_normal((n, d))), unit(rng.standard_normal((n, k, d)))
    return optimism.Vectors(q, x, gold, np.ones((n, k), dtype=bool))


def area(held, r):
    return (r[held.gold][:, None] > r[~held.gold][None]).mean()


def test_tuned_on_chance_it_knows_its_own_questions_and_no_others():
    own, other = drawn(20), drawn(200, seed=1)
    w = optimism.tuned(own)
    assert area(own, optimism.relevance(own)) < 0.7
    assert area(own, optimism.relevance(own, w)) > 0.95
    assert area(other, optimism.relevance(other, w)) == pytest.approx(0.5, abs=0.06)


def test_a_place_behind_a_lists_end_is_nobody():
    held = drawn(6, k=4)
    held.there[:, 3] = False
    held.gold[:] = np.arange(4) == 0
    longer, shorter = optimism.tuned(held), optimism.tuned(held.only(np.arange(6) >= 0))
    assert np.array_equal(longer, shorter)
    cut = optimism.Vectors(held.queries, held.passages[:, :3], held.gold[:, :3], held.there[:, :3])
    assert longer == pytest.approx(optimism.tuned(cut), abs=1e-5)


def test_frozen_it_is_r_of_equation_10():
    world = data.load("world-B-10@1000", split="test")
    words = Words()
    shop = type("Shop", (), {"encoder": lambda self, name: words})()
    held = lists.of(world, world.questions[:12], shop)
    made = optimism.Vectors.of(held, words)
    r = optimism.relevance(made)
    for i, one in enumerate(held):
        assert r[i, : len(one.hits)] == pytest.approx(one.rows[:, 0], abs=1e-5)
    q, x = made.queries[0], made.passages[0]
    assert r[0] == pytest.approx(features(q, x)[:, 0], abs=1e-5)
    table = optimism.table(held, words)
    frozen, own, other = ([float(cell.split()[0]) for cell in row[1:2]] for row in table.body)
    assert own > frozen
    assert own > other
    assert [row[3] for row in table.body] == [12] * 3
