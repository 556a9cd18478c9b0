import numpy as np
import pytest

from rag_repro.evaluation import retrieval_metrics as ret
from rag_repro.schema import Passage


def test_recall_is_the_mean_share():
    assert ret.recall(["a", "x", "b"], ["a", "b", "c", "d"]) == 0.5
    assert ret.all_found(["a", "x", "b"], ["a", "b"]) == 1
    assert ret.all_found(["a", "x"], ["a", "b"]) == 0
    assert ret.any_found(["x", "b"], ["a", "b"]) == 1
    assert ret.any_found([], ["a"]) == 0


def test_twice_the_same_passage_counts_once():
    assert ret.recall(["a", "a"], ["a", "b"]) == 0.5
    assert ret.precision(["a", "a", "x"], ["a"]) == 0.5
    assert ret.average_precision(["x", "a", "a"], ["a"]) == 0.5


def test_average_precision_by_hand():
    # gold at ranks 1 and 3 of three gold: (1/1 + 2/3 + 0) / 3
    assert ret.average_precision(["a", "x", "b"], ["a", "b", "c"]) == pytest.approx(5 / 9)
    assert ret.average_precision(["x", "y"], ["a"]) == 0


def test_average_precision_of_a_whole_ranking_is_sklearns():
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    for _ in range(20):
        gold = rng.random(12) < 0.3
        gold[rng.integers(12)] = True
        ids = [str(i) for i in range(12)]
        wanted = sklearn.average_precision_score(gold, -np.arange(12.0))
        assert ret.average_precision(ids, [i for i, g in zip(ids, gold, strict=True) if g]) == (
            pytest.approx(wanted)
        )


def test_answers_in_passages():
    paris = Passage("1", "France", "Its capital is Paris.")
    comparison = Passage("2", "Parisian life", "A novel.")
    titled = Passage("3", "Paris", "A city.")
    assert ret.has_answer(paris, ["PARIS"])
    assert not ret.has_answer(comparison, ["Paris"])
    assert ret.has_answer(titled, ["Paris"])
    assert ret.snippet_precision([paris, comparison, titled], ["Paris"]) == pytest.approx(2 / 3)
    assert ret.answer_recall([paris, comparison], [("Lutetia", "Paris"), ("Lyon",)]) == 0.5
    assert ret.answer_recall([], [("Paris",)]) == 0
