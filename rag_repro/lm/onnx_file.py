"""A sentence encoder that ships as an ONNX graph, as the model that the graph was written from.

So it computes as the other encoders do, and needs no runtime of its own. An exporter folds
constants, and a folded matrix has lost its name; that of the bias which is added to the
matrix's product tells whose it is.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rag_repro.lm.errors import WeightsError
from rag_repro.lm.load import quiet

PREFIX = "model.0.auto_model."
HEADS = 12
MAX_TOKENS = 128
"""Of paraphrase-MiniLM-L3-v2: in its configuration, and nowhere in its graph."""


def sentence_encoder(file: Path, work: Path) -> None:
    """Write the encoder in `file` to `work`, in the form of sentence-transformers.

    Tokenizer and pooling are MiniLM's (`minilm`), of whose family it is: words of
    bert-base-uncased, the mean over tokens. WeightsError: the package `onnx` is missing, or the
    graph is another model's.
    """
    from rag_repro.lm import hub

    try:
        import onnx
    except ImportError as error:
        raise WeightsError(
            f"{file.name} is read with the package onnx: pip install 'rag-repro[minilm-l3]'"
        ) from error
    graph = onnx.load(file).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    model = _bert(named(stored, graph.node), file)
    beside = hub.resolve("minilm").path
    skipped = shutil.ignore_patterns("*.safetensors", "README*", ".git*", "data_config.json")
    shutil.copytree(beside, work, ignore=skipped, dirs_exist_ok=True)
    settings = {"max_seq_length": MAX_TOKENS, "do_lower_case": False}
    (work / "sentence_bert_config.json").write_text(json.dumps(settings) + "\n", encoding="utf-8")
    with quiet():
        model.save_pretrained(work)


def named(stored: Mapping[str, np.ndarray], nodes: Iterable[Any]) -> dict[str, np.ndarray]:
    """The weights under the names that the model has for them.

    stored: the graph's constants, a matrix (in, out) as it is multiplied; nodes: with
    `op_type`, `input` and `output`. -> matrices (out, in), as linear layers hold them.
    """
    made = {
        name.removeprefix(PREFIX): array
        for name, array in stored.items()
        if name.startswith(PREFIX)
    }
    factors = {}
    for node in nodes:
        if node.op_type == "MatMul" and node.input[1] in stored:
            factors[node.output[0]] = stored[node.input[1]]
        if node.op_type == "Add":
            for bias, product in (node.input, tuple(node.input)[::-1]):
                if bias in stored and product in factors:
                    owner = bias.removeprefix(PREFIX).removesuffix("bias")
                    made[f"{owner}weight"] = factors[product].T
    return made


def _bert(weights: Mapping[str, np.ndarray], file: Path) -> Any:
    """The model of these weights. Its pooler, which the mean over tokens passes by, is zero."""
    import torch
    from transformers import BertConfig, BertModel

    try:
        words, width = weights["embeddings.word_embeddings.weight"].shape
        config = BertConfig(
            vocab_size=words,
            hidden_size=width,
            num_hidden_layers=len({n.split(".")[2] for n in weights if n.startswith("encoder.")}),
            num_attention_heads=HEADS,
            intermediate_size=len(weights["encoder.layer.0.intermediate.dense.bias"]),
            max_position_embeddings=len(weights["embeddings.position_embeddings.weight"]),
        )
        state = {name: torch.tensor(array) for name, array in weights.items()}
        state |= {
            "pooler.dense.weight": torch.zeros(width, width),
            "pooler.dense.bias": torch.zeros(width),
        }
        model = BertModel(config)
        model.load_state_dict(state)
    except (KeyError, RuntimeError) as error:
        raise WeightsError(f"{file.name}: not the graph of a MiniLM encoder ({error})") from error
    return model
