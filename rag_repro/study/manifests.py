"""Manifests: which machine, versions and commit made a record, one entry a run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from .conditions import Condition
from .records import SHARD

# The packages whose version can move a result.
PACKAGES = (
    "torch",
    "transformers",
    "sentence-transformers",
    "faiss-cpu",
    "bm25s",
    "rank-bm25",
    "numpy",
    "peft",
)


ENDING = ".manifest.json"


def read(results: Path, condition: Condition) -> list[dict[str, Any]]:
    """The entries of a condition's record, oldest first; none where nobody has run it."""
    file = results / (condition.path + ENDING)
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []


@contextmanager
def written(
    results: Path, condition: Condition, shard: str = "", **facts: Any
) -> Iterator[dict[str, Any]]:
    """An entry for the run inside the block; kept only if it recorded a question.

    A shard's entry waits in a file of its own, since shards may run at once.
    """
    entry: dict[str, Any] = {"start": _now(), "questions": 0, **environment(), **facts}
    try:
        yield entry
    finally:
        if entry["questions"]:
            entry |= {"end": _now(), "shard": shard} if shard else {"end": _now()}
            _add(results / (condition.path + (SHARD + shard if shard else "") + ENDING), [entry])


def absorb(results: Path, condition: Condition) -> None:
    """Join the entries of finished shards into the condition's manifest."""
    whole = results / (condition.path + ENDING)
    for file in sorted(whole.parent.glob(f"{Path(condition.path).name}{SHARD}*{ENDING}")):
        _add(whole, json.loads(file.read_text(encoding="utf-8")))
        file.unlink()


def _add(file: Path, entries: list[dict[str, Any]]) -> None:
    earlier = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    part = file.with_name(file.name + ".part")
    text = json.dumps([*earlier, *entries], indent=1, sort_keys=True)
    part.write_text(text + "\n", encoding="utf-8")
    part.replace(file)


def environment() -> dict[str, Any]:
    """The machine in words, versions of what can move a result, and the commit."""
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "packages": versions(),
        "commit": commit(),
    }


def machine() -> str:
    """As "x86_64, 2 cores, Linux"; the GPU's name where torch was loaded and has one."""
    parts = [platform.machine(), f"{os.cpu_count()} cores", platform.system()]
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(parts)


def versions() -> Mapping[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """The checkout's commit, "+" behind it where files differ; None outside one."""
    here = Path(__file__).parent
    try:
        head = _git(here, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git(here, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
