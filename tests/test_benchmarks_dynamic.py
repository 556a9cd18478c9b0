"""The dynamic benchmark, run tiny: three sides that do the same; never how fast."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
import pytest

from benchmarks import dynamic_rag, timing
from benchmarks.plain import PlainReader
from rag_repro import data
from rag_repro.lm.local import LocalReader
from rag_repro.schema import Generate, Kept, Prefix, Prompt, Read
from tests.lm import tiny

made = lru_cache(data.load)
FEW = ["--questions", "2", "--new-tokens", "12", "--threshold", "1.5", "--json"]


@pytest.fixture(scope="module")
def loaded():
    return tiny.loaded("llama", max_position_embeddings=4096)


def test_a_plain_reader_says_what_ours_says(loaded):
    plain, ours = PlainReader(loaded), LocalReader(loaded, batch_size=2)
    prompts = [
        Prompt.from_segments("Who directed the film?"),
        Prompt.from_segments(Prefix("Question: " * 9), "who?"),
    ]
    calls = [Generate(p, 8, trace=True, attention=False) for p in prompts]
    calls.append(Generate(prompts[0], 8, stop=(ours.generate(calls)[0].text[3:5],)))
    for one, other in zip(plain.generate(calls), ours.generate(calls), strict=True):
        assert (one.tokens, one.text, one.offsets, one.finish) == (
            *(other.tokens, other.text, other.offsets, other.finish),
        )
        if other.trace:
            np.testing.assert_allclose(one.trace.probability, other.trace.probability, atol=1e-5)
            np.testing.assert_allclose(one.trace.entropy, other.trace.entropy, atol=1e-4)
            assert one.trace.prompt == other.trace.prompt
    written = ours.generate(calls)[0]
    for call in (Read(None, Kept(written, 6), (-1,)), Read(None, "She was born in Łódź", (-1,))):
        [one], [other] = plain.read([call]), ours.read([call])
        assert (one.tokens, one.offsets, one.text) == (other.tokens, other.offsets, other.text)
        np.testing.assert_allclose(one.trace.attention[-1], other.trace.attention[-1], atol=1e-5)
        np.testing.assert_allclose(one.trace.entropy, other.trace.entropy, atol=1e-4)
    with pytest.raises(ValueError, match="alone"):
        plain.read([Read(prompts[0], "x")])


def test_three_sides_answer_alike(capsys, monkeypatch, loaded):
    monkeypatch.setattr(data, "load", made)
    dynamic_rag.main(FEW, loaded)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["equal_answers"] is True
    assert told["equal"] == told["questions"] == 2
    assert told["sides"].keys() == {dynamic_rag.ENGINE, dynamic_rag.ALONE, dynamic_rag.LOOP}
    assert told["against_released_loop"] == told["ratios"]["against_released_loop"]["ratio"] > 0
    assert told["retrievals"] >= 1  # else the loop was never gone through
    prefilled = told["prefilled_tokens"]
    assert prefilled[dynamic_rag.LOOP] == told["prompt_tokens"]
    for name in (dynamic_rag.ENGINE, dynamic_rag.ALONE):  # exemplars and drafts are kept
        assert prefilled[name] < told["prompt_tokens"] / 2


def test_what_is_compared_with_what(capsys, monkeypatch, loaded):
    """Clocks that say: 1 second for the engine, 3 for one at a time, 8 for the loop."""
    seconds = {dynamic_rag.ENGINE: 1.0, dynamic_rag.ALONE: 3.0, dynamic_rag.LOOP: 8.0}
    real = timing.interleave

    def clocked(sides, repeats, **options):
        _, results = real(sides, repeats, **options)
        return {
            n: timing.Times((s,) * repeats, (s,) * repeats) for n, s in seconds.items()
        }, results

    monkeypatch.setattr(data, "load", made)
    monkeypatch.setattr(timing, "interleave", clocked)
    dynamic_rag.main(["--questions", "1", "--new-tokens", "4", "--json"], loaded)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["against_released_loop"], told["against_batch_1"]) == (8.0, 3.0)
