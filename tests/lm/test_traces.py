"""Every family of models through the same code, against plain full passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rag_repro.lm.local import LocalReader
from rag_repro.lm.prompts import Codec
from rag_repro.schema import Generate, Kept, Prefix, Prompt, Read, Reply
from rag_repro.schema.errors import CallError
from tests.lm import tiny

NEW = 10
SHARED = "Question: when was she born? Answer: 1960. " * 3
PROMPTS = [
    Prompt.from_segments("Who directed the film?"),
    Prompt.from_segments(Prefix(SHARED), "The capital of Italy is"),
    Prompt.from_segments(Prefix(SHARED), "Who was born in Łódź, and when? Answer:"),
    Prompt.from_segments("The capital of France is Paris, " * 4),
    Prompt.from_segments("Who?", chat=True),
]


def compare(reader, prompt: Prompt, made) -> None:
    """A traced generation or reading against one plain pass over all its tokens."""
    ids = list(reader.codec.encode(prompt).tokens)
    n, new = len(ids), list(made.tokens)
    logits, attention = tiny.plain_pass(reader.model, ids + new)
    log_p = torch.tensor(logits[n - 1 : -1]).log_softmax(-1).numpy()
    p = np.exp(log_p)
    trace = made.trace
    assert made.prompt_tokens == n
    assert trace.probability.shape == trace.entropy.shape == (len(new),)
    np.testing.assert_allclose(trace.probability, p[np.arange(len(new)), new], atol=1e-5)
    np.testing.assert_allclose(trace.entropy, -(p * log_p).sum(-1), atol=1e-5)
    for layer, rows in trace.attention.items():
        assert rows.shape == (4, len(new), n + len(new))
        np.testing.assert_allclose(rows, attention[layer][:, n:], atol=1e-5)
        np.testing.assert_allclose(rows.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("reuse", [True, False], ids=["reuse", "whole"])
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_batch_is_what_plain_passes_say(family: str, reuse: bool):
    """Greedy tokens, probabilities, entropies, attention: rows of unequal length at once."""
    reader = tiny.reader(family, batch_size=3, reuse=reuse)
    made = reader.generate([Generate(p, NEW, trace=True) for p in PROMPTS])
    for prompt, generation in zip(PROMPTS, made, strict=True):
        ids = list(reader.codec.encode(prompt).tokens)
        plain = tiny.plain_greedy(reader.model, ids, NEW, frozenset({2}))
        assert list(generation.tokens) == plain
        compare(reader, prompt, generation)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_reading_is_what_plain_passes_say(family: str):
    reader = tiny.reader(family)
    text = " She was born in Łódź; the city"
    calls = [Read(p, text, layers=(-1, -3)) for p in PROMPTS]
    for _ in range(2):  # the second time from what the first has kept
        for prompt, made in zip(PROMPTS, reader.read(calls), strict=True):
            assert made.finish == "given"
            assert made.text == text
            assert made.tokens == reader.codec.ids(text)
            assert set(made.trace.attention) == {-1, -3}
            compare(reader, prompt, made)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_texts_behind_one_prompt_are_read_behind_one_reading_of_it(family: str):
    """As the labels of a judge; the prompts' order and a beginning kept before change nothing."""
    reader = tiny.reader(family)
    texts = (" entailment", " contradiction of it", " neutral")
    calls = [Read(p, text, layers=(-1,)) for text in texts for p in PROMPTS]
    for kept in (False, True):
        made = reader.read(calls)
        for call, one in zip(calls, made, strict=True):
            assert (one.text, one.tokens) == (call.text, reader.codec.ids(call.text))
            compare(reader, call.prompt, one)
        first, others = made[: len(PROMPTS)], made[len(PROMPTS) :]
        # All but the last token, which foretells the text's first.
        assert {one.prefilled for one in others} == {1}
        assert all(one.prefilled == 1 for one in first) if kept else max(
            one.prefilled for one in first
        ) > 1  # fmt: skip
    reader = tiny.reader(family, reuse=False)
    for call, one in zip(calls, reader.read(calls), strict=True):
        assert one.prefilled == one.prompt_tokens
        compare(reader, call.prompt, one)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_prompts_last_token_can_be_looked_at(family: str):
    reader = tiny.reader(family)
    layers = (-1, -2)
    for _ in range(2):  # the second time from what the first has kept
        for prompt, made in zip(
            PROMPTS, reader.read([Read(p, "", layers) for p in PROMPTS]), strict=True
        ):
            ids = reader.codec.encode(prompt).tokens
            _, attention = tiny.plain_pass(reader.model, list(ids))
            assert (made.text, made.tokens, made.prompt_tokens) == ("", (), len(ids))
            assert made.trace.probability.shape == made.trace.entropy.shape == (0,)
            assert len(made.trace.prompt) == len(ids)
            for layer in layers:
                wanted = attention[layer][:, -1:]
                np.testing.assert_allclose(made.trace.attention[layer], wanted, atol=1e-5)


