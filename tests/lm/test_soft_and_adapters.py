"""Embeddings by modules, and the cards of LoRA adapters."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from rag_repro.lm.hub import card_of, check_base, write_card
from rag_repro.lm.weights import quiet
from rag_repro.schema import Generate, Prompt, Read, Soft
from rag_repro.schema.errors import CallError, ReaderError, WeightsError
from tests.lm import tiny


def module(seed: int = 0, outputs: int = 48) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(3, 8),
            torch.nn.Tanh(),
            torch.nn.Dropout(0.5),
            torch.nn.Linear(8, outputs),
        )


FEATURES = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)


def prompt(features: np.ndarray = FEATURES, chat: bool = False) -> Prompt:
    return Prompt.from_segments(
        "Passage: ", Soft("r2", features, 0), "born in Rome. ", Soft("r2", features, 1),
        "Who?", chat=chat,
    )  # fmt: skip


@pytest.mark.parametrize("family", ["llama", "gemma"])
def test_soft_tokens_are_what_a_plain_pass_over_embeddings_says(family: str):
    reader = tiny.reader(family)
    reader.add_soft("r2", module())
    soft, other, none = (
        Generate(p, 6, trace=True)
        for p in (
            prompt(),
            prompt(FEATURES + 1),
            Prompt.from_segments("Passage: born in Rome. Who?"),
        )
    )
    made = reader.generate([soft, none, other, soft])
    made += reader.generate([other, soft])  # from what the first batch kept
    module_ = reader._soft._modules["r2"].eval()
    embedding = reader.model.get_input_embeddings()
    for call, generation in zip([soft, none, other, soft, other, soft], made, strict=True):
        encoded = reader.codec.encode(call.prompt)
        ids = torch.tensor([*encoded.tokens, *generation.tokens])
        with torch.no_grad():
            embeds = embedding(ids)
            for place, segment in encoded.soft:
                embeds[place] = module_(torch.tensor(segment.features))[segment.index]
        logits, attention = tiny.plain_pass(reader.model, [], embeds[None])
        n = len(encoded)
        assert list(generation.tokens) == logits[n - 1 : -1].argmax(-1).tolist()
        np.testing.assert_allclose(generation.trace.attention[-1], attention[-1][:, n:], atol=1e-5)
    assert made[0].tokens == made[3].tokens == made[5].tokens
    assert made[5].prefilled == 1


def test_reading_with_soft_tokens():
    reader = tiny.reader()
    reader.add_soft("r2", module())
    call = prompt(chat=True)
    written = reader.generate([Generate(call, 5, trace=True)])[0]
    reader.forget()
    text = reader.codec.text(written.tokens)
    if reader.codec.ids(text) == written.tokens:  # else the text has other tokens
        read = reader.read([Read(call, text)])[0]
        np.testing.assert_allclose(read.trace.entropy, written.trace.entropy, atol=1e-5)
    assert reader.read([Read(call, "born")])[0].prompt_tokens == written.prompt_tokens


def test_a_module_that_learnt_is_used_as_it_is_now():
    """Kept keys belong to the vector, not to the module's name."""
    reader = tiny.reader()
    made = module()
    reader.add_soft("r2", made)
    call = Generate(prompt(), 6, trace=True)
    before, mark, key = reader.generate([call])[0], reader.fingerprint, reader.key(call)
    with torch.no_grad():
        made[3].weight.mul_(-3)
    after = reader.generate([call])[0]
    assert not np.allclose(before.trace.entropy[0], after.trace.entropy[0])
    assert reader.fingerprint != mark
    assert reader.key(call) != key
    fresh = tiny.reader()
    fresh.add_soft("r2", made)
    np.testing.assert_allclose(
        fresh.generate([call])[0].trace.entropy, after.trace.entropy, atol=1e-5
    )


def test_a_module_in_training_stays_so_and_its_dropout_does_not_decode():
    reader = tiny.reader()
    made = module().train()
    reader.add_soft("r2", made)
    call = Generate(prompt(), 4, trace=True)
    one, two = (reader.generate([call])[0].trace.entropy for _ in range(2))
    np.testing.assert_allclose(one, two, atol=1e-6)
    assert made.training


def test_soft_segments_that_cannot_be_placed():
    reader = tiny.reader()
    reader.add_soft("r2ag", module())
    made = reader.generate([Generate(prompt(), 2)])[0]
    assert isinstance(made, CallError)
    assert "did you mean 'r2ag'" in str(made)
    reader.add_soft("r2", module())
    far = reader.generate([Generate(Prompt.from_segments("a", Soft("r2", FEATURES, 2)), 2)])[0]
    assert isinstance(far, CallError)
    assert "row 2 of 2" in str(far)
    reader.add_soft("r2", module(outputs=7))
    with pytest.raises(ReaderError, match="7"):
        reader.generate([Generate(prompt(), 2)])


# -------------------------------------------------------------------- adapters


@pytest.fixture
def adapter(tmp_path):
    """A LoRA adapter with random weights, trained (so its card says) on the tiny Llama."""
    from peft import LoraConfig, get_peft_model

    base = tiny.loaded()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        made = get_peft_model(
            base.model,
            LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False),
        )
    folder = tmp_path / "qa"
    made.save_pretrained(folder)
    write_card(folder, base.weights, {"steps": 3})
    return folder


def test_nothing_is_said_where_a_trained_reader_is_loaded(adapter):
    """Warnings would stand in the stored output of chapters."""
    from peft import PeftModel

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with quiet():
            PeftModel.from_pretrained(tiny.loaded().model, adapter)


def test_an_adapter_of_another_base_is_refused(adapter):
    card = card_of(adapter)
    with pytest.raises(WeightsError, match=r"tiny-llama .*not for tiny-gemma"):
        check_base(card, tiny.loaded("gemma").weights, adapter)
    check_base(card, tiny.loaded().weights, adapter)
    assert (card["steps"], card["base"]["sha256"]) == (3, "llama0")


def test_an_adapter_needs_its_card(adapter):
    (adapter / "card.json").write_text("[1]")
    with pytest.raises(WeightsError, match="not an adapter's card"):
        card_of(adapter)
    (adapter / "card.json").unlink()
    with pytest.raises(WeightsError, match="no card"):
        card_of(adapter)
