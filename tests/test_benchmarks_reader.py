"""The reader's benchmarks, run tiny: what they say is whole and equal; never how fast."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest
import torch

from benchmarks import engine, timing, trace
from rag_repro import data
from tests.lm import tiny

FEW = ["--questions", "2", "--repeats", "1", "--k", "1"]
TIMES = {"seconds", "seconds_min", "seconds_max", "cpu_seconds", "cpu_seconds_min"}

made = lru_cache(data.load)


@pytest.fixture(autouse=True)
def little(monkeypatch):
    """The world is made once, and answers are short."""
    monkeypatch.setattr(data, "load", made)
    monkeypatch.setattr(engine, "NEW", 5)


@pytest.fixture(scope="module")
def loaded():
    """A random reader with room for prompts of many small tokens."""
    return tiny.loaded("llama", max_position_embeddings=4096)


def json_of(capsys, benchmark, loaded, *options):
    benchmark.main([*FEW, *options, "--json"], loaded)
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def whole(told, loaded) -> None:
    """What both benchmarks state beside their ratios."""
    assert (told["questions"], told["repeats"], told["passages"]) == (2, 1, 1)
    assert (told["exemplars"], told["batch"]) == (6, 16)
    assert (told["reader"], told["dtype"], told["device"]) == ("tiny-llama", "float32", "cpu")
    assert told["threads"] == torch.get_num_threads()
    assert told["machine"]
    assert {"python", "torch", "transformers"} <= told["versions"].keys()
    assert all(set(side) == TIMES for side in told["sides"].values())


def test_the_engine_ends_in_one_line_of_json_with_equal_answers(capsys, loaded):
    told = json_of(capsys, engine, loaded)
    whole(told, loaded)
    assert told["equal_answers"] is True
    assert len(told["sides"]) == 4
    for one, longest in ((told, 5), (told["short"], 64)):
        assert one["equal_answers"] is True
        assert one["equal"] == 2
        assert {"ratio", "ratio_min", "ratio_max", "ratio_cpu", "ties"} <= one.keys()
        assert one["max_new_tokens"] == longest
        assert 0 < one["new_tokens"] <= longest
        # Of the two questions only one side computed the exemplars (most of a prompt) once,
        # and neither kept anything from its turn before.
        prefilled = one["prefilled_tokens"]
        assert prefilled[engine.ALONE] == one["prompt_tokens"]
        assert one["prompt_tokens"] / 2 < prefilled[engine.BATCHED] < one["prompt_tokens"]
        assert one["questions_per_second"].keys() == {engine.BATCHED, engine.ALONE}


def test_the_ratio_is_of_questions_a_second(monkeypatch, capsys, loaded):
    """Clocks that say: a call with the batched reader takes 1 second, any other 6."""
    monkeypatch.setattr(timing, "interleave", slowed(timing.interleave, engine.BATCHED, 1, 6))
    assert json_of(capsys, engine, loaded)["ratio"] == 6


def slowed(interleave, name, its, others):
    def run(sides, repeats, **options):
        times, results = interleave(sides, repeats, **options)
        seconds = {side: (float(its if side == name else others),) * repeats for side in times}
        return {side: timing.Times(s, s) for side, s in seconds.items()}, results

    return run


def test_an_answer_that_differs_is_seen(monkeypatch, capsys, loaded):
    genuine = engine.answered

    def first_forgotten(tasks, services, batch_size):
        answers = genuine(tasks, services, batch_size)
        if batch_size == 1 and len(answers) == 2:
            answers[0], answers[1] = answers[1], answers[0]
        return answers

    monkeypatch.setattr(engine, "answered", first_forgotten)
    told = json_of(capsys, engine, loaded)
    assert told["equal_answers"] is False


def test_a_question_that_fails_stops_the_measuring(loaded):
    short = tiny.loaded("llama", max_position_embeddings=64)
    with pytest.raises(RuntimeError, match=r"failed, so nothing was measured: PromptTooLong"):
        engine.main(FEW, short)


def test_the_trace_ends_in_one_line_of_json(capsys, loaded):
    told = json_of(capsys, trace, loaded, "--new-tokens", "4")
    whole(told, loaded)
    assert told["equal_answers"] is True
    assert told["largest_difference"] < 1e-5
    assert 0 < told["new_tokens"] <= 4
    for name in ("overhead", "overhead_with_prompts", "against_two_passes"):
        assert {name, f"{name}_min", f"{name}_max", f"{name}_cpu"} <= told.keys()
    assert len(told["sides"]) == 5


def test_what_is_compared_with_what():
    seconds = {
        trace.PLAIN: 10.0, trace.TRACED: 12.0, trace.PLAIN_KEPT: 2.0, trace.TRACED_KEPT: 3.0,
        trace.SECOND: 26.0,
    }  # fmt: skip
    told = trace.compared({name: timing.Times((s,), (2 * s,)) for name, s in seconds.items()})
    assert told["overhead"] == 1.5
    assert told["overhead_with_prompts"] == 1.2
    assert told["against_two_passes"] == told["against_two_passes_cpu"] == 3


@pytest.mark.parametrize("benchmark", [engine, trace])
def test_without_json_it_is_a_table(capsys, benchmark, loaded):
    benchmark.main(FEW, loaded)
    text = capsys.readouterr().out
    assert "goal: " in text
    assert "equal answers: True" in text


def test_each_benchmark_has_the_options_that_it_needs(monkeypatch):
    sizes = {"questions": 3, "repeats": 2}
    given = timing.parser("x", **sizes, k=6).parse_args(["--device", "cuda"])
    assert vars(given) == {
        **{**sizes, "json": False, "k": 6},
        **{"reader": "smollm2-135m", "device": "cuda"},
    }
    given = timing.parser("x", **sizes, reads=False, new_tokens=8).parse_args(["--new-tokens", "9"])
    assert vars(given) == {**sizes, "json": False, "new_tokens": 9}
    monkeypatch.setattr("rag_repro.lm.hub.resolve", str.upper)
    monkeypatch.setattr("rag_repro.lm.load.load", lambda *asked: asked)
    assert timing.weights("a", "cuda") == ("A", "cuda")


def test_turns_alternate_and_warm_ones_do_not_count():
    calls = []
    sides = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b") or len(calls)}
    times, results = timing.interleave(sides, 2, warm=1)
    assert "".join(calls) == "ababab"
    assert results == {"a": None, "b": 6}
    assert [len(side.wall) for side in times.values()] == [2, 2]
    with pytest.raises(ValueError, match="repeats is 0"):
        timing.interleave(sides, 0)


def test_a_ratio_is_of_medians_and_its_range_of_turns():
    slow = timing.Times((4.0, 9.0, 10.0), (8.0, 8.0, 8.0))
    fast = timing.Times((1.0, 3.0, 5.0), (2.0, 4.0, 8.0))
    told = timing.ratio(slow, fast)
    assert told == {"ratio": 3, "ratio_min": 2, "ratio_max": 4, "ratio_cpu": 2}


def test_the_first_questions_are_of_many_kinds():
    chosen = timing.first(made("world-B"), 16)
    assert len(chosen) == 16
    assert len({question.kind for question in chosen}) >= 8
    with pytest.raises(ValueError, match="questions is 0; world-B@4000 has from 1 to"):
        timing.first(made("world-B"), 0)
