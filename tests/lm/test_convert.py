"""An encoder from an ONNX graph: the weights under their names, the same vectors."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModel, BertConfig, BertModel

from rag_repro.lm import convert, hub
from rag_repro.lm.convert import PREFIX, named
from rag_repro.schema.errors import WeightsError


def node(kind, inputs, output):
    return SimpleNamespace(op_type=kind, input=inputs, output=[output])


def test_a_matrix_is_named_by_its_bias():
    w = np.arange(6.0).reshape(2, 3)
    stored = {f"{PREFIX}a.dense.bias": np.ones(3), f"{PREFIX}b.bias": np.ones(3), "m1": w,
              "m2": 2 * w, "shape": np.array([1])}  # fmt: skip
    nodes = [
        node("MatMul", ["x", "m1"], "y"),
        node("Add", [f"{PREFIX}a.dense.bias", "y"], "z"),
        node("MatMul", ["z", "m2"], "u"),
        node("Add", ["u", f"{PREFIX}b.bias"], "v"),  # either way round
        node("MatMul", ["v", "z"], "scores"),  # of two activations: no weight
        node("Add", ["scores", "mask"], "masked"),
        node("Concat", ["v"], "out"),
    ]
    made = named(stored, nodes)
    assert set(made) == {"a.dense.bias", "a.dense.weight", "b.bias", "b.weight"}
    np.testing.assert_array_equal(made["a.dense.weight"], w.T)
    np.testing.assert_array_equal(made["b.weight"], 2 * w.T)


def exported(model):
    """The model's graph as an exporter leaves it: matrices without names, turned."""
    tensors, nodes = [], []
    for name, tensor in model.state_dict().items():
        array = tensor.numpy()
        owner = name.removesuffix(".weight")
        if name.startswith("pooler"):
            continue
        if array.ndim == 2 and "embeddings" not in name:
            number = f"onnx::MatMul_{len(tensors)}"
            nodes += [
                node("MatMul", ["x", number], f"y{number}"),
                node("Add", [f"{PREFIX}{owner}.bias", f"y{number}"], "z"),
            ]
            tensors.append(SimpleNamespace(name=number, array=array.T))
        else:
            tensors.append(SimpleNamespace(name=f"{PREFIX}{name}", array=array))
    return SimpleNamespace(graph=SimpleNamespace(initializer=tensors, node=nodes))


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A tiny encoder, the package onnx that reads it, and MiniLM's folder beside it."""
    config = BertConfig(
        vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=12,
        intermediate_size=16, max_position_embeddings=32,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(config).eval()
    beside = tmp_path / "minilm"
    (beside / "1_Pooling").mkdir(parents=True)
    for name in ("vocab.txt", "config.json", "model.safetensors", "1_Pooling/config.json"):
        (beside / name).write_text(name)
    resolve = hub.resolve
    there = SimpleNamespace(path=beside)
    monkeypatch.setattr(
        hub, "resolve", lambda name, **k: there if name == "minilm" else resolve(name, **k)
    )
    fake = SimpleNamespace(
        load=lambda file: exported(model),
        numpy_helper=SimpleNamespace(to_array=lambda tensor: tensor.array),
    )
    monkeypatch.setitem(sys.modules, "onnx", fake)
    (tmp_path / "tiny.onnx").write_bytes(b"a graph")
    return model, tmp_path / "tiny.onnx"


def test_the_same_vectors_from_a_folder(shipped, tmp_path):
    model, file = shipped
    folder = convert.converted(file, "0" * 64, tmp_path / "cache")
    again = AutoModel.from_pretrained(folder).eval()
    ids = torch.tensor([[2, 5, 7, 9]])
    with torch.no_grad():
        wanted = model(ids).last_hidden_state
        np.testing.assert_allclose(again(ids).last_hidden_state, wanted, atol=1e-6)
    # Tokenizer and pooling are the other encoder's, weights and configuration its own.
    assert (folder / "vocab.txt").read_text() == "vocab.txt"
    assert (folder / "1_Pooling" / "config.json").read_text() == "1_Pooling/config.json"
    assert '"max_seq_length": 128' in (folder / "sentence_bert_config.json").read_text()
    assert convert.converted(file, "0" * 64, tmp_path / "cache") == folder


def test_without_the_package_that_reads_it(shipped, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(WeightsError, match=r"pip install 'rag-repro\[minilm-l3\]'"):
        convert.converted(shipped[1], "0" * 64, tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("lost", ["embeddings.word_embeddings.weight", "layer.1.output.dense.bias"])
def test_another_models_graph(shipped, tmp_path, monkeypatch, lost):
    model, file = shipped
    whole = exported(model)
    whole.graph.initializer = [t for t in whole.graph.initializer if lost not in t.name]
    monkeypatch.setattr(sys.modules["onnx"], "load", lambda file: whole)
    with pytest.raises(WeightsError, match=r"tiny\.onnx: not the graph of a MiniLM encoder"):
        convert.sentence_encoder(file, tmp_path)
