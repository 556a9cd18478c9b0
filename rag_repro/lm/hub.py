"""From a name to weights on this machine.

A name is one of `PACKAGES` (weights inside an installed package), a folder, one of
`PRESETS`, or `hub:owner/name@revision`. Only the last two touch the network. What counts
as weights is safetensors or GGUF; pickles are never read, code never run.

An adapter's folder holds peft's `adapter_config.json` and `adapter_model.safetensors`,
and our `card.json`, which names the base weights by their hash: an adapter
trained on one file is refused on another, however alike their names.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import logging
import math
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from rag_repro.bars import Bar
from rag_repro.digest import sha256, write_whole
from rag_repro.lm.weights import (
    ADAPTER,
    FORMER,
    Weights,
    check_config,
    check_folder,
    identity,
    settings_of,
    sha256_of_folder,
)
from rag_repro.plain import PlainError, fits, from_json, shortened, text_of
from rag_repro.schema.errors import WeightsError
from rag_repro.words import choices


@dataclass(frozen=True, slots=True)
class Package:
    """A package with weights in it.

    file: of the weights, from the module's folder (None: the module's `assemble` makes it).
    remedy: how to install it. also: modules that it takes to read the file.
    note: what a user of the numbers should know.
    """

    distribution: str
    module: str
    file: str | None
    sha256: str
    remedy: str
    licence: str
    note: str
    also: tuple[str, ...] = ()

    @property
    def lacks(self) -> bool:
        return any(importlib.util.find_spec(module) is None for module in (self.module, *self.also))

    @property
    def source(self) -> str:
        if self.file is None:
            return f"{self.module}, {self.path().name}"
        told = f"{self.distribution} {importlib.metadata.version(self.distribution)}"
        file = Path(self.file)
        return told if file.suffix == ".safetensors" else f"{told}, {file.name}"

    def path(self) -> Path:
        """The file of weights, found without importing the package where it lies there as it is."""
        if self.file is None:
            return Path(importlib.import_module(self.module).assemble())
        spec = importlib.util.find_spec(self.module)
        return Path(next(iter(spec.submodule_search_locations))) / self.file


_GIVEN = yaml.safe_load((Path(__file__).parent / "packages.yaml").read_text(encoding="utf-8"))
PACKAGES = {name: Package(**fields) for name, fields in _GIVEN.items()}


def lacking(name: str | None) -> bool:
    """Whether weights of this name come with a package that is not installed here."""
    return name in PACKAGES and PACKAGES[name].lacks


def checked(name: str) -> Path:
    """The file of a package's weights. WeightsError: not installed, no such file, or another."""
    package = PACKAGES[name]
    if importlib.util.find_spec(package.module) is None:
        raise WeightsError(
            f"weights {name!r} come with the package {package.distribution}: {package.remedy}"
        )
    path = package.path()
    if not path.is_file():
        raise WeightsError(f"{path}: no such file; reinstall the package that holds it")
    found = sha256(path)
    if found != package.sha256:
        raise WeightsError(
            f"{path.name}: SHA-256 is {found}, expected {package.sha256}; "
            "the file is damaged or another version: reinstall the pinned package"
        )
    return path


log = logging.getLogger(__name__)

CACHE_VARIABLE = "RAG_REPRO_CACHE"


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


def _shipped(name: str, cache: Path) -> Weights:
    """What an installed package ships, converted once where it is no folder of safetensors."""
    from rag_repro.lm.convert import converted

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
        check_folder(folder)
        made = identity(folder)
        return Weights(name, folder.resolve(), "safetensors", made, "a local folder", "unknown")
    raise _unknown(name)


def check_name(name: str) -> None:
    """Raise WeightsError, with the nearest name, where `resolve` would know none such."""
    known = name.startswith("hub:") or name in {*PACKAGES, *PRESETS, *artifacts()}
    if not known and not _expanded(name).is_dir():
        raise _unknown(name)


def _unknown(name: str) -> WeightsError:
    known = [*PACKAGES, *PRESETS, *artifacts()]
    return WeightsError(
        f"no weights named {name!r}{choices(name, known)}, and also an existing folder, and "
        "hub:owner/name@revision"
    )


