"""Folders of weights that are damaged, foreign or changed: one sentence each, and another name."""

from __future__ import annotations

import json
import logging
import shutil
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file

from rag_repro.lm import hub
from rag_repro.lm.hub import write_card
from rag_repro.lm.load import Loaded, SentenceEncoder, load
from rag_repro.lm.local import LocalReader
from rag_repro.lm.pair_scorers import sequence_classifier
from rag_repro.lm.passes import Passes
from rag_repro.lm.weights import Weights
from rag_repro.schema import Generate, Marker, Prompt
from rag_repro.schema.errors import ReaderError, WeightsError
from tests.lm import encoders, tiny

WEIGHTS, CONFIG = "model.safetensors", "config.json"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    made = tiny.loaded()
    made.model.save_pretrained(folder)
    made.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of a reader's folder, to be damaged."""
    return shutil.copytree(saved, tmp_path / "reader")


@pytest.fixture
def sentences(tmp_path):
    """A tiny encoder's folder with modules, among them a dense one."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Pooling, Transformer

    encoders.save("bert", tmp_path / "bare")
    words = Transformer(str(tmp_path / "bare"))
    pooling = Pooling(words.get_embedding_dimension(), "mean")
    made = SentenceTransformer(modules=[words, pooling, Dense(32, 8)], device="cpu")
    made.save(str(tmp_path / "sentences"))
    return tmp_path / "sentences"


def change(file, **facts):
    file.write_text(json.dumps(json.loads(file.read_text()) | facts))


def tensors(folder, change):
    save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS, metadata={"format": "pt"})


def refused(make, *words):
    """The error's text: one sentence with these words in it."""
    with pytest.raises(ReaderError) as caught:
        make()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600
    for word in words:
        assert word in text
    return text


# ------------------------------------------------------------------------ identity


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (CONFIG, {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
        ("generation_config.json", {"eos_token_id": 7}),
        ("tokenizer_config.json", {"add_bos_token": True}),
    ],
)
def test_settings_count_for_a_models_name(folder, name, facts):
    before = hub.resolve(str(folder)).sha256
    change(folder / name, **facts)
    assert hub.resolve(str(folder)).sha256 != before


def test_tokenizer_and_template_count_for_a_models_name(folder):
    names = {hub.resolve(str(folder)).sha256}
    (folder / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    names.add(hub.resolve(str(folder)).sha256)
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text + "\n")
    names.add(hub.resolve(str(folder)).sha256)
    (folder / "README.md").write_text("words that change nothing")
    assert hub.resolve(str(folder)).sha256 in names
    assert len(names) == 3


def test_pooling_counts_for_an_encoders_name(sentences):
    before = hub.resolve(str(sentences)).sha256
    pooling = next(sentences.glob("*Pooling")) / CONFIG
    change(pooling, include_prompt=False)
    assert hub.resolve(str(sentences)).sha256 != before


def test_an_adapters_settings_count_but_for_artifacts(folder, tmp_path, monkeypatch):
    """Records name what lies among the artifacts by its weights alone."""
    mine = tmp_path / "mine"
    mine.mkdir()
    save_file({"a": torch.zeros(1)}, mine / hub.ADAPTER)
    (mine / "adapter_config.json").write_text('{"lora_alpha": 8}')
    write_card(mine, hub.resolve(str(folder)))

    def names():
        return hub.resolve(str(mine)).sha256, hub.digest_of(mine)

    before = names()
    (mine / "adapter_config.json").write_text('{"lora_alpha": 16}')
    assert not set(before) & set(names())
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path))
    artifact = names()
    (mine / "adapter_config.json").write_text('{"lora_alpha": 32}')
    assert names() == artifact


# ------------------------------------------------------------------------- tensors


def test_tensors_that_do_not_fit_are_refused(folder, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)

    def go(*words):
        refused(lambda: load(hub.resolve(str(folder))), str(folder), *words)
        assert "LOAD REPORT" not in caplog.text  # transformers' own, of ten lines

    whole = load_file(folder / WEIGHTS)
    tensors(folder, lambda held: {k: t for k, t in held.items() if ".1.mlp" not in k})
    go("lacks 'model.layers.1.mlp.down_proj.weight', 3 tensor(s)")
    tensors(folder, lambda held: whole | {"model.layers.9.mlp.up_proj.weight": torch.zeros(2)})
    go("also holds 'model.layers.9.mlp.up_proj.weight'")
    tensors(folder, lambda held: {k: t for k, t in whole.items() if k != "lm_head.weight"})
    go("lacks 'lm_head.weight'")
    change(folder / CONFIG, tie_word_embeddings=True)
    load(hub.resolve(str(folder)))
    old = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(6)}
    tensors(folder, lambda held: held | old)
    load(hub.resolve(str(folder)))
    change(folder / CONFIG, vocab_size=500)
    go("has other shapes for", "model.embed_tokens.weight")