def test_reading_without_layers_has_no_attention():
    made = tiny.reader().read([Read(PROMPTS[0], " born")])[0]
    assert made.trace.attention == {}
    compare(tiny.reader(), PROMPTS[0], made)


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_prompts_longer_than_a_pass_are_cut_into_several(family: str):
    """Sixteen tokens a pass: every prompt and the read text go through in pieces."""
    whole, cut = tiny.reader(family), tiny.reader(family, pack=16)
    calls = [Generate(p, 4, trace=True) for p in PROMPTS]
    for prompt, a, b in zip(PROMPTS, whole.generate(calls), cut.generate(calls), strict=True):
        assert a.tokens == b.tokens
        compare(cut, prompt, b)
    compare(cut, PROMPTS[3], cut.read([Read(PROMPTS[3], "She was born" * 4, layers=(-1,))])[0])


def test_a_wide_window_hides_nothing():
    """A window longer than the prompt must agree too (the plainly causal way is taken)."""
    from rag_repro.lm.local import LocalReader

    loaded = tiny.loaded("gemma3", sliding_window=200)
    reader = LocalReader(loaded)
    compare(reader, PROMPTS[0], reader.generate([Generate(PROMPTS[0], 4, trace=True)])[0])


def test_a_trace_costs_one_more_step_and_nothing_else():
    reader = tiny.reader()
    plain = reader.generate([Generate(PROMPTS[0], NEW)])[0]
    assert plain.trace is None
    traced = reader.generate([Generate(PROMPTS[0], NEW, trace=True)])[0]
    assert (traced.text, traced.tokens, traced.finish) == (plain.text, plain.tokens, "length")


def test_a_trace_without_attention_is_the_same_otherwise_and_takes_no_step_more():
    reader = tiny.reader()
    steps = []
    step = reader._passes.step
    reader._passes.step = lambda *a, **k: steps.append(k["traced"]) or step(*a, **k)
    whole, bare = (
        reader.generate([Generate(p, 6, trace=True, attention=a) for p in PROMPTS])
        for a in (True, False)
    )
    for one, other in zip(whole, bare, strict=True):
        assert other.trace.attention == {}
        assert other.trace.prompt == one.trace.prompt
        np.testing.assert_allclose(other.trace.probability, one.trace.probability, atol=1e-6)
        np.testing.assert_allclose(other.trace.entropy, one.trace.entropy, atol=1e-5)
    assert steps == [True] * 6 + [False] * 5
    calls = [Generate(PROMPTS[0], 6, trace=True, attention=a) for a in (True, False)]
    assert reader.key(calls[0]) != reader.key(calls[1])


def test_an_answer_that_ends_at_once_has_an_empty_trace():
    reader = tiny.reader()
    first = reader.generate([Generate(PROMPTS[0], 1)])[0].tokens[0]
    ended = tiny.reader()
    ended._decoder.ends = frozenset({first})
    made = ended.generate([Generate(PROMPTS[0], 5, trace=True)])[0]
    assert (made.text, made.tokens, made.offsets, made.finish) == ("", (), (), "eos")
    assert made.trace.attention[-1].shape == (4, 0, made.prompt_tokens)


