"""Indexes on disk: a folder of files beside a card, written whole or not at all.

    folder/card.json     what the index is, and size and SHA-256 of its files
    folder/...           the files of the index; never the passages

A stored index is used only over the corpus, settings and package versions
that it was made with. Everything else is refused with the field that
differs, since a wrong index gives wrong numbers and no error.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from rag_repro.schema.dataset import Corpus

from ..digest import sha256
from ..plain import PlainError, from_json, shortened, text_of
from .base import Index, RetrievalError

CARD = "card.json"


class StoreError(RetrievalError):
    """A stored index cannot be used or written here."""


class Stored(Index):
    """A retriever that can be saved, and taken from its folder again.

    Its constructor takes corpus, settings and `folder`, and ends in `_fill`;
    it adds `_build`, `_write` and `_read`. StoreError where corpus, settings, versions or files
    differ from the card in the folder: which field, what was expected, what was found.
    """

    def save(self, folder: str | Path) -> Path:
        """Write the index and its card to `folder`, which must be new or the same index.

        Raises StoreError where `folder` holds anything else.
        """
        folder = Path(folder)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            _refuse_other(folder, self.card)
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Written beside its place and renamed, so that a killed run leaves no
        # half index under the name that a later run will trust.
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
        try:
            self._write(part)
            files = {
                name: {"bytes": (part / name).stat().st_size, "sha256": sha256(part / name)}
                for name in _files_in(part)
            }
            card = json.dumps({**self.card, "files": files}, indent=1, ensure_ascii=False)
            (part / CARD).write_text(card + "\n", encoding="utf-8")
            part.chmod(0o755)
            try:
                os.rename(part, folder)
            except OSError:
                if not folder.exists():
                    raise
                _refuse_other(folder, self.card)  # another process was first; its index is ours
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return folder

    @classmethod
    def at(cls, folder: str | Path, corpus: Corpus, **settings: Any) -> Self:
        """The index in `folder` where one is, else a new one, saved there.

        An index of other settings is refused: defaults count as asked for.
        """
        folder = Path(folder)
        if (folder / CARD).is_file():
            return cls(corpus, folder=folder, **settings)
        index = cls(corpus, **settings)
        index.save(folder)
        return index

    def _fill(self, folder: str | Path | None) -> None:
        """Build the index, or take it from `folder` if its card fits what was asked for."""
        if folder is None:
            self._build()
            return
        folder = Path(folder)
        card = _read_card(folder)
        _compare(folder, expected=self.card, found=card)
        _check_files(folder, card["files"])
        try:
            self._read(folder)
        except (OSError, ValueError, KeyError) as error:  # files that fit a card made to fit them
            raise StoreError(
                f"the files in {folder} are no {self.kind} index of this corpus "
                f"({shortened(error)}); delete the folder and build the index again"
            ) from error

    @abstractmethod
    def _build(self) -> None:
        """Make the index from the corpus."""

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write the files of the index into an empty folder."""

    @abstractmethod
    def _read(self, folder: Path) -> None:
        """Take the index from its files, after the card was found to fit."""


def _read_card(folder: Path) -> dict[str, Any]:
    """The card of a stored index. Raises StoreError where there is none that can be read."""
    path = folder / CARD
    try:
        card = from_json(text_of(path))
    except FileNotFoundError:
        raise StoreError(
            f"{folder} holds no index ({CARD} is missing); build one and save it there"
        ) from None
    except (PlainError, OSError) as error:
        raise StoreError(
            f"{path} is no card ({error}); delete the folder and build the index again"
        ) from error
    if fault := _fault(card):
        raise StoreError(f"{path} {fault}; delete the folder and build the index again")
    return card


_PARTS = {"kind": str, "version": int, "corpus": dict, "settings": dict, "versions": dict}
_PARTS["files"] = dict


def _fault(card: Any) -> str:
    """What a card lacks, or holds that it must not; "" where nothing is wrong."""
    missing = set(_PARTS) - set(card) if isinstance(card, dict) else set(_PARTS)
    if missing:
        return f"lacks {', '.join(sorted(missing))}"
    for name, kind in _PARTS.items():
        if not isinstance(card[name], kind):
            return f"has {name!r} as {shortened(repr(card[name]), 60)}"
    for name, file in card["files"].items():
        if not isinstance(file, dict) or not {"bytes", "sha256"} <= set(file):
            return f"does not describe its file {name!r}"
        if Path(name).is_absolute() or ".." in Path(name).parts:
            return f"names a file outside its folder, {name!r}"
    return ""


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, list(value) if isinstance(value, tuple) else value


def differences(
    expected: Mapping[str, Any], found: Mapping[str, Any], apart: Collection[str] = ()
) -> list[str]:
    """One line a field in which two cards differ; the corpus's name may, and the parts `apart`."""
    want, have = dict(_flat(expected)), dict(_flat(found))
    names = [n for n in dict.fromkeys([*want, *have]) if n.split(".")[0] not in apart]
    differ = [n for n in names if n != "corpus.name" and want.get(n) != have.get(n)]
    return [f"  {n}: expected {want.get(n)!r}, found {have.get(n)!r}" for n in differ]


def _compare(folder: Path, *, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Refuse a card that differs in anything but the corpus's name and the files."""
    if lines := differences(expected, found, apart=("files",)):
        raise StoreError(
            f"the index in {folder} was made otherwise than asked for:\n"
            + "\n".join(lines)
            + "\nHand in what it was made with, save to another folder, or delete this one and "
            "build the index again"
        )


def _refuse_other(folder: Path, card: Mapping[str, Any]) -> None:
    """Pass where `folder` holds just this index, else raise: nothing is overwritten."""
    if not folder.is_dir() or not (folder / CARD).is_file():
        raise StoreError(f"{folder} exists and is no index; choose another folder")
    stored = _read_card(folder)
    _compare(folder, expected=card, found=stored)
    _check_files(folder, stored["files"])


def _files_in(folder: Path) -> list[str]:
    """Names of the index's files; hidden ones are an editor's or the system's."""
    found = (p for p in sorted(folder.rglob("*")) if p.is_file() and not p.name.startswith("."))
    return [name for p in found if (name := p.relative_to(folder).as_posix()) != CARD]


def _check_files(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse where the folder's files are not just those of its card, byte for byte."""
    there = _files_in(folder)
    for name in sorted({*files, *there}):
        path, again = shortened(folder / name), f"delete {folder} and build the index again"
        if name not in there:
            raise StoreError(f"{path} is missing; {again}")
        if name not in files:
            raise StoreError(f"{path} is not on its card; {again}")
        card = files[name]
        if (folder / name).stat().st_size != card["bytes"] or sha256(folder / name) != card[
            "sha256"
        ]:
            raise StoreError(
                f"{path} is not the file that its card describes (cut off or changed); {again}"
            )