ARTIFACTS_VARIABLE = "RAG_REPRO_ARTIFACTS"
_INSTALLED = Path(__file__).parents[1] / "artifacts"  # which setup.py puts into a wheel


def artifacts_folder() -> Path:
    """What RAG_REPRO_ARTIFACTS names, else the checkout's `artifacts/`, else the package's own."""
    named = os.environ.get(ARTIFACTS_VARIABLE)
    if named:
        return _expanded(named)
    return _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[2] / "artifacts"


def local_artifacts_folder() -> Path:
    """Where adapters go that are not committed: other seeds, variants of a recipe."""
    return _own_folder() / "results" / "local" / "artifacts"


def _own_folder() -> Path:
    """Around what is trained here: the checkout; of an installed package the cache."""
    folder = artifacts_folder()
    return cache_folder() if folder == _INSTALLED else folder.parent


def cards_folder() -> Path:
    """Where the cards and curves of such stay when their weights do not: they are committed."""
    return _own_folder() / "results" / "cards"


def artifacts() -> dict[str, Path]:
    """What was trained, by name, local ones too; of equal names the committed one counts."""
    return {
        path.name: path
        for folder in (local_artifacts_folder(), artifacts_folder())
        for path in sorted(folder.glob("*"))
        if trained_files(path)
    }


def is_artifact(folder: Path) -> bool:
    """Whether it lies in a folder of artifacts, where weights alone name it: records hold that."""
    known = (local_artifacts_folder(), artifacts_folder())
    return folder.resolve().parent in [place.resolve() for place in known]


def digest_of(folder: Path) -> str:
    """What names an adapter: of an artifact its weights, of another folder all that is loaded."""
    return sha256(folder / ADAPTER) if is_artifact(folder) else identity(folder)


def trained_files(folder: Path) -> list[Path]:
    """The weights in an artifact's folder; none: it is no artifact, or not finished."""
    return [folder / name for name in (ADAPTER, FORMER) if (folder / name).is_file()]


def numbers_in(folder: Path) -> int:
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
    card = card_of(folder)
    base = resolve(card["base"]["name"], cache=cache)
    check_base(card, base, folder)
    trained = sha256_of_folder(folder) if is_artifact(folder) else identity(folder)
    digest = hashlib.sha256(f"{base.sha256} {trained}".encode()).hexdigest()
    source = f"adapter {folder.name} over {base.source}"
    return Weights(name, folder.resolve(), "adapter", digest, source, base.licence, base.note, base)


# --------------------------------------------------------------------- from a hub

_NAME = re.compile(r"hub:(?P<repo>[\w.-]+/[\w.-]+)@(?P<revision>[0-9a-f]{40})", re.ASCII)
_WANTED = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "README.md", "LICENSE*"]
# Copies of the weights in other layouts, which some repositories hold besides; an encoder's
# further modules lie in folders that begin with a number.
_UNWANTED = ["[!0-9]*/*.safetensors", "consolidated*"]
_SETTINGS = 64 << 20  # bytes that a model's settings may take


def is_remote(name: str) -> bool:
    """Whether weights of this name (also of an alias in PRESETS) are still to be downloaded."""
    match = _NAME.fullmatch(PRESETS.get(name, name))
    return match is not None and not _card(match, cache_folder()).is_file()


def _card(match: re.Match[str], cache: Path) -> Path:
    """Where is kept which files a repository's commit has."""
    return cache / "hub" / f"{match['repo'].replace('/', '--')}@{match['revision']}.json"


