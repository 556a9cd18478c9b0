"""The files of a folder of one's own: which are read, and all that is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag_repro.data import own_questions
from rag_repro.data.own_questions import nfc
from rag_repro.plain import UNSEEN, escaped, shortened
from rag_repro.words import nearest

TEXTS = (".txt", ".md")


class FolderError(ValueError):
    """A folder that cannot be used; `problems` lists all that is wrong with it."""

    def __init__(self, folder: Path, problems: Sequence[str]):
        self.problems = tuple(problems)
        n = len(self.problems)
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        name = shortened(escaped(str(folder)), 300)
        super().__init__(f"{name}: {n} problem{'s' if n > 1 else ''}{lines}")


@dataclass
class Findings:
    """What is wrong, and what may be meant so."""

    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)  # names of texts with a problem of their own

    def tell(self, place: str, problem: str) -> None:
        self.problems.append(escaped(f"{shortened(place, 300)}: {problem}"))

    def warn(self, place: str, warning: str) -> None:
        self.warnings.append(escaped(f"{shortened(place, 300)}: {warning}"))


def existing(folder: Path) -> Path:
    """The folder; FolderError, with the nearest name beside it, where there is none."""
    try:
        if folder.is_dir():
            return folder
        held = [p.name for p in folder.parent.iterdir()] if folder.parent.is_dir() else []
    except OSError as error:  # also of a name that is too long for the disk
        raise FolderError(folder, [unreadable(error)]) from error
    raise FolderError(folder, [f"there is no such folder{nearest(folder.name, held)}"])


def unreadable(error: OSError) -> str:
    return f"cannot be read ({error.strerror}); change its permissions, or give another"


def visible(folder: Path, found: Findings) -> list[Path]:
    """The files below passages/, hidden ones left out, in the order of their names.

    Links in it are not followed; `found` is told of them.
    """

    def tell(error: OSError) -> None:
        found.tell(Path(error.filename).relative_to(folder).as_posix(), unreadable(error))

    files: list[Path] = []
    for top, inner, names in os.walk(folder / "passages", onerror=tell):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for path in (Path(top, name) for name in (*inner, *names) if not name.startswith(".")):
            place = path.relative_to(folder).as_posix()
            if UNSEEN.search(path.name):
                found.tell(place, "its name holds a control character or is not UTF-8; rename it")
            elif path.is_symlink():
                found.warn(place, "not followed, a link; copy the texts into the folder")
            elif path.is_file():
                files.append(path)
    return sorted(files)


def question_files(folder: Path) -> list[Path]:
    """Those of the files that may hold questions which are there; one is wanted."""
    return [folder / name for name in own_questions.FILES if (folder / name).is_file()]


def read(path: Path, place: str, found: Findings) -> str | None:
    """A file's text with plain line ends; None where it was told what is wrong."""
    try:
        data = path.read_bytes()
    except OSError as error:
        found.tell(place, unreadable(error))
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found.tell(place, f"not UTF-8 (in line {line}), perhaps Latin-1; save it as UTF-8")
        return None
    if "\0" in text:
        found.tell(place, "holds NUL bytes, so it is no text; save it as UTF-8, or take it out")
        return None
    text = nfc(text).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        found.tell(place, "empty; put its text in, or remove it")
        return None
    return text
