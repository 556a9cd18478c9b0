"""What a file holds in one number, and what is installed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path


def sha256(path: Path) -> str:
    """Hex digest of the file's bytes as they are stored."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def installed(names: Iterable[str]) -> dict[str, str]:
    """The versions of those of these packages that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
