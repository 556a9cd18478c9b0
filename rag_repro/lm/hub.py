"""From a name to weights on this machine.

A name is one of `packaged.PACKAGES` (weights inside an installed package), a folder, one of
`PRESETS`, or `hub:owner/name@revision`. Only the last two touch the network. What counts
as weights is safetensors or GGUF; pickles are never read, code never run.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path

from rag_repro.digest import sha256
from rag_repro.lm.errors import WeightsError
from rag_repro.lm.packaged import PACKAGES, checked
from rag_repro.words import nearest

CACHE_VARIABLE = "RAG_REPRO_CACHE"


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights that a reader or an encoder can load.

    path: a folder (kind "safetensors"; "adapter": of what was trained over `base`) or
    a file (kind "gguf").
    sha256: of the weights as they were shipped; several files: of their
    names and hashes. note: what a user of the numbers should know.
    """

    name: str
    path: Path
    kind: str
    sha256: str
    source: str
    licence: str
    note: str = ""
    base: Weights | None = None


def cache_folder(cache: str | Path | None = None) -> Path:
    """`cache`, else what RAG_REPRO_CACHE names, else ~/.cache/rag-repro.

    WeightsError where the user has no home, as in a container under a bare number.
    """
    named = cache or os.environ.get(CACHE_VARIABLE) or "~/.cache/rag-repro"
    folder = _expanded(named)
    if str(folder).startswith("~"):
        raise WeightsError(
            f"{named}: this user has no home folder; name one for the cache in {CACHE_VARIABLE}"
        )
    return folder


def _expanded(path: str | Path) -> Path:
    """Without the `~` of a user who is known; any other name stays as it is."""
    return Path(os.path.expanduser(path))


def sha256_of_folder(folder: Path) -> str:
    """Of its safetensors files: of the one file, or of all their names and hashes."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        pickles = [*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")]
        why = f"only pickles ({pickles[0].name}), which are never read" if pickles else "none"
        raise WeightsError(f"{folder}: safetensors wanted, found {why}; convert the weights first")
    if len(files) == 1:
        return sha256(files[0])
    listed = "".join(f"{file.name} {sha256(file)}\n" for file in files)
    return hashlib.sha256(listed.encode()).hexdigest()


def _shipped(name: str, cache: Path) -> Weights:
    """What an installed package ships, converted once where it is no folder of safetensors."""
    package, file = PACKAGES[name], checked(name)
    loadable = file.suffix == ".safetensors"
    return Weights(
        name,
        file.parent if loadable else converted(file, package.sha256, cache / name),
        "safetensors",
        package.sha256,
        package.source,
        package.licence,
        package.note,
    )


PRESETS = {
    "qwen2.5-0.5b": "hub:Qwen/Qwen2.5-0.5B-Instruct@7ae557604adf67be50417f59c2c2f167def9a775",
    "qwen2.5-1.5b": "hub:Qwen/Qwen2.5-1.5B-Instruct@989aa7980e4cf806f80c7fef2b1adb7bc71aa306",
}
"""Readers for one GPU, between the shipped one and the papers': downloaded, at these commits."""


def resolve(name: str, *, cache: str | Path | None = None) -> Weights:
    """Find weights by name; presets and `hub:` names download, no other touches the network.

    WeightsError: unknown name, missing package, damaged file, only pickles,
    a model that needs code of its own.
    """
    if name.startswith("hub:"):
        from rag_repro.lm.download import from_hub

        return from_hub(name, cache_folder(cache))
    if name in PRESETS:
        return replace(resolve(PRESETS[name], cache=cache), name=name)
    if name in PACKAGES:
        return _shipped(name, cache_folder(cache))
    trained = artifacts()
    if name in trained:
        return adapted(name, trained[name], cache)
    folder = _expanded(name)
    if trained_files(folder):
        return adapted(name, folder, cache)
    if folder.is_dir():
        return local_folder(name, folder)
    raise _unknown(name)


def check_name(name: str) -> None:
    """Raise WeightsError, with the nearest name, where `resolve` would know none such."""
    known = name.startswith("hub:") or name in {*PACKAGES, *PRESETS, *artifacts()}
    if not known and not _expanded(name).is_dir():
        raise _unknown(name)


