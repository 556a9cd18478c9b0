"""Tiny random-weight encoders of the kinds that pair classifiers are built on."""

from __future__ import annotations

from pathlib import Path

import torch


def tokenizer():
    """Words of the tests, with BERT's marks."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<pad>", "<s>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(["who directed the film", "the film was made by"], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, cls_token="<s>", sep_token="</s>", pad_token="<pad>",
        unk_token="<unk>",
    )  # fmt: skip


def save(kind: str, folder: Path, seed: int = 0, positions: int = 130) -> str:
    """Save a random encoder of a kind ("bert", "big_bird", "longformer"); -> its folder."""
    import transformers as t

    common = {
        "vocab_size": 300,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": positions,
        "pad_token_id": 0,
        "initializer_range": 0.3,
    }
    match kind:
        case "bert":
            config, model = t.BertConfig(**common), t.BertModel
        case "big_bird":
            config = t.BigBirdConfig(**common, block_size=8, num_random_blocks=1, sep_token_id=2)
            model = t.BigBirdModel
        case "longformer":
            config = t.LongformerConfig(**common, attention_window=16, sep_token_id=2)
            model = t.LongformerModel
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = model(config)
    made.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)
