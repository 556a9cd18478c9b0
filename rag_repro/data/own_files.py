"""The files of a folder of one's own: which are read, and all that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..words import nearest
from . import own_questions

TEXTS = (".txt", ".md")
LARGEST = 20 * 2**20  # bytes of one file; a larger one is a dump, not a text


class FolderError(ValueError):
    """A folder that cannot be used; `problems` lists all that is wrong with it."""

    def __init__(self, folder: Path, problems: Sequence[str]):
        self.problems = tuple(problems)
        n = len(self.problems)
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__(f"{folder}: {n} problem{'s' if n > 1 else ''}{lines}")


@dataclass
class Findings:
    """What is wrong, and what may be meant so."""

    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)  # names of texts with a problem of their own

    def tell(self, place: str, problem: str) -> None:
        self.problems.append(f"{place}: {problem}")

    def warn(self, place: str, warning: str) -> None:
        self.warnings.append(f"{place}: {warning}")


def existing(folder: Path) -> Path:
    """The folder; FolderError, with the nearest name beside it, where there is none."""
    if not folder.is_dir():
        held = [p.name for p in folder.parent.iterdir()] if folder.parent.is_dir() else []
        raise FolderError(folder, [f"there is no such folder{nearest(folder.name, held)}"])
    return folder


def visible(folder: Path) -> Iterable[Path]:
    """Files below `folder`, hidden ones left out, in the order of their names."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            yield path


def text_files(folder: Path) -> list[Path]:
    """The files of passages that are read, in order."""
    return [p for p in visible(folder / "passages") if p.suffix.lower() in TEXTS]


def question_files(folder: Path) -> list[Path]:
    """Those of the files that may hold questions which are there; one is wanted."""
    return [folder / name for name in own_questions.FILES if (folder / name).is_file()]


def read(path: Path, place: str, found: Findings) -> str | None:
    """A file's text with plain line ends; None where it was told what is wrong."""
    if (size := path.stat().st_size) > LARGEST:
        limit = f"more than {LARGEST // 2**20} MB"
        found.tell(place, f"{size / 2**20:.0f} MB, {limit}; cut it into several files")
        return None
    try:
        data = path.read_bytes()
    except OSError as error:
        found.tell(place, f"cannot be read ({error.strerror}); change its permissions")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found.tell(place, f"not UTF-8 (in line {line}); save it as UTF-8")
        return None
    if "\0" in text:
        found.tell(place, "holds NUL bytes, so it is no text; save it as UTF-8, or take it out")
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        found.tell(place, "empty; put its text in, or remove it")
        return None
    return text
