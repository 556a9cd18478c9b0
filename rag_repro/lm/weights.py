"""Files of weights: what a folder must hold, what names it, and how other files become one.

Safetensors are read (GGUF is converted once), never pickles; a model's own code is never run.
All that a model is loaded from is checked when it is named, and counts for its identity.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_repro.digest import sha256
from rag_repro.plain import PlainError, from_json, shortened, text_of
from rag_repro.schema.errors import ReaderError, WeightsError

ADAPTER = "adapter_model.safetensors"
FORMER = "former.safetensors"
"""What training makes: low-rank matrices (or a classifier's), an R²-Former, or both."""

_LOADED = {".safetensors", ".json", ".txt", ".model", ".jinja", ".spm", ".tiktoken", ".bpe"}
_PICKLES = {".bin", ".pt", ".pth", ".ckpt", ".pkl"}
_INDEX = "model.safetensors.index.json"
_MODULES = {"Transformer", "Pooling", "Normalize", "Dense"}
# Buffers that older checkpoints hold and that are computed today.
_BUFFERS = re.compile(r"(rotary_emb\.inv_freq|attn\.(masked_)?bias|attention\.bias|position_ids)$")
_HEAD = re.compile(r"(^|\.)(pooler|\w*classifier|classification_head|score)\.")
_LAYER = re.compile(r"\.\d+\.")


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights that a reader or an encoder can load.

    path: a folder; kind: "safetensors", or "adapter": of what was trained over `base`.
    sha256: of the weights as a package shipped them; of a folder's: of the names and
    hashes of all files that are loaded. note: what a user of the numbers should know.
    """

    name: str
    path: Path
    kind: str
    sha256: str
    source: str
    licence: str
    note: str = ""
    base: Weights | None = None


# ------------------------------------------------------------------------- loading


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' own progress bars, which are debris in stored output.

    And without its word to peft, which still asks for a name that will go, nor bitsandbytes' on a
    package that would make it faster, which peft draws in where it is installed.
    """
    from transformers.utils import logging as shown_by

    shown, four_bits = shown_by.is_progress_bar_enabled(), logging.getLogger("bitsandbytes")
    level = four_bits.level
    shown_by.disable_progress_bar()
    four_bits.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
            yield
    finally:
        four_bits.setLevel(level)
        if shown:
            shown_by.enable_progress_bar()


@contextmanager
def loading(path: Path) -> Iterator[None]:
    """Quiet; what a library raises becomes a WeightsError that names the file or folder.

    Nor does transformers report tensors that do not fit: `refuse_gaps` says which may not.
    """
    from transformers.utils import logging as said_by

    level = said_by.get_verbosity()
    said_by.set_verbosity_error()
    try:
        with quiet():
            # peft only warns of tensors that an adapter lacks.
            warnings.filterwarnings("error", "Found missing adapter keys")
            yield
    except (ReaderError, MemoryError):
        raise
    except Exception as error:  # each library has its own, and tokenizers a bare Exception
        if "OutOfMemory" in type(error).__name__:
            raise
        raise WeightsError(
            f"{path}: cannot be loaded ({_words(error)}); fetch or save the model again"
        ) from error
    finally:
        said_by.set_verbosity(level)


def refuse_gaps(path: Path, info: Any, encoder: bool = False) -> None:
    """WeightsError where transformers would fill tensors at random or leave some out.

    info: its loading info. encoder: loaded as one, so that other heads may be left over, and a
    pooler or a classifier's head, which training makes, may be lacking.
    """
    lacking = {n for n in info["missing_keys"] if not (encoder and _HEAD.search(n))}
    over = {n for n in info["unexpected_keys"] if not _BUFFERS.search(n)}
    if encoder:
        over = {name for name in over if _LAYER.search(name)}
    other = {n for n, *_ in info["mismatched_keys"] if not (encoder and _HEAD.search(n))}
    for names, what in ((lacking, "lacks"), (other, "has other shapes for"), (over, "also holds")):
        if names:
            raise WeightsError(
                f"{path}: the checkpoint {what} {min(names)!r}, {len(names)} tensor(s) in all that "
                "do not fit its config.json; fetch or save the model again"
            )


def _words(error: Exception) -> str:
    return shortened(" ".join(str(error).split()) or type(error).__name__)


# ---------------------------------------------------------------- what a folder holds


def check_config(folder: Path) -> None:
    """WeightsError where a model's config.json says that it is none of those that we load."""
    file = folder / "config.json"
    if not file.is_file():
        raise WeightsError(f"{folder}: no config.json, so no model")
    config = settings_of(file)
    from transformers import CONFIG_MAPPING

    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        why = "it needs remote code: not run" if "auto_map" in config else "transformers lacks it"
        raise WeightsError(f"{folder}: model type {kind!r}: {why}; take another model")
    for part in (config, *(value for value in config.values() if isinstance(value, dict))):
        if told := part.get("quantization_config") or part.get("compression_config"):
            how = told.get("quant_method") if isinstance(told, dict) else told
            raise WeightsError(
                f"{file}: quantised weights ({shortened(how)}) are not read; take the model's "
                "plain weights, with --dtype nf4 for four bits"
            )
    if config.get("transformers_weights"):
        raise WeightsError(
            f"{file}: transformers_weights is not followed; name the weights model.safetensors"
        )


def check_folder(folder: Path) -> None:
    """WeightsError where a model's folder is damaged or not of a kind that we load.

    No tensor is read: the settings are, and the headers of the files of weights.
    """
    check_config(folder)
    if (folder / "adapter_config.json").is_file():
        raise WeightsError(
            f"{folder}: adapter_config.json names a base that lies elsewhere; take the whole "
            f"model, or put {ADAPTER} and a card.json beside it"
        )
    from transformers import AutoConfig

    with loading(folder / "config.json"):
        AutoConfig.from_pretrained(folder, local_files_only=True)
    index, names = folder / _INDEX, {"model.safetensors"}
    if not (folder / "model.safetensors").is_file():
        if not index.is_file():
            raise WeightsError(_no_safetensors(folder))
        named = settings_of(index).get("weight_map")
        names = set(map(str, named.values())) if isinstance(named, dict) else {""}
    for name in names:
        if name != Path(name).name or not (folder / name).is_file():
            raise WeightsError(
                f"{index}: {name!r} is no file of safetensors beside it; fetch the model again"
            )
    for file in files_of(folder):
        if file.suffix == ".safetensors":
            _check_header(file)
        elif file.name.endswith("config.json"):
            settings_of(file)
        elif file.suffix == ".json":
            _json(file)


def _modules(folder: Path) -> list[Path]:
    """The folders of a sentence-transformers model's modules, its own left out."""
    file = folder / "modules.json"
    if not file.is_file():
        return []
    listed, made = _json(file), []
    for module in listed if isinstance(listed, list) else [None]:
        kind, path = (module.get(k) if isinstance(module, dict) else None for k in ("type", "path"))
        bare = str(kind).rpartition(".")[2]
        if not (str(kind).startswith("sentence_transformers.") and bare in _MODULES):
            raise WeightsError(
                f"{file}: a module of kind {shortened(repr(kind))} is not loaded; there are "
                f"{', '.join(sorted(_MODULES))} of sentence_transformers"
            )
        if not isinstance(path, str) or path != Path(path).name:
            raise WeightsError(f"{file}: {path!r} is no folder beside it; mend the file")
        inner = folder / path
        if bare == "Dense" and not (inner / "model.safetensors").is_file():
            raise WeightsError(_no_safetensors(inner))
        if path:
            made.append(inner)
    return made


def files_of(folder: Path) -> list[Path]:
    """All files that a model may be loaded from: weights, settings, tokenizer, templates."""
    inner = [*_modules(folder), *(folder.glob("*chat_templates"))]
    return sorted(
        file
        for place in (folder, *inner)
        for file in place.glob("*")
        if file.suffix in _LOADED and file.is_file()
    )


def _check_header(file: Path) -> None:
    """WeightsError where a file of safetensors is cut or is none."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "np"):
            pass
    except (SafetensorError, OSError) as error:
        raise WeightsError(
            f"{file}: not a whole file of safetensors ({_words(error)}); fetch it again"
        ) from error


def _json(file: Path) -> Any:
    try:
        return from_json(text_of(file))
    except (PlainError, OSError) as error:
        raise WeightsError(f"{file}: {_words(error)}; fetch or save the model again") from None


def settings_of(file: Path) -> dict[str, Any]:
    """The object in a JSON file. WeightsError: damaged, or none."""
    made = _json(file)
    if not isinstance(made, dict):
        raise WeightsError(f"{file}: an object wanted, found {type(made).__name__}; mend the file")
    return made


def _no_safetensors(folder: Path) -> str:
    pickles = sorted(path.name for path in folder.glob("*") if path.suffix in _PICKLES)
    why = f"only pickles ({pickles[0]}), which are never read" if pickles else "none"
    return f"{folder}: safetensors wanted, found {why}; convert the weights first"


# ------------------------------------------------------------------------ identity


def sha256_of_folder(folder: Path) -> str:
    """Of its safetensors files alone: what names an artifact that we trained."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise WeightsError(_no_safetensors(folder))
    return _hash(files[0]) if len(files) == 1 else listed(files, folder)


def identity(folder: Path) -> str:
    """Of the names and contents of all files that a model or adapter is loaded from."""
    return listed(files_of(folder), folder)


def listed(files: Iterable[Path], folder: Path) -> str:
    """One hash of the files' names, from their folder, and contents."""
    lines = "".join(f"{f.relative_to(folder).as_posix()} {_hash(f)}\n" for f in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()


def _hash(file: Path) -> str:
    """The hash of a file, computed once a process while it stays as it is."""
    at = file.stat()
    return _hashed(file, at.st_size, at.st_mtime_ns, at.st_ino)


@functools.lru_cache(4096)
def _hashed(file: Path, *_: int) -> str:
    return sha256(file)
