"""The files of a folder of one's own: which are read, and all that is wrong with them."""

from __future__ import annotations

import codecs
import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag_repro.plain import UNSEEN, escaped, shortened

from ..words import nearest
from . import own_questions
from .own_questions import nfc

TEXTS = (".txt", ".md")
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
LARGEST = 20 * 2**20  # bytes of one file; a larger one is a dump, not a text


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

    Links that stay inside `folder` are followed, and what several ways lead to is read
    once, so that no web of links is endless; `found` is told of every link left out.
    """
    base, root = folder.resolve(), folder / "passages"
    files: list[Path] = []
    reached: set[Path] = set()
    waiting = [(root, base / "passages")]  # each path and, its links followed, where it is
    links: list[Path] = []
    while waiting or links:
        # Links last: a text has the name that it has without them.
        path, real = waiting.pop() if waiting else (heapq.heappop(links), None)
        place = path.relative_to(folder).as_posix()
        tell = found.tell if path == root else found.warn
        try:
            if real is not None and path.is_symlink():
                heapq.heappush(links, path)
                continue
            if real is None:
                real = path.resolve(strict=True)
                if not real.is_relative_to(base):
                    tell(place, "not followed, a link out of the folder; copy the texts into it")
                    continue
                if path.parent.resolve().is_relative_to(real):
                    tell(place, "not followed, a link back to a folder that it lies in")
                    continue
            if real in reached:
                found.warn(place, f"not read again, as {real.relative_to(base).as_posix()} is read")
                continue
            reached.add(real)
            if path.is_file():
                files.append(path)
                continue
            for child in path.iterdir() if path.is_dir() else ():
                if child.name.startswith("."):
                    continue
                if UNSEEN.search(child.name):
                    said = "its name holds a control character or is not UTF-8; rename it"
                    found.tell(child.relative_to(folder).as_posix(), said)
                else:
                    waiting.append((child, real / child.name))
        except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
            if path.is_symlink():
                tell(place, "not followed, a link that leads nowhere")
            else:
                found.tell(place, unreadable(error))
    return sorted(files)


def text_files(folder: Path) -> list[Path]:
    """The files of passages that are read, in order."""
    return [p for p in visible(folder, Findings()) if p.suffix.lower() in TEXTS]


def question_files(folder: Path, found: Findings) -> list[Path]:
    """Those of the files that may hold questions which are there; one is wanted."""
    files = [folder / name for name in own_questions.FILES if (folder / name).is_file()]
    base = folder.resolve()
    for path in (away := [p for p in files if not p.resolve().is_relative_to(base)]):
        found.tell(path.name, "not followed, a link out of the folder; copy the file into it")
    return [path for path in files if path not in away]


def read(path: Path, place: str, found: Findings) -> str | None:
    """A file's text with plain line ends; None where it was told what is wrong."""
    try:
        if (size := path.stat().st_size) > LARGEST:
            limit = f"more than {LARGEST // 2**20} MB"
            found.tell(place, f"{size / 2**20:.0f} MB, {limit}; cut it into several files")
            return None
        data = path.read_bytes()
    except OSError as error:
        found.tell(place, unreadable(error))
        return None
    if data.startswith(_WIDE):
        found.tell(place, "UTF-16 or UTF-32, not UTF-8; save it as UTF-8")
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
