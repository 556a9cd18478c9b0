"""C over similarities: worked by hand, learned from pairs that differ in one similarity, served."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from rag_repro.lm import hub
from rag_repro.lm.hub import ADAPTER, Weights, card_of
from rag_repro.lm.pair_scorers import SimilarityClassifier, similarities, squares
from rag_repro.methods.drrag.concatenation import concat
from rag_repro.schema import Passage
from rag_repro.schema.errors import WeightsError
from rag_repro.training.pair_training import Asked, Pair, fit

# Directions in a plane: what a text is about, as an angle in degrees.
ANGLES = {"q": 0, "a": 60, "b": 90, "q a": 30}


class Plane:
    """An encoder of these four texts; counts what it is asked."""

    fingerprint = "plane"

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked += texts
        angles = np.radians([ANGLES[text] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_similarities_worked_by_hand():
    plane = Plane()
    found = similarities(plane, [("q", "a", "b")])
    # cos 60, cos 90, cos 30, cos (90 - 30), cos (60 - 30)
    assert found == pytest.approx(np.array([[0.5, 0.0, 0.8660, 0.5, 0.8660]]), abs=1e-4)
    similarities(plane, [("q", "a", "b"), ("q", "a", "b")])
    assert plane.asked == ["q", "a", "b", "q a"] * 2  # each text once a call


def test_the_question_with_a_passage_is_the_second_stages_query():
    assert concat("q", Passage("p", "title", "a")) in ANGLES


def test_squares_worked_by_hand():
    z = np.array([[1.0, 2.0, 0.0, 0.0, 3.0]])
    made = squares(z)[0]
    assert made[:5].tolist() == [1, 2, 0, 0, 3]
    assert made[5:].tolist() == [1, 2, 0, 0, 3, 4, 0, 0, 6, 0, 0, 0, 0, 0, 9]


class Drawn:
    """An encoder that gives each text a direction by chance, b near q+a where they belong."""

    fingerprint = "drawn"

    def encode(self, texts):
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text):
        kind, _, number = text.rpartition(" ")
        near = kind.startswith("b yes") or kind.endswith("yes")
        seed = sum(map(ord, text))
        own = np.random.default_rng(seed).normal(size=8)
        if near:
            own = np.random.default_rng(int(number)).normal(size=8) * 3 + own
        return (own / np.linalg.norm(own)).astype(np.float32)


def lessons(numbers):
    made = []
    for n in numbers:
        made.append(Asked((1, 2), 1, "positive:x", ("q", f"a yes {n}", f"b yes {n}")))
        made.append(Asked((1, 2, 3), 0, "hard:x", ("q", f"a yes {n}", f"b no {n}")))
    return made


def test_it_learns_what_separates_the_pairs(tmp_path):
    folder = fit(Drawn(), lessons(range(100)), lessons(range(100, 140)), tmp_path / "c")
    row = json.loads((folder / "curve.jsonl").read_text())
    assert row["tokens"] == 100 * 5
    assert set(row["held_out"]) == {"positive:x", "hard:x"}
    base = Weights("plane", tmp_path, "safetensors", "0" * 64, "here", "none", "", None)
    weights = Weights("c", folder, "adapter", "1" * 64, "here", "none", "", base)
    judge = SimilarityClassifier(weights, Drawn())
    unseen = lessons(range(200, 260))
    p = judge.score([e.item for e in unseen])
    right = (p >= 0.5) == np.array([e.label == 1 for e in unseen])
    assert right.mean() > 0.9
    assert p.dtype == np.float32
    # The losses of the curve are those of the judge.
    held = lessons(range(100, 140))
    p = judge.score([e.item for e in held if e.label])
    assert row["held_out"]["positive:x"] == pytest.approx(-np.log(p).mean(), abs=1e-3)
    assert judge.score([]).shape == (0,)


def test_what_is_like_nothing_learned_is_judged_without_a_warning(tmp_path):
    folder = fit(Drawn(), lessons(range(30)), (), tmp_path / "c")
    base = Weights("plane", tmp_path, "safetensors", "0" * 64, "here", "none", "", None)
    judge = SimilarityClassifier(
        Weights("c", folder, "adapter", "1" * 64, "", "", "", base), Drawn()
    )
    far = np.array([[1, 1, 1, 1, 1], [-1, 1, -1, 1, -1]], dtype=np.float32) * 1e3
    with np.errstate(over="raise"):
        p = judge.probabilities(far)
    assert set(p.round(6)) <= {0.0, 1.0}


def test_the_same_lessons_give_the_same_bytes(tmp_path):
    one, two = (fit(Drawn(), lessons(range(30)), (), tmp_path / n) for n in "ab")
    assert (one / ADAPTER).read_bytes() == (two / ADAPTER).read_bytes()


def test_a_damaged_file_is_named(tmp_path):
    folder = fit(Drawn(), lessons(range(30)), (), tmp_path / "c")
    base = Weights("plane", tmp_path, "safetensors", "0" * 64, "here", "none", "", None)
    weights = Weights("c", folder, "adapter", "1" * 64, "here", "none", "", base)
    (folder / ADAPTER).write_bytes(b"\0" * 40)
    with pytest.raises(WeightsError, match=re.escape(ADAPTER)):
        SimilarityClassifier(weights, Drawn())
    from safetensors.numpy import save_file

    save_file({"weights": np.zeros(3, np.float32)}, folder / ADAPTER)
    with pytest.raises(WeightsError, match="not a classifier over similarities"):
        SimilarityClassifier(replace(weights), Drawn())


def test_the_recipe_makes_it_and_the_workshop_serves_it(tmp_path, monkeypatch):
    """Over MiniLM, from three questions of world A; by name, as conditions ask for it.

    Nothing of it is cast, so no processor is slow at it.
    """
    from rag_repro.study.services import UnknownService, Workshop
    from rag_repro.training import run
    from rag_repro.training.recipes import recipe

    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("rag_repro.training.fit.fast_bfloat16", lambda device: False)
    small = replace(
        recipe("drrag-classifier-testbed"), lessons=({"dataset": "world-A", "questions": 3},)
    )
    prepared = run.prepare(small, 0)
    assert "1 steps" in prepared.cost()
    assert "float32" not in prepared.cost()
    folder = run.train(replace(prepared, held_out=()), run.folder_of(small, 0))
    assert run.is_made(prepared, folder)
    assert card_of(folder)["computed_in"] == "float32"
    workshop = Workshop()
    scorer = workshop.scorer("drrag-classifier-testbed")
    items = [("Who leads Vel?", "Vel is led by Ada.", "Ada is a singer.")]
    assert 0 < float(scorer.score(items)[0]) < 1
    with pytest.raises(UnknownService, match="no room"):
        workshop.scorer("drrag-classifier-testbed@256")


def test_pairs_are_asked_in_both_orders():
    from rag_repro.training.pair_training import in_both_orders

    class Words:
        def tokens(self, text):
            return tuple(map(len, text.split())), ()

    made = in_both_orders([Pair("who is", "a b c", "d", 1, "positive:x")], Words())
    assert [e.item for e in made] == [("who is", "a b c", "d"), ("who is", "d", "a b c")]
    assert [len(e.tokens) for e in made] == [2 + 3 + 1 + 2 + 3, 2 + 1 + 3 + 2 + 1]
