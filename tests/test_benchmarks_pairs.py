"""The benchmark of pairs, run tiny: what it says is whole; never how fast."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
import pytest

from benchmarks import pairs, timing
from rag_repro import data
from rag_repro.lm import hub
from rag_repro.lm.pair_scorers import PairClassifier
from tests.lm import tiny
from tests.lm.test_pairs import trained

made = lru_cache(data.load)
FEW = ["--questions", "2", "--repeats", "1", "--k", "3", "--new-tokens", "4"]


class Judge:
    """Probabilities by the texts' lengths; notes how many items came at once."""

    name = "judge"

    def __init__(self):
        self.asked = []

    def score(self, items):
        self.asked.append(len(items))
        return np.array([1 / (1 + len(a)) for _, a, _ in items], dtype=np.float32)


@pytest.fixture(autouse=True)
def little(monkeypatch):
    monkeypatch.setattr(data, "load", made)


@pytest.fixture(scope="module")
def loaded():
    return tiny.loaded("llama", max_position_embeddings=4096)


def told(capsys, loaded, judge, *options):
    pairs.main([*FEW, *options, "--json"], loaded, judge)
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_it_ends_in_one_line_of_json(capsys, loaded):
    judge = Judge()
    said = told(capsys, loaded, judge)
    assert (said["questions"], said["pairs_a_question"], said["classifier"]) == (2, 3, "judge")
    assert said["largest_difference"] == 0
    assert 0 < said["new_tokens"] <= 4 < said["prompt_tokens"]
    assert {"ratio", "ratio_min", "ratio_max", "ratio_cpu", "ms_reader", "threads"} <= said.keys()
    # A round to warm up and one that counts: six pairs one by one, then all at once.
    assert judge.asked == [*[1] * 6, 6] * 2


def test_milliseconds_a_pair_and_the_ratio(monkeypatch, capsys, loaded):
    """Clocks that say: six pairs take 3 seconds one by one and 1.2 at once, two answers 12."""
    seconds = {pairs.ALONE: 3.0, pairs.BATCHED: 1.2, pairs.READER: 12.0}
    interleave = timing.interleave

    def run(sides, repeats, **options):
        _, results = interleave(sides, repeats, **options)
        return {side: timing.Times((s,), (s,)) for side, s in seconds.items()}, results

    monkeypatch.setattr(timing, "interleave", run)
    said = told(capsys, loaded, Judge())
    assert (said["ms_alone"], said["ms_batched"], said["ms_reader"]) == (500, 200, 6000)
    assert said["ratio"] == 4


def test_the_table_says_what_a_pair_takes(capsys, loaded):
    pairs.main(FEW, loaded, Judge())
    out = capsys.readouterr().out
    assert "a pair: " in out
    assert "judging 3 pairs one by one" in out


def test_the_classifier_is_found_by_name_or_its_command_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))
    with pytest.raises(ValueError, match=r"rag-repro train drrag-classifier-joint$"):
        pairs.classifier("drrag-classifier-joint")
    trained("bert", tmp_path)
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "c").rename(tmp_path / "artifacts" / "drrag-classifier-joint")
    assert isinstance(pairs.classifier("drrag-classifier-joint"), PairClassifier)


def test_one_passage_makes_no_pair(loaded):
    with pytest.raises(ValueError, match="k is 1"):
        pairs.main([*FEW, "--k", "1"], loaded, Judge())