def test_an_encoders_tensors_that_do_not_fit_are_refused(sentences):
    encoder = SentenceEncoder(hub.resolve(str(sentences)))
    assert encoder.encode(["a"]).shape == (1, 8)
    tensors(sentences, lambda held: {k: t for k, t in held.items() if "pooler" not in k})
    SentenceEncoder(hub.resolve(str(sentences))).encode(["a"])
    tensors(sentences, lambda held: {k: t for k, t in held.items() if ".1.attention" not in k})
    weights = hub.resolve(str(sentences))
    refused(lambda: SentenceEncoder(weights).encode(["a"]), "lacks 'encoder.layer.1.attention")
    refused(lambda: sequence_classifier(weights), "lacks 'bert.encoder.layer.1.attention")


def test_an_encoder_that_fails_only_in_use_is_one_sentence(sentences):
    change(sentences / "2_Dense" / CONFIG, module_input_name=[1])
    weights = hub.resolve(str(sentences))
    refused(lambda: SentenceEncoder(weights).encode(["a"]), str(sentences), "cannot be loaded")


# ------------------------------------------------------------------- damaged files


def damage(folder, name):
    file = folder / name
    match name:
        case "index":
            (folder / WEIGHTS).rename(folder.parent / "out.safetensors")
            named = {"weight_map": {"a": "../out.safetensors"}}
            (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(named))
            return "'../out.safetensors' is no file of safetensors beside it"
        case "pickle":
            (folder / WEIGHTS).rename(folder / "pytorch_model.bin")
            return "only pickles (pytorch_model.bin)"
        case "pointer":
            (folder / WEIGHTS).write_text(
                "version https://git-lfs.github.com/spec/v1\noid sha256:4"
            )
            return "not a whole file of safetensors"
        case "negative":
            header = json.dumps({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})
            data = struct.pack("<Q", len(header)) + header.encode() + bytes(4)
            (folder / WEIGHTS).write_bytes(data)
            return "not a whole file of safetensors"
        case "huge":
            (folder / WEIGHTS).write_bytes(struct.pack("<Q", 1 << 62))
            return "not a whole file of safetensors"
        case "gptq" | "bitsandbytes" | "fp8" | "compressed-tensors":
            change(folder / CONFIG, quantization_config={"quant_method": name})
            return f"quantised weights ({name}) are not read"
        case "adapter_config.json":
            file.write_text('{"base_model_name_or_path": "/elsewhere"}')
            return "names a base that lies elsewhere"
        case "config-of-a-list":
            (folder / CONFIG).write_text("[]")
            return "an object wanted"
        case "size":
            change(folder / CONFIG, hidden_size="wide")
            return "cannot be loaded"
    file.write_bytes(file.read_bytes()[: -max(40, file.stat().st_size // 3)])
    return f"/{name}: "


@pytest.mark.parametrize(
    "name",
    ["index", "pickle", "pointer", "negative", "huge", "gptq", "bitsandbytes", "fp8",
     "compressed-tensors", "adapter_config.json", "config-of-a-list", "size", WEIGHTS, CONFIG,
     "generation_config.json", "tokenizer.json", "tokenizer_config.json"],
)  # fmt: skip
def test_a_damaged_folder_is_found_when_it_is_named(folder, name):
    words = damage(folder, name)
    refused(lambda: hub.resolve(str(folder)), str(folder), words)


@pytest.mark.parametrize(
    ("name", "facts", "words"),
    [
        ("sentence_bert_config.json", None, "not JSON"),
        ("modules.json", [{"type": "os.system", "path": ""}], "'os.system' is not loaded"),
        ("modules.json", [{"type": "sentence_transformers.models.Pooling", "path": "../x"}],
         "'../x' is no folder"),
        ("modules.json", [7], "is not loaded"),
        ("modules.json", None, "not JSON"),
        ("2_Dense/model.safetensors", "pickle", "only pickles (pytorch_model.bin)"),
    ],
)  # fmt: skip
def test_a_damaged_encoder_is_found_when_it_is_named(sentences, name, facts, words):
    """Without loading it, which takes seconds and waits for the first text."""
    file = sentences / name
    if facts == "pickle":
        file.rename(file.with_name("pytorch_model.bin"))
    elif isinstance(facts, dict):
        change(file, **facts)
    else:
        file.write_text("{" if facts is None else json.dumps(facts))
    refused(lambda: hub.resolve(str(sentences)), words)


def test_a_model_that_does_not_write_text_alone_is_refused(folder):
    change(folder / CONFIG, model_type="qwen2_5_vl")
    refused(lambda: load(hub.resolve(str(folder))), "qwen2_5_vl", "causal language model")


@pytest.mark.parametrize(
    ("name", "facts", "words"),
    [
        ("tokenizer_config.json", {"model_max_length": "long"}, "cannot be loaded"),
        ("generation_config.json", {"eos_token_id": {"a": 1}}, "eos_token_id is {'a': 1}"),
    ],
)
def test_settings_that_fail_only_in_use_are_found_at_load(folder, name, facts, words):
    change(folder / name, **facts)
    refused(lambda: LocalReader(hub.resolve(str(folder))), words)


def test_a_tokenizer_with_more_words_than_the_model_is_refused(folder):
    def cut(held):
        return held | {k: held[k][:390].clone() for k in held if "embed" in k or "head" in k}

    change(folder / CONFIG, vocab_size=390)
    tensors(folder, cut)
    refused(lambda: load(hub.resolve(str(folder))), "400 tokens, and the model embeddings for 390")


def test_an_added_token_without_an_embedding_is_the_calls_fault():
    made = tiny.loaded()
    made.tokenizer.add_tokens(["<image>"], special_tokens=True)
    reader = LocalReader(made)
    found, whole = reader.generate(
        [
            Generate(Prompt.from_segments("a", Marker("<image>")), 2),
            Generate(Prompt.from_segments("a"), 2),
        ]
    )
    assert "no embedding for: 400" in str(found)
    assert whole.tokens


# ----------------------------------------------------------------- the self-check


def other(kind: str):
    """Tiny models whose attention is not ours."""
    import transformers as t

    common = {
        "vocab_size": 400, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
        "initializer_range": 0.25,
    }  # fmt: skip
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    bare = {key: value for key, value in common.items() if key != "num_key_value_heads"}
    return {
        "differences": lambda: t.DiffLlamaConfig(**common),
        "sinks": lambda: t.GptOssConfig(**common, **experts, head_dim=16, sliding_window=12),
        "looks both ways": lambda: t.BertConfig(**bare),
        "no plan": lambda: t.NemotronConfig(**common),
    }[kind]()


@pytest.mark.parametrize("kind", ["differences", "sinks", "looks both ways", "no plan"])
def test_models_whose_attention_is_not_ours_are_refused_at_load(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path))
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(other(kind)).eval()
        for parameter in model.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape)
    weights = Weights("other", tmp_path, "safetensors", kind, "", "")
    for _ in range(2):  # what was refused is not kept
        refused(
            lambda: LocalReader(Loaded(model, tiny.tokenizer(), weights)),
            "our attention",
            "take another reader",
        )


@pytest.mark.parametrize("window", [12, 4096])
def test_a_model_that_hides_its_window_is_refused(window, tmp_path, monkeypatch):
    """Whatever the window's width: a question longer than it would be read another way."""
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path))
    made = tiny.loaded("qwen2", sliding_window=window)
    LocalReader(made)
    for layer in made.model.model.layers:
        layer.self_attn.sliding_window = None
    made.model.config.pad_token_id = 1  # else it is known already
    refused(lambda: LocalReader(made), "something else than its own plain pass")