def _unknown(name: str) -> WeightsError:
    known = [*PACKAGES, *PRESETS, *artifacts()]
    return WeightsError(
        f"no weights named {name!r}{nearest(name, known)}; known are {', '.join(known)}, "
        "an existing folder, and hub:owner/name@revision"
    )


ADAPTER = "adapter_model.safetensors"
FORMER = "former.safetensors"
"""What training makes: low-rank matrices (or a classifier's), an R²-Former, or both."""

ARTIFACTS_VARIABLE = "RAG_REPRO_ARTIFACTS"


def artifacts_folder() -> Path:
    """What RAG_REPRO_ARTIFACTS names, else the checkout's `artifacts/`."""
    named = os.environ.get(ARTIFACTS_VARIABLE)
    return _expanded(named) if named else Path(__file__).parents[2] / "artifacts"


def local_artifacts_folder() -> Path:
    """Where adapters go that are not committed: other seeds, variants of a recipe."""
    return artifacts_folder().parent / "results" / "local" / "artifacts"


def cards_folder() -> Path:
    """Where the cards and curves of such stay when their weights do not: they are committed."""
    return artifacts_folder().parent / "results" / "cards"


def artifacts() -> dict[str, Path]:
    """What was trained, by name, local ones too; of equal names the committed one counts."""
    return {
        path.name: path
        for folder in (local_artifacts_folder(), artifacts_folder())
        for path in sorted(folder.glob("*"))
        if trained_files(path)
    }


def trained_files(folder: Path) -> list[Path]:
    """The weights in an artifact's folder; none: it is no artifact, or not finished."""
    return [folder / name for name in (ADAPTER, FORMER) if (folder / name).is_file()]


def numbers_in(folder: Path) -> int:
    """How many numbers the files of an artifact hold."""
    from safetensors import safe_open

    shapes = []
    for file in trained_files(folder):
        with safe_open(file, "np") as held:
            shapes += [held.get_slice(key).get_shape() for key in held.keys()]  # noqa: SIM118
    return sum(map(math.prod, shapes))


def adapted(name: str, folder: Path, cache: str | Path | None = None) -> Weights:
    """What was trained with the base that its card names, as one reader's weights.

    WeightsError: no card, another base than the card's, a missing base.
    """
    from rag_repro.lm.adapters import card_of, check_base

    card = card_of(folder)
    base = resolve(card["base"]["name"], cache=cache)
    check_base(card, base, folder)
    digest = hashlib.sha256(f"{base.sha256} {sha256_of_folder(folder)}".encode()).hexdigest()
    source = f"adapter {folder.name} over {base.source}"
    return Weights(name, folder.resolve(), "adapter", digest, source, base.licence, base.note, base)


def local_folder(name: str, folder: Path) -> Weights:
    """A folder as `save_pretrained` writes it."""
    refuse_code(folder)
    return Weights(
        name,
        folder.resolve(),
        "safetensors",
        sha256_of_folder(folder),
        "a local folder",
        "unknown",
    )


def refuse_code(folder: Path) -> None:
    """WeightsError where the model is not one of transformers' own classes."""
    config = folder / "config.json"
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WeightsError(f"{folder}: no config.json, so no model") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise WeightsError(f"{config}: not JSON ({error})") from None
    if not isinstance(settings, dict):
        raise WeightsError(f"{config}: an object wanted, found {type(settings).__name__}")
    from transformers import CONFIG_MAPPING

    kind = settings.get("model_type")
    if kind not in CONFIG_MAPPING:
        why = "it needs remote code: not run" if "auto_map" in settings else "transformers lacks it"
        raise WeightsError(f"{folder}: model type {kind!r}: {why}")


def converted(file: Path, digest: str, folder: Path) -> Path:
    """A GGUF or ONNX file as a folder of safetensors with its tokenizer, made once.

    The folder's name holds the file's hash, and it appears whole or not at all.
    """
    from rag_repro.lm.convert import convert

    target = folder / digest[:16]
    card = target / "card.json"
    if card.is_file():
        size = json.loads(card.read_text(encoding="utf-8"))["bytes"]
        weights = target / "model.safetensors"
        if weights.is_file() and weights.stat().st_size == size:
            return target
        raise WeightsError(f"{target}: the converted weights are damaged; delete the folder")
    convert(file, digest, target)
    return target
