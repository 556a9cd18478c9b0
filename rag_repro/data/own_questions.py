"""Questions of one's own, from questions.jsonl, questions.csv or questions.txt.

    {"question": "Who cast the bell?", "answers": ["Ada Brill"], "gold": ["bell"]}

JSON Lines: an object a line. CSV: a header with the same names, several answers
or gold passages parted by `|` or written as a list of JSON. Text: a question a
line and nothing else.
Nothing is raised here: every problem is told, with its line, and all at once.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from rag_repro.data.public.record import unique
from rag_repro.data.splits import SPLITS
from rag_repro.plain import UNSEEN, PlainError, from_json
from rag_repro.words import nearest

FILES = ("questions.jsonl", "questions.csv", "questions.txt")
KEYS = ("id", "question", "answers", "gold", "kind", "split")
LISTS = ("answers", "gold")

nfc = partial(unicodedata.normalize, "NFC")
Tell = Callable[[str, str], None]


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


def read(name: str, text: str, tell: Tell) -> list[Entry]:
    """The sound questions of a file; `tell(place, problem)` hears of all others.

    name: one of FILES. Ids that are not given are q1, q2 ..., by position.
    """
    rows = {"questions.jsonl": _jsonl, "questions.csv": _csv, "questions.txt": _txt}[name]
    entries: list[Entry] = []
    ids: dict[str, str] = {}
    texts: dict[str, str] = {}
    for position, (line, row) in enumerate(rows(text, name, tell), start=1):
        place = f"{name}, line {line}"
        entry = None if row is None else _entry(row, place, position, tell)
        if entry is None:
            continue
        said = " ".join(entry.question.casefold().split())
        if entry.id in ids:
            tell(place, f"the id {entry.id!r} is that of {ids[entry.id]}; give it one of its own")
        elif said in texts:
            tell(place, f"the same question as on {texts[said]}; remove one of them")
        ids.setdefault(entry.id, f"line {line}")
        texts.setdefault(said, f"line {line}")
        entries.append(entry)
    return entries


def _jsonl(text: str, name: str, tell: Tell) -> Iterator[tuple[int, Mapping | None]]:
    for line, raw in enumerate(text.split("\n"), start=1):
        if not raw.strip():
            continue
        try:
            row = from_json(raw, whole=True)
        except PlainError as error:
            tell(f"{name}, line {line}", f"{error}; write one object a line")
            row = None
        if row is not None and not isinstance(row, dict):
            tell(f"{name}, line {line}", 'not an object; write as {"question": "Who ...?"}')
            row = None
        yield line, row


def _csv(text: str, name: str, tell: Tell) -> Iterator[tuple[int, Mapping | None]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = (cells for cells in reader if any(cell.strip() for cell in cells))
    try:
        head = [cell.strip() for cell in next(rows, ())]
        if not _head_is_sound(head, f"{name}, line {reader.line_num}", tell):
            return
        for cells in rows:
            place = f"{name}, line {reader.line_num}"
            if len(cells) != len(head):
                told = f"{len(cells)} cells, the header has {len(head)}"
                tell(place, f'{told}; put text that holds a comma in "quotes"')
                yield reader.line_num, None
                continue
            row = {key: cell.strip() for key, cell in zip(head, cells, strict=True)}
            listed = {k: _listed(row[k], k, place, tell) for k in LISTS if row.get(k)}
            yield reader.line_num, {k: v for k, v in row.items() if v} | listed
    except csv.Error as error:
        tell(f"{name}, line {reader.line_num}", f"not CSV ({error}); mend the quotes there")


def _listed(cell: str, key: str, place: str, tell: Tell) -> Any:
    """The texts of a cell; None where it looks like a list of JSON, and is told to be none."""
    if not (cell.startswith("[") and cell.endswith("]")):
        return cell.split("|")
    try:
        return from_json(cell, whole=True)
    except PlainError as error:
        tell(place, f'{key!r} looks like a list and is {error}; write as ["1961", "61"]')
        return None


def _head_is_sound(head: list[str], place: str, tell: Tell) -> bool:
    if len(head) == 1 and (";" in head[0] or "\t" in head[0]):
        tell(place, "cells are not parted by commas; save the table as CSV with commas")
        return False
    if twice := next((key for key in head if head.count(key) > 1), None):
        tell(place, f"the column {twice!r} is there twice; remove one")
        return False
    # Said once here, and not again on every line.
    sound = _known(head, place, tell)
    if "question" not in head:
        tell(place, f"no column 'question'; the first line names the columns: {', '.join(KEYS)}")
    return sound and "question" in head


def _txt(text: str, name: str, tell: Tell) -> Iterator[tuple[int, Mapping | None]]:
    for line, raw in enumerate(text.split("\n"), start=1):
        if raw.strip():
            yield line, {"question": raw}


def _known(keys: Any, place: str, tell: Tell) -> bool:
    unknown = [key for key in keys if key not in KEYS]
    for key in unknown:
        tell(place, f"unknown key {key!r}{nearest(key, KEYS)}; known are {', '.join(KEYS)}")
    return not unknown


def _entry(row: Mapping[str, Any], place: str, position: int, tell: Tell) -> Entry | None:
    """The question of one row, what is wrong with it told; None where it has no text."""
    sound = _known(row, place, tell)
    values: dict[str, Any] = {}
    for key in KEYS:
        value = row.get(key)
        if key in LISTS and value is not None:
            value = [value] if isinstance(value, str) else value
            if isinstance(value, list) and all(isinstance(v, str) for v in value):
                values[key] = unique(map(nfc, value))
            else:
                tell(place, f'{key!r} is not text or a list of texts; write as ["1961"]')
        elif isinstance(value, str):
            values |= {key: " ".join(nfc(value).split())} if value.strip() else {}
        elif value is not None:
            tell(place, f"{key!r} is not text; put it in quotes")
    if "question" not in values:
        if sound and not row.get("question"):  # else the cause was told
            tell(place, "no question; fill the field 'question', or remove the line")
        return None
    for key in ("id", "kind"):  # these become columns and labels
        if UNSEEN.search(values.get(key, "")):
            tell(place, f"{key!r} holds a control character; take it out")
    if (split := values.get("split", "test")) not in SPLITS:
        tell(place, f"no split {split!r}{nearest(split, SPLITS)}; there are {', '.join(SPLITS)}")
    return Entry(place=place, **{"id": f"q{position}", **values})