def test_what_was_checked_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path))
    checked = []
    verify = Passes.verify
    monkeypatch.setattr(Passes, "verify", lambda self: checked.append(1) or verify(self))
    for _ in range(3):
        tiny.reader()
    assert len(checked) == 1
    tiny.reader("llama", 1)
    tiny.reader("gemma2")
    assert len(checked) == 3


def test_a_half_precision_model_passes(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path))
    for dtype in ("bfloat16", "float16"):
        LocalReader(hub.resolve(str(folder)), dtype=dtype)


def test_a_text_and_image_model_answers_in_text(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path))
    import transformers as t

    eyes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1,
            "num_attention_heads": 2, "image_size": 28, "patch_size": 14}  # fmt: skip
    words = tiny.config("gemma3").to_dict() | {"final_logit_softcapping": None}
    config = t.Gemma3Config(text_config=words, vision_config=eyes, mm_tokens_per_image=4)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = t.AutoModelForCausalLM.from_config(config).eval()
    weights = Weights("eyes", tmp_path, "safetensors", "eyes", "", "")
    reader = LocalReader(Loaded(model, tiny.tokenizer(), weights))
    prompt = Prompt.from_segments("The capital of France is Paris, and the capital of Italy is")
    ids = list(reader.codec.encode(prompt).tokens)
    made = reader.generate([Generate(prompt, 12)])[0]
    assert list(made.tokens) == tiny.plain_greedy(model, ids, 12, reader._decoder.ends)


def test_an_unreadable_model_is_a_weights_error(folder):
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": 7}')
    with pytest.raises(WeightsError, match="cannot be loaded"):
        load(hub.resolve(str(folder)))
