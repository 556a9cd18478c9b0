"""What a file holds, in one number."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256(path: Path) -> str:
    """Hex digest of the file's bytes as they are stored."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
