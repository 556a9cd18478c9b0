"""The files of a folder of one's own: which are read, and all that is wrong with them.

Questions stand in questions.jsonl, questions.csv or questions.txt:

    {"question": "Who cast the bell?", "answers": ["Ada Brill"], "gold": ["bell"]}

JSON Lines: an object a line. CSV: a header with the same names, several answers
or gold passages parted by `|`. Text: a question a
line and nothing else. Every problem is told, with its line, and all at once.
"""

from __future__ import annotations

import csv
import io
import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rag_repro.data.public.record import unique
from rag_repro.data.splits import SPLITS
from rag_repro.plain import UNSEEN, PlainError, escaped, from_json, shortened
from rag_repro.words import nearest

TEXTS = (".txt", ".md")
QUESTIONS = ("questions.jsonl", "questions.csv", "questions.txt")
KEYS = ("id", "question", "answers", "gold", "kind", "split")
LISTS = ("answers", "gold")

nfc = partial(unicodedata.normalize, "NFC")


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
    return [folder / name for name in QUESTIONS if (folder / name).is_file()]


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


# -------------------------------------------------------------------- questions


@dataclass(frozen=True)
class Entry:
    """One question as its file has it; `gold` as it is written there."""

    place: str
    id: str
    question: str
    answers: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    kind: str | None = None
    split: str = "test"


def read_questions(name: str, text: str, found: Findings) -> list[Entry]:
    """The sound questions of a file; `found` is told of all others.

    name: one of FILES. Ids that are not given are q1, q2 ..., by position.
    """
    rows = {"questions.jsonl": _jsonl, "questions.csv": _csv, "questions.txt": _txt}[name]
    entries: list[Entry] = []
    ids: dict[str, str] = {}
    texts: dict[str, str] = {}
    for position, (line, row) in enumerate(rows(text, name, found), start=1):
        place = f"{name}, line {line}"
        entry = None if row is None else _entry(row, place, position, found)
        if entry is None:
            continue
        said = " ".join(entry.question.casefold().split())
        if entry.id in ids:
            found.tell(
                place, f"the id {entry.id!r} is that of {ids[entry.id]}; give it one of its own"
            )
        elif said in texts:
            found.tell(place, f"the same question as on {texts[said]}; remove one of them")
        ids.setdefault(entry.id, f"line {line}")
        texts.setdefault(said, f"line {line}")
        entries.append(entry)
    return entries


def _jsonl(text: str, name: str, found: Findings) -> Iterator[tuple[int, Mapping | None]]:
    for line, raw in enumerate(text.split("\n"), start=1):
        if not raw.strip():
            continue
        try:
            row = from_json(raw, whole=True)
        except PlainError as error:
            found.tell(f"{name}, line {line}", f"{error}; write one object a line")
            row = None
        if row is not None and not isinstance(row, dict):
            found.tell(f"{name}, line {line}", 'not an object; write as {"question": "Who ...?"}')
            row = None
        yield line, row


def _csv(text: str, name: str, found: Findings) -> Iterator[tuple[int, Mapping | None]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = (cells for cells in reader if any(cell.strip() for cell in cells))
    try:
        head = [cell.strip() for cell in next(rows, ())]
        if not _head_is_sound(head, f"{name}, line {reader.line_num}", found):
            return
        for cells in rows:
            if len(cells) == len(head):
                row = {key: cell.strip() for key, cell in zip(head, cells, strict=True)}
                listed = {key: row[key].split("|") for key in LISTS if row.get(key)}
                yield reader.line_num, {k: v for k, v in row.items() if v} | listed
                continue
            told = f"{len(cells)} cells, the header has {len(head)}"
            place = f"{name}, line {reader.line_num}"
            found.tell(place, f'{told}; put text that holds a comma in "quotes"')
            yield reader.line_num, None
    except csv.Error as error:
        place = f"{name}, line {reader.line_num}"
        found.tell(place, f"not CSV ({error}); mend the quotes there")


def _head_is_sound(head: list[str], place: str, found: Findings) -> bool:
    """Whether the columns are known; said once here, and not again on every line."""
    if twice := next((key for key in head if head.count(key) > 1), None):
        found.tell(place, f"the column {twice!r} is there twice; remove one")
        return False
    sound = _known(head, place, found)
    if "question" not in head:
        names = ", ".join(KEYS)
        told = f"no column 'question'; the first line names the columns, with commas: {names}"
        found.tell(place, told)
    return sound and "question" in head


def _txt(text: str, name: str, found: Findings) -> Iterator[tuple[int, Mapping | None]]:
    for line, raw in enumerate(text.split("\n"), start=1):
        if raw.strip():
            yield line, {"question": raw}


def _known(keys: Any, place: str, found: Findings) -> bool:
    unknown = [key for key in keys if key not in KEYS]
    for key in unknown:
        found.tell(place, f"unknown key {key!r}{nearest(key, KEYS)}; known are {', '.join(KEYS)}")
    return not unknown


def _entry(row: Mapping[str, Any], place: str, position: int, found: Findings) -> Entry | None:
    """The question of one row, what is wrong with it told; None where it has no text."""
    sound = _known(row, place, found)
    values: dict[str, Any] = {}
    for key in KEYS:
        value = row.get(key)
        if key in LISTS and value is not None:
            value = [value] if isinstance(value, str) else value
            if isinstance(value, list) and all(isinstance(v, str) for v in value):
                values[key] = unique(map(nfc, value))
            else:
                found.tell(place, f'{key!r} is not text or a list of texts; write as ["1961"]')
        elif isinstance(value, str):
            values |= {key: " ".join(nfc(value).split())} if value.strip() else {}
        elif value is not None:
            found.tell(place, f"{key!r} is not text; put it in quotes")
    if "question" not in values:
        if sound and isinstance(row.get("question"), str | None):  # else the cause was told
            found.tell(place, "no question; fill the field 'question', or remove the line")
        return None
    for key in ("id", "kind"):  # these become columns and labels
        if UNSEEN.search(values.get(key, "")):
            found.tell(place, f"{key!r} holds a control character; take it out")
    if (split := values.get("split", "test")) not in SPLITS:
        found.tell(
            place, f"no split {split!r}{nearest(split, SPLITS)}; there are {', '.join(SPLITS)}"
        )
    return Entry(place=place, **{"id": f"q{position}", **values})
