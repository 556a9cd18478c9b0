"""Weights from a model hub, at a pinned commit, without pickles or code."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from pathlib import Path

from rag_repro.lm.errors import WeightsError
from rag_repro.lm.hub import Weights, refuse_code, sha256_of_folder

log = logging.getLogger(__name__)

_NAME = re.compile(r"hub:(?P<repo>[\w.-]+/[\w.-]+)@(?P<revision>[0-9a-f]{40})", re.ASCII)
_WANTED = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "README.md", "LICENSE*"]
# Copies of the weights in other layouts, which some repositories hold besides.
_UNWANTED = ["*/*.safetensors", "consolidated*"]


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
    card = cache / "hub" / f"{repo.replace('/', '--')}@{revision}.json"
    if card.is_file():
        facts = json.loads(card.read_text(encoding="utf-8"))
        folder = Path(facts["folder"])
        if not folder.is_dir():
            raise WeightsError(
                f"{folder}: gone, though {card.name} says it is here; delete the card"
            )
    else:
        folder = _download(repo, revision, cache / "hub")
        facts = {
            "folder": str(folder),
            "sha256": sha256_of_folder(folder),
            "licence": _licence(folder),
        }
        _write(card, json.dumps(facts, indent=1) + "\n")
    source = f"{repo} at {revision[:12]}"
    return Weights(name, folder, "safetensors", facts["sha256"], source, facts["licence"])


def _download(repo: str, revision: str, cache: Path) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    where = {
        "repo_id": repo,
        "revision": revision,
        "cache_dir": cache,
        "endpoint": os.environ.get("HF_ENDPOINT") or None,
    }
    log.info("downloading %s at %s", repo, revision)
    try:
        # The configuration first: it says whether the rest is worth fetching.
        refuse_code(Path(snapshot_download(**where, allow_patterns=["config.json"])))
        return Path(snapshot_download(**where, allow_patterns=_WANTED, ignore_patterns=_UNWANTED))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise WeightsError(
            f"{repo} at {revision[:12]} could not be downloaded: {reason}"
        ) from error


def _licence(folder: Path) -> str:
    """What the model's card declares in its front matter."""
    readme = folder / "README.md"
    if readme.is_file():
        head = readme.read_text(encoding="utf-8", errors="replace")[:4000]
        found = re.search(r"^license:\s*(\S+)", head, re.MULTILINE)
        if found:
            return found[1]
    return "unknown"


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}-", delete=False
    ) as file:
        file.write(text)
    os.replace(file.name, path)