def test_outside_our_passes_the_model_is_transformers_own():
    """Training uses the model directly: masks and all must be what they were."""
    reader = tiny.reader()
    reader.generate([Generate(PROMPTS[0], 2)])
    assert reader.model.config._attn_implementation == "sdpa"
    reader.model.train()
    reader.generate([Generate(PROMPTS[0], 2)])
    assert reader.model.training


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_kept_tokens_are_read_as_they_were_written(family: str):
    """What a generation's own pass told is what reading its tokens tells."""
    reader = tiny.reader(family)
    for prompt in PROMPTS:
        made = reader.generate([Generate(prompt, NEW, trace=True)])[0]
        n = len(made.tokens) - 2
        read = reader.read([Read(prompt, Kept(made, n), layers=(-1,))])[0]
        assert read.tokens == made.tokens[:n]
        assert read.text == made.text[: made.offsets[n]]
        at = made.prompt_tokens + n
        np.testing.assert_allclose(read.trace.probability, made.trace.probability[:n], atol=1e-5)
        np.testing.assert_allclose(
            read.trace.attention[-1], made.trace.attention[-1][:, :n, :at], atol=1e-5
        )
    calls = [Read(prompt, Kept(made, m)) for m in (n, n - 1)] + [Read(prompt, made.text)]
    assert len({reader.key(call) for call in calls}) == 3
    refused = reader.read([Read(prompt, Kept(made, NEW + 1))])[0]
    assert isinstance(refused, CallError)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_text_can_be_read_alone(family: str):
    """No prompt and no opening token: the first token sees itself alone, nothing foretells it."""
    text = "She was born in Łódź; the city"
    reader = tiny.reader(family)
    for _ in range(2):  # the second time from what the first has kept
        made = reader.read([Read(None, text, (-1,)), Read(None, text[:1], (-1,))])
        for one, said in zip(made, (text, text[:1]), strict=True):
            ids = list(reader.codec.ids(said))
            logits, attention = tiny.plain_pass(reader.model, ids)
            log_p = torch.tensor(logits[:-1]).log_softmax(-1).numpy()
            assert (one.prompt_tokens, one.trace.prompt) == (0, ())
            assert np.isnan(one.trace.probability[0])
            assert np.isnan(one.trace.entropy[0])
            p = np.exp(log_p)
            np.testing.assert_allclose(
                one.trace.probability[1:],
                np.exp(log_p)[np.arange(len(ids) - 1), ids[1:]],
                atol=1e-5,
            )
            np.testing.assert_allclose(one.trace.entropy[1:], -(p * log_p).sum(-1), atol=1e-5)
            np.testing.assert_allclose(one.trace.attention[-1], attention[-1], atol=1e-5)
            assert (one.trace.attention[-1][:, 0, 0] == 1).all()


def test_words_have_the_space_before_them_where_a_vocabulary_tells_spans_without_it():
    """As GPT-NeoX, OLMo and others do: else all of a prompt would be one word."""
    from tokenizers import processors

    trimmed = tiny.tokenizer()
    trimmed._tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    text = "Who is in  the city?\n\n It is Łódź. "
    for given in (Prompt.from_segments(text), Prompt.from_segments(text, chat=True)):
        assert Codec(trimmed).encode(given) == Codec(tiny.tokenizer()).encode(given)
    assert Codec(trimmed).given(text) == Codec(tiny.tokenizer()).given(text)


@pytest.mark.parametrize("metaspace", [False, True], ids=["bytes", "metaspace"])
def test_a_trace_says_what_each_prompt_token_stands_for(metaspace: bool):
    held = tiny.loaded()
    reader = LocalReader(replace(held, tokenizer=tiny.tokenizer(metaspace=metaspace)))
    first = reader.generate(
        [Generate(Prompt.from_segments("Who was born in Łódź?"), 6, trace=True)]
    )[0]
    prompts = {
        Prompt.from_segments(
            Prefix(SHARED), "Łódź, and when?", Reply(" Answer:")
        ): f"{SHARED}Łódź, and when? Answer:",
        Prompt.from_segments("Łódź is", Kept(first, 3)): "Łódź is" + first.text[: first.offsets[3]],
        Prompt.from_segments(
            "Who?", chat=True
        ): "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n",
    }
    calls = [Generate(prompt, 2, trace=True) for prompt in prompts]
    for text, made in zip(prompts.values(), reader.generate(calls), strict=True):
        assert len(made.trace.prompt) == made.prompt_tokens
        assert "".join(made.trace.prompt) == text
