"""Tiny random-weight models with a tokenizer trained on the spot, and plain reference passes."""

from __future__ import annotations

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from rag_repro.lm.hub import Weights
from rag_repro.lm.load import Loaded
from rag_repro.lm.local import LocalReader

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' "
    "+ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LINES = [
    "Who directed the film Polish-Russian War? Xawery Zulawski directed the film.",
    "The capital of France is Paris, and the capital of Italy is Rome.",
    "Question: when was she born? Answer: 1960. Łódź is a city; so is Zürich.",
    "user assistant system passage title text answer question the of and in is was born",
]


def tokenizer(template: str | None = TEMPLATE, metaspace: bool = False) -> PreTrainedTokenizerFast:
    """Byte-level BPE with 400 tokens, of which three are special.

    metaspace: words with a mark for the space before them, also at the text's start.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    if metaspace:
        raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
        raw.decoder = decoders.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=[*pre_tokenizers.ByteLevel.alphabet(), *("\n" if metaspace else "")],
        show_progress=False,
    )
    raw.train_from_iterator(LINES * 3, trainer)
    made = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        unk_token="<|endoftext|>",
        pad_token="<|endoftext|>",
    )
    made.chat_template = template
    return made


def config(kind: str):
    """Configurations of the families that readers come from, made tiny."""
    import transformers as t

    common = {
        "vocab_size": 400,
        "hidden_size": 48,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.25,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    wide = {"head_dim": 16}
    match kind:
        case "llama":
            return t.LlamaConfig(**common)
        case "qwen2":
            return t.Qwen2Config(
                **common, use_sliding_window=True, sliding_window=12, max_window_layers=1
            )
        case "gemma":
            return t.GemmaConfig(**common, **wide)
        case "gemma2":
            return t.Gemma2Config(
                **common, **wide, sliding_window=12, attn_logit_softcapping=3.0,
                final_logit_softcapping=20.0, query_pre_attn_scalar=16,
            )  # fmt: skip
        case "gemma3":
            return t.Gemma3TextConfig(
                **common, **wide, sliding_window=12, query_pre_attn_scalar=16,
                layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                final_logit_softcapping=20.0,
            )  # fmt: skip
    raise ValueError(kind)


FAMILIES = ("llama", "qwen2", "gemma", "gemma2", "gemma3")


def loaded(kind: str = "llama", seed: int = 0, **settings) -> Loaded:
    """A random model of a family; Weights name it but nothing lies on a disk."""
    from pathlib import Path

    made = config(kind)
    for name, value in settings.items():
        setattr(made, name, value)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(made).eval()
    weights = Weights(f"tiny-{kind}", Path("."), "safetensors", f"{kind}{seed}", "random", "none")
    return Loaded(model, tokenizer(), weights)


def reader(kind: str = "llama", seed: int = 0, **settings) -> LocalReader:
    return LocalReader(loaded(kind, seed), **settings)


def plain_pass(model, ids: list[int], embeds=None) -> tuple[np.ndarray, list[np.ndarray]]:
    """One full pass, no cache, transformers' own eager attention.

    -> logits (n, vocabulary), attention (heads, n, n) of each layer.
    """
    before = model.config._attn_implementation
    model.config._attn_implementation = "eager"
    try:
        with torch.no_grad():
            given = {"input_ids": torch.tensor([ids])} if embeds is None else {}
            if embeds is not None:
                given = {"inputs_embeds": embeds}
            out = model(**given, use_cache=False, output_attentions=True)
    finally:
        model.config._attn_implementation = before
    return out.logits[0].float().numpy(), [a[0].float().numpy() for a in out.attentions]


def plain_greedy(model, ids: list[int], n: int, ends: frozenset[int]) -> list[int]:
    """Greedy decoding by a whole pass a token."""
    tokens = list(ids)
    while len(tokens) < len(ids) + n:
        best = int(plain_pass(model, tokens)[0][-1].argmax())
        if best in ends:
            break
        tokens.append(best)
    return tokens[len(ids) :]
