"""Weights into memory: causal models, and encoders of sentences."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rag_repro.bars import Bar
from rag_repro.lm.hub import PACKAGES
from rag_repro.lm.weights import ADAPTER, Weights, loading, refuse_gaps, settings_of
from rag_repro.schema.errors import ReaderError, WeightsError
from rag_repro.words import nearest

DTYPES = ("float32", "bfloat16", "float16", "nf4")
DEVICES = ("cpu", "cuda", "mps")
_LOCAL = {"local_files_only": True, "trust_remote_code": False}


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A causal model and its tokenizer in memory, with where they came from."""

    model: Any
    tokenizer: Any
    weights: Weights
    dtype: str = "float32"


def device_of(device: str) -> str:
    """The device of that name; "auto": the best that is here, of cuda, mps and cpu.

    ReaderError where it is no device's name, as "cpu", "cuda:1", or PyTorch sees none such.
    """
    import torch

    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    kind, _, number = device.partition(":")
    if kind not in DEVICES or (number and not (kind == "cuda" and number.isdecimal())):
        raise ReaderError(
            f"there is no device {device!r}{nearest(kind, DEVICES)}; "
            f"there are: auto, {', '.join(DEVICES)}, and cuda:1 and so on for further ones"
        )
    if kind == "cuda" and not torch.cuda.is_available():
        raise ReaderError(
            f"device {device!r} wanted, but this PyTorch sees no CUDA device; take cpu or auto"
        )
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise ReaderError(
            f"device {device!r} wanted, but the last of the {torch.cuda.device_count()} CUDA "
            f"devices here is cuda:{torch.cuda.device_count() - 1}"
        )
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ReaderError(f"device {device!r} wanted, but this PyTorch sees no Apple GPU; take cpu")
    return device


def fast_bfloat16(device: str) -> bool:
    """Whether the device computes in bfloat16 at least as fast as in float32.

    An x86 processor without AMX does not: a product of matrices takes twice as long where it has
    AVX-512's bfloat16, and five times where it has none.
    """
    import torch

    kind = device.partition(":")[0]
    if kind == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if kind == "cpu":
        if platform.machine() in ("x86_64", "AMD64"):
            return torch.cpu._is_amx_tile_supported()
        return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return True


def load(weights: Weights, device: str = "cpu", dtype: str = "float32") -> Loaded:
    """A causal model and its tokenizer. ReaderError: a dtype, device or model we cannot use."""
    if dtype not in DTYPES:
        raise ReaderError(
            f"unknown dtype {dtype!r}{nearest(dtype, DTYPES)}; known are {', '.join(DTYPES)}"
        )
    device = device_of(device)
    import torch
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, AutoModelForCausalLM

    if weights.base is not None:
        return _adapted(weights, device, dtype)
    tokenizer = tokenizer_of(weights)
    how = {**_LOCAL, "use_safetensors": True}
    if dtype == "nf4":
        how |= _nf4(device)
    else:
        how["dtype"] = getattr(torch, dtype)
    with loading(weights.path):
        config = AutoConfig.from_pretrained(weights.path, **_LOCAL)
        if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
            raise ReaderError(
                f"{weights.path}: a {config.model_type} model does not write text alone; "
                "take a causal language model"
            )
        model, info = AutoModelForCausalLM.from_pretrained(
            weights.path,
            config=config,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **how,
        )
    refuse_gaps(weights.path, info)
    if tokenizer.vocab_size > (rows := len(model.get_input_embeddings().weight)):
        raise WeightsError(
            f"{weights.path}: the tokenizer has {tokenizer.vocab_size} tokens, and the model "
            f"embeddings for {rows}; fetch or save both together again"
        )
    if dtype != "nf4":
        model = model.to(device)
    return Loaded(model.eval(), tokenizer, weights, dtype)


def tokenizer_of(weights: Weights) -> Any:
    """A causal model's tokenizer alone; of what was trained that of its base."""
    from transformers import AutoTokenizer

    while weights.base is not None:
        weights = weights.base
    with loading(weights.path):
        made = AutoTokenizer.from_pretrained(weights.path, **_LOCAL)
        made("a")  # some settings fail only here
        return made


def _adapted(weights: Weights, device: str, dtype: str) -> Loaded:
    """A base with its adapter added into the weights, so that reading costs no more than before.

    Without one (what was trained is a former alone) the base stays as it is.
    """
    if not (weights.path / ADAPTER).is_file():
        return replace(load(weights.base, device, dtype), weights=weights)
    if dtype == "nf4":
        raise ReaderError(
            f"{weights.name}: an adapter cannot be added into four-bit weights; "
            "take --dtype bfloat16, or train it over four bits (a recipe's dtype: nf4)"
        )
    base = load(weights.base, device, dtype)
    with loading(weights.path):
        from peft import PeftModel

        model = PeftModel.from_pretrained(base.model, weights.path).merge_and_unload()
    return Loaded(model.eval(), base.tokenizer, weights, dtype)


