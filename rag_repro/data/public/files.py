"""Files opened so that whatever is wrong with them is said with its place.

gzip is recognised by its first two bytes, not by the file's name: browsers
decompress what they download and keep the name.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...plain import PlainError, from_json
from ..archives import FLOOR, RATIO
from .errors import BadLine, CorruptFile, MissingFile

AGAIN = "copy or download the file again"


def read_text(path: Path) -> str:
    """The whole decompressed text (UTF-8, a byte-order mark left out).

    Raises MissingFile or CorruptFile, also for more than 50 times the compressed bytes
    (and 64 MiB): of a file that was made to fill the memory no more is unpacked.
    """
    try:
        if not path.is_file():  # a device or a pipe could give without end
            raise MissingFile(path, "", "there is no such file", "give the path of the file")
        raw = path.read_bytes()
    except OSError as error:
        raise CorruptFile(path, "", f"cannot be read ({error.strerror})", "mend that") from error
    if raw[:2] == b"\x1f\x8b":
        room = max(FLOOR, RATIO * len(raw))
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as content:
                raw = content.read(room + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise CorruptFile(path, "", f"damaged gzip file ({error})", AGAIN) from error
        if len(raw) > room:
            problem = f"unpacks to more than {room:,} bytes, which no honest text does"
            raise CorruptFile(path, "", problem, AGAIN)
    elif path.suffix == ".gz" and raw.lstrip()[:1] not in (b"{", b"["):
        raise CorruptFile(path, "", "named .gz but neither gzip nor JSON", AGAIN)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise CorruptFile(path, f"line {line}", "not UTF-8", AGAIN) from error


def lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) for each line of a JSON Lines file; blank lines are passed over.

    Raises BadLine where a line is not one JSON object.
    """
    # split("\n"), not splitlines(): the latter also breaks at U+2028, which JSON allows.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            row = from_json(line, whole=True)
        except PlainError as error:
            remedy = f"correct or remove the line ({AGAIN} if it is cut off)"
            raise BadLine(path, place, str(error), remedy) from error
        if not isinstance(row, dict):
            raise BadLine(path, place, "not a JSON object", "give one object a line")
        yield place, row


def document(path: Path, kind: type) -> Any:
    """The one JSON value of a file, a `dict` or a `list` as `kind` says."""
    try:
        value = from_json(read_text(path), whole=True)
    except PlainError as error:
        raise BadLine(path, f"line {error.line or 1}", str(error), AGAIN) from error
    if not isinstance(value, kind):
        wanted = {dict: "an object", list: "an array"}[kind]
        raise BadLine(
            path, "line 1", f"JSON, but not {wanted}", "check that format and file go together"
        )
    return value


def records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) for each element of a file that is one JSON array."""
    for number, row in enumerate(document(path, list), start=1):
        place = f"record {number}"
        if not isinstance(row, dict):
            raise BadLine(path, place, "not a JSON object", "correct or remove the record")
        yield place, row
