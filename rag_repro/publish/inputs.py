"""What an executed chapter depends on, and what of it has changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from rag_repro.study import records

# Files of the checkout on which no page depends: caches, what git ignores (and, below, locks).
IGNORED = {".git", ".venv", "__pycache__", ".cache", ".ipynb_checkpoints", "_build", "local"}
ALWAYS = ("requirements.lock",)
STORES = ("results/records", "results/times")  # whose files hold records of many chapters
LISTED = ("results", "artifacts", "book", "notebooks")
RECORD = "record:"
# Of this package, only what a page shows: its plumbing changes no page's content.
SHOWN = {"rag_repro/publish/contents.py", "rag_repro/publish/status.py"}


def gather(root: Path, heard: Mapping, own: Path) -> dict[str, str]:
    """Path below `root` -> hash, of every file, folder listing and record that was read.

    `heard` is the probe's report; `own` is the executed copy that is to be written, on which the
    chapter cannot depend. A record counts by what it holds, however it is stored, and also where
    there is none: a chapter that said `not run` must run when it comes.
    """
    paths = {Path(p) for p in (*heard["opened"], *heard["modules"])}
    paths |= {root / name for name in ALWAYS}
    found = {}
    for name in heard["records"]:
        path = Path(name)
        if path.is_relative_to(root) and not IGNORED.intersection(path.relative_to(root).parts):
            key = RECORD + path.relative_to(root).as_posix() + "/" * name.endswith("/")
            found[key] = hash_of(root, key)
    for path in paths:
        if path in (own, root) or not path.is_relative_to(root):
            continue
        relative = path.relative_to(root)
        if IGNORED.intersection(relative.parts) or relative.as_posix().startswith(STORES):
            continue
        # The import system lists folders of packages; their modules are told apart.
        if path.is_dir() and relative.parts[0] not in LISTED:
            continue
        key = relative.as_posix() + "/" * path.is_dir()
        if key.startswith("rag_repro/publish/") and key not in SHOWN:
            continue
        value = hash_of(root, key, own)
        if value is not None:
            found[key] = value
    return dict(sorted(found.items()))


def hash_of(root: Path, key: str, own: Path | None = None) -> str | None:
    """Short hash of a file's bytes, a folder's names or a record; None: there is no such file."""
    if key.startswith(RECORD):
        path = root / key.removeprefix(RECORD)
        if key.endswith("/"):
            return records.digest(path, "")
        return records.digest(path.parents[1], path.relative_to(path.parents[1]).as_posix())
    path = root / key
    if key.endswith("/"):
        return _digest(_names(root, (p for p in path.glob("*") if p != own)))
    if not path.is_file():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def digest(root: Path, folders: Iterable[str]) -> str:
    """One hash of all files below these folders, by name and bytes; and of those of `ALWAYS`."""
    below = (path for folder in folders for path in (root / folder).rglob("*"))
    keys = [*ALWAYS, *_names(root, below)]
    return _digest([f"{key} {hash_of(root, key)}" for key in keys])


def _names(root: Path, paths: Iterable[Path]) -> list[str]:
    relative = (p.relative_to(root) for p in paths)
    return sorted(
        p.as_posix()
        for p in relative
        if not IGNORED.intersection(p.parts) and not p.name.startswith(".") and p.suffix != ".lock"
    )


def _digest(names: list[str]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def changed(root: Path, recorded: Mapping[str, str], own: Path) -> list[str]:
    """Those of the recorded inputs that are different or gone now."""
    return [key for key, value in recorded.items() if value != hash_of(root, key, own)]