def _nf4(device: str) -> dict[str, Any]:
    """Four-bit weights: bitsandbytes' normal floats, computed in bfloat16."""
    import importlib.util

    if importlib.util.find_spec("bitsandbytes") is None:
        raise ReaderError("dtype 'nf4' needs bitsandbytes: pip install 'rag-repro[gpu]'")
    import torch
    from transformers import BitsAndBytesConfig

    settings = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )
    return {"quantization_config": settings, "device_map": {"": device}}


def check(model) -> None:
    """ReaderError where our attention would not be the model's own."""
    name, config = type(model).__name__, model.config.get_text_config()
    if not getattr(model, "_supports_attention_backend", False):
        raise ReaderError(f"{name} does not take attention from outside: it cannot be traced")
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = {rope.get("rope_type")} | {
        part.get("rope_type") for part in rope.values() if isinstance(part, dict)
    }
    if kinds & {"dynamic", "longrope"}:
        raise ReaderError(
            f"{name}: its position code depends on the longest row of a batch, "
            "so rows would influence one another"
        )
    if not isinstance(getattr(config, "max_position_embeddings", None), int):
        raise ReaderError(f"{name}: its config.json has no max_position_embeddings")
    if getattr(config, "attention_chunk_size", None):
        raise ReaderError(f"{name}: chunked attention is not supported")
    types = set(getattr(config, "layer_types", None) or ()) - {
        "full_attention",
        "sliding_attention",
    }
    if types:
        raise ReaderError(f"{name}: layers of kind {', '.join(sorted(types))} are not supported")


MANY = 256
"""Texts whose encoding shows its progress: on a slow core a few seconds of work."""


class SentenceEncoder:
    """Texts to unit vectors with a sentence-transformers model.

    A text's tokens beyond `max_tokens` (MiniLM: 256, with its two marks) are not read. The model
    is loaded when it is first needed: to know an index by its encoder's fingerprint needs none.
    """

    def __init__(self, weights: Weights, *, device: str = "cpu", batch_size: int = 64):
        if weights.kind != "safetensors":
            raise ReaderError(f"{weights.name}: an encoder needs safetensors, not {weights.kind}")
        self._device = device_of(device)
        self.weights = weights
        self.name = weights.name
        self.batch_size = batch_size
        self.fingerprint = f"encoder:{weights.sha256}:{self.max_tokens}:normalised:{self._device}"

    @cached_property
    def _model(self) -> Any:
        with loading(self.weights.path):
            from sentence_transformers import SentenceTransformer

            made = SentenceTransformer(
                str(self.weights.path),
                device=self._device,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
            if self.name not in PACKAGES:
                made.encode(["a"], show_progress_bar=False)  # some settings fail only here
                # It does not say what the files lacked, so they are loaded a second time.
                _, info = type(made[0].auto_model).from_pretrained(
                    self.weights.path, output_loading_info=True, ignore_mismatched_sizes=True
                )
                refuse_gaps(self.weights.path, info, encoder=True)
        return made

    @cached_property
    def max_tokens(self) -> int:
        """As its own settings say, or, where they are silent, the loaded model."""
        settings = self.weights.path / "sentence_bert_config.json"
        if settings.is_file():
            told = settings_of(settings).get("max_seq_length")
            if told is not None:
                return int(told)
        return self._model.max_seq_length

    @property
    def width(self) -> int:
        return self._model.get_embedding_dimension()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (texts, width), each row of length 1."""
        if not len(texts):
            return np.zeros((0, self.width), dtype=np.float32)
        if len(texts) < MANY:
            return self._encoded(texts)
        with Bar(total=len(texts), desc=f"encoding with {self.name}", unit="text") as bar:
            # Its first part sees each batch; the batches stay as they are, and so do the vectors.
            def count(module: Any, given: Any, made: Any) -> None:
                bar.update(len(given[0]["input_ids"]))  # what a hook returns, goes on in its place

            hook = self._model[0].register_forward_hook(count)
            try:
                return self._encoded(texts)
            finally:
                hook.remove()

    def _encoded(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self._model.encode(
            list(texts),
            batch_size=self.batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return vectors.astype(np.float32, copy=False)

    def __repr__(self) -> str:
        return f"SentenceEncoder({self.name}, width {self.width})"