def from_hub(name: str, cache: Path) -> Weights:
    """`hub:owner/name@commit` -> weights in the cache, downloaded if they are not there.

    HF_ENDPOINT names another hub. WeightsError: a name without a full commit,
    no such model, only pickles, a model that needs code of its own.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise WeightsError(
            f"{name!r}: hub:owner/name@commit is wanted, with the commit's 40 hex digits "
            "(branches and tags can move, so a result would not say what it was made with)"
        )
    repo, revision = match["repo"], match["revision"]
    card = _card(match, cache)
    facts = settings_of(card) if card.is_file() else {}
    if "identity" not in facts:  # also a card of a time when it named the weights alone
        folder = _download(repo, revision, cache / "hub")
        check_folder(folder)
        made = identity(folder)
        facts = {"folder": str(folder), "identity": made, "licence": _licence(folder)}
        write_whole(card, json.dumps(facts, indent=1) + "\n")
    folder = Path(str(facts.get("folder")))
    if not folder.is_dir() or identity(folder) != facts["identity"]:
        raise WeightsError(
            f"{folder}: gone or changed since it was downloaded; delete it and {card}"
        )
    source = f"{repo} at {revision[:12]}"
    return Weights(name, folder, "safetensors", facts["identity"], source, str(facts["licence"]))


def _download(repo: str, revision: str, cache: Path) -> Path:
    """No more than the disk has room for, by what the hub announces."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    from huggingface_hub.utils import tqdm

    class Shown(Bar, tqdm):
        """Our bar where the library wants one of its kind."""

    where = {
        "repo_id": repo,
        "revision": revision,
        "cache_dir": cache,
        "endpoint": os.environ.get("HF_ENDPOINT") or None,
    }
    wanted = {"allow_patterns": _WANTED, "ignore_patterns": _UNWANTED}
    log.info("downloading %s at %s", repo, revision)
    try:
        # The configuration first: it says whether the rest is worth fetching.
        for files in ({"allow_patterns": ["config.json"]}, wanted):
            sizes = [f.file_size for f in snapshot_download(**where, **files, dry_run=True)]
            cache.mkdir(parents=True, exist_ok=True)
            room = shutil.disk_usage(cache).free if files is wanted else _SETTINGS
            if min(sizes, default=0) < 0 or sum(sizes) > room:
                raise OSError(f"{sum(sizes)} bytes announced, and there is room for {room}")
            folder = snapshot_download(**where, **files, tqdm_class=Shown)
            check_config(Path(folder))
        return Path(folder)
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = shortened(str(error).strip().splitlines()[0], 300)
        raise WeightsError(
            f"{repo} at {revision[:12]} could not be downloaded: {reason}"
        ) from error


def _licence(folder: Path) -> str:
    """What the model's card declares in its front matter."""
    readme = folder / "README.md"
    head = readme.read_text("utf-8", errors="replace")[:4000] if readme.is_file() else ""
    found = re.search(r"^license:\s*(\S+)", head, re.MULTILINE)
    return found[1] if found else "unknown"


CARD = "card.json"
CURVE = "curve.jsonl"


def write_card(
    folder: str | Path, weights: Weights, facts: Mapping[str, Any] | None = None
) -> None:
    """Name an adapter's base weights beside it, with how it was trained (`facts`, plain data)."""
    card = {
        "base": {"name": weights.name, "sha256": weights.sha256, "note": weights.note},
        **(facts or {}),
    }
    text = json.dumps(card, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    write_whole(Path(folder) / CARD, text)


def card_of(folder: str | Path) -> dict[str, Any]:
    """An adapter's card, which names its base. WeightsError: none, or damaged."""
    path = Path(folder) / CARD
    try:
        card = from_json(text_of(path))
    except FileNotFoundError:
        raise WeightsError(
            f"{path}: no card, so nobody knows the adapter's base; write one with write_card"
        ) from None
    except (PlainError, OSError) as error:
        raise WeightsError(f"{path}: not an adapter's card ({error})") from None
    base = card.get("base") if isinstance(card, dict) else None
    if not fits(base, dict[str, Any]) or not all(
        isinstance(base.get(key), str) for key in ("name", "sha256")
    ):
        raise WeightsError(f"{path}: not an adapter's card (it names no base with its sha256)")
    return card


def check_base(card: Mapping[str, Any], weights: Weights, folder: str | Path) -> None:
    """WeightsError where the adapter with this card was made for another base."""
    base = card["base"]["sha256"]
    if base != weights.sha256:
        raise WeightsError(
            f"{folder}: made for base {card['base']['name']} ({base[:12]}), "
            f"not for {weights.name} ({weights.sha256[:12]}); train it on this base"
        )


def task_of(folder: str | Path) -> str | None:
    """What an adapter was trained for, by its card's recipe ("reader", "pairs" ...); None: untold.

    WeightsError: no card, or a damaged one.
    """
    recipe = card_of(folder).get("recipe")
    task = recipe.get("task") if isinstance(recipe, dict) else None
    return task if isinstance(task, str) else None
