"""Weights into memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rag_repro.lm.weights import ADAPTER, Weights, loading, refuse_gaps
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

    A processor without AVX-512 does not: it takes five times as long for a product of matrices.
    """
    import torch

    kind = device.partition(":")[0]
    if kind == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if kind == "cpu":
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
