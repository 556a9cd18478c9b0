"""Rows do not influence one another, and kept prefixes change nothing but the cost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rag_repro.schema import Generate, Kept, Prefix, Prompt, Read, Reply, Sampling, Until
from tests.lm import tiny

EXEMPLARS = "Question: when was she born? Answer: 1960. " * 4
OTHER = "The capital of France is Paris, and the capital of Italy is Rome. " * 3


def calls() -> list[Generate]:
    """Twenty calls of all kinds, with lengths, prefixes and ends of their own."""
    made = []
    for i, (line, head) in enumerate(itertools.product(tiny.LINES, ("a", "b", "c", "d", "e"))):
        prefix = {"a": Prefix(EXEMPLARS), "b": Prefix(OTHER), "c": OTHER}.get(head, "")
        prompt = Prompt.from_segments(prefix, line[: 7 + 5 * i % 40], chat=head == "e")
        made.append(
            Generate(
                prompt,
                3 + i % 9,
                stop=(("a", "is", Until("long", lambda text: len(text) > 12)) if i % 3 else ()),
                trace=i % 2 == 0,
                watch=(" the", " of") if i % 4 == 0 else (),
                sampling=Sampling(i, 0.7, 0.9) if i % 5 == 0 else None,
            )
        )
    return made


def same(left, right) -> None:
    assert left.tokens == right.tokens
    assert (left.text, left.offsets, left.finish) == (right.text, right.offsets, right.finish)
    assert left.prompt_tokens == right.prompt_tokens
    assert (left.trace is None) == (right.trace is None)
    if left.trace is not None:
        np.testing.assert_allclose(left.trace.probability, right.trace.probability, atol=1e-5)
        np.testing.assert_allclose(left.trace.entropy, right.trace.entropy, atol=2e-5)
        np.testing.assert_allclose(left.trace.attention[-1], right.trace.attention[-1], atol=1e-5)
    if left.watched is not None:
        np.testing.assert_allclose(left.watched, right.watched, atol=1e-5)


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_batch_size_and_order_change_nothing(family: str):
    asked = calls()
    alone = tiny.reader(family, batch_size=1, reuse=False)
    want = alone.generate(asked)
    assert alone.ties == 0
    assert {g.finish for g in want} >= {"length", "stop"}
    order = list(np.random.default_rng(3).permutation(len(asked)))
    for size, reuse in ((1, True), (5, True), (16, True), (16, False)):
        reader = tiny.reader(family, batch_size=size, reuse=reuse)
        for expected, got in zip(want, reader.generate(asked), strict=True):
            same(expected, got)
        for place, got in zip(order, reader.generate([asked[i] for i in order]), strict=True):
            same(want[place], got)


def test_a_shared_prefix_is_computed_once():
    reader = tiny.reader(batch_size=4)
    asked = [Generate(Prompt.from_segments(Prefix(EXEMPLARS), line), 2) for line in tiny.LINES]
    made = reader.generate(asked)
    shared = len(reader.codec.ids(EXEMPLARS))
    own = [g.prompt_tokens - shared for g in made]
    computed = sorted(g.prefilled for g in made)
    # The first row of the group bears the prefix, the others only their own tokens.
    assert sum(computed) <= shared + sum(own) + 4
    assert sum(computed) >= sum(own)
    assert sum(n > shared for n in computed) == 1
    again = reader.generate([Generate(Prompt.from_segments(Prefix(EXEMPLARS), "When?"), 2)])[0]
    assert again.prefilled < 10


def test_the_same_prompt_again_costs_one_token():
    reader = tiny.reader()
    call = Generate(Prompt.from_segments(OTHER), 5, trace=True)
    first, second = reader.generate([call])[0], reader.generate([call])[0]
    assert first.prefilled == first.prompt_tokens
    assert second.prefilled == 1
    same(first, second)


def test_without_reuse_every_prompt_is_computed():
    reader = tiny.reader(reuse=False)
    made = reader.generate([Generate(Prompt.from_segments(Prefix(EXEMPLARS), "Who?"), 2)] * 3)
    assert all(g.prefilled == g.prompt_tokens for g in made)


def test_a_kept_continuation_reuses_prompt_and_kept_tokens():
    reader = tiny.reader()
    prompt = Prompt.from_segments(OTHER)
    first = reader.generate([Generate(prompt, 8)])[0]
    further = reader.generate([Generate(Prompt.from_segments(OTHER, Kept(first, 5)), 3)])[0]
    assert further.prefilled == 1
    assert further.prompt_tokens == first.prompt_tokens + 5
    assert further.tokens == first.tokens[5:]


def test_what_was_written_last_is_not_yet_kept():
    """The last token was drawn but never an input: a continuation computes it."""
    reader, fresh = tiny.reader(), tiny.reader(reuse=False)
    first = reader.generate([Generate(Prompt.from_segments(OTHER), 8)])[0]
    further = Generate(Prompt.from_segments(OTHER, Kept(first, 8), " of the film"), 4, trace=True)
    made = reader.generate([further])[0]
    same(fresh.generate([further])[0], made)
    assert made.prefilled == 1 + len(reader.codec.ids(" of the film"))


def test_reading_and_writing_share_what_is_kept():
    reader = tiny.reader()
    made = reader.generate([Generate(Prompt.from_segments(OTHER), 4)])[0]
    read = reader.read([Read(Prompt.from_segments(OTHER), "born")])[0]
    assert made.prefilled == made.prompt_tokens
    assert read.prefilled == 1


def test_little_memory_to_keep_prefixes_changes_only_the_cost():
    asked = calls()
    plenty, little = tiny.reader(), tiny.reader(keep_bytes=200_000)
    for left, right in zip(plenty.generate(asked), little.generate(asked), strict=True):
        same(left, right)
    assert little._store.used <= 200_000 < plenty._store.used
    plenty.forget()
    assert plenty._store.used == len(plenty._store) == 0


def test_calls_beyond_a_wave_come_back_in_order(monkeypatch):
    monkeypatch.setattr("rag_repro.lm.local.WAVE", 3)
    asked = calls()[:8]
    for left, right in zip(tiny.reader().generate(asked), tiny.reader().generate(asked[::-1])[::-1],
                           strict=True):  # fmt: skip
        same(left, right)


def test_ties_are_counted():
    """With a margin wider than any gap, every drawn token is a tie."""
    reader = tiny.reader(tie_margin=1e9)
    made = reader.generate([Generate(Prompt.from_segments("Who?"), 6)])[0]
    assert reader.ties == len(made.tokens) + (made.finish == "eos")


def test_a_reply_follows_the_readers_turn():
    reader = tiny.reader()
    text = reader.codec.text(
        reader.codec.encode(Prompt.from_segments("Who?", Reply("Answer:"), chat=True)).tokens
    )
    assert text == "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\nAnswer:"
