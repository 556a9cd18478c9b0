"""Files opened so that whatever is wrong with them is said with its place.

gzip is recognised by its first two bytes, not by the file's name: browsers
decompress what they download and keep the name.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_repro.data.public.record import DataError, MissingFile, Row
from rag_repro.plain import PlainError, from_json

AGAIN = "copy or download the file again"
_TOGETHER = "check that format and file go together"
_OTHERS = {
    b"\x28\xb5\x2f\xfd": ("packed by zstd", "unpack it with `zstd -d`"),
    b"BZh": ("packed by bzip2", "unpack it with `bunzip2`"),
    b"\xfd7zXZ\0": ("packed by xz", "unpack it with `unxz`"),
    b"PK\x03\x04": ("a zip archive", "unpack it, and name the file that was in it"),
    b"PAR1": ("a Parquet file", "write parquet:PATH"),
    b"ARROW1": ("an Arrow file", "write hf:FOLDER for the folder that it lies in"),
    codecs.BOM_UTF16_LE: ("UTF-16 or UTF-32, not UTF-8", "save it as UTF-8"),
    codecs.BOM_UTF16_BE: ("UTF-16, not UTF-8", "save it as UTF-8"),
}
"""First bytes -> what such a file is, and what to do with it."""


def read_text(path: Path) -> str:
    """The whole decompressed text (UTF-8, a byte-order mark left out).

    Raises MissingFile or DataError.
    """
    try:
        if not path.is_file():  # a device or a pipe could give without end
            raise MissingFile(path, "", "there is no such file", "give the path of the file")
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(path, "", f"cannot be read ({error.strerror})", "mend that") from error
    if gzipped := raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(path, "", f"damaged gzip file ({error})", AGAIN) from error
    for start, (what, remedy) in _OTHERS.items():
        if raw.startswith(start):
            raise DataError(path, "", f"{what}, and plain or gzipped JSON is wanted", remedy)
    if not gzipped and path.suffix == ".gz" and raw.lstrip()[:1] not in (b"{", b"["):
        raise DataError(path, "", "named .gz but neither gzip nor JSON", AGAIN)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(path, f"line {line}", "not UTF-8", AGAIN) from error


def opening(path: Path) -> str:
    """The first character that is no blank, of the first bytes of a plain or gzipped text."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            start = gzip.GzipFile(fileobj=file).read(4096) if packed else file.read(4096)
    except (OSError, EOFError, zlib.error):
        return ""  # whoever reads it all says what is wrong
    return start.decode("utf-8-sig", "replace").lstrip()[:1]


def lines(path: Path) -> Iterator[Row]:
    """Each line of a JSON Lines file; blank lines are passed over.

    Raises DataError where a line is not one JSON object.
    """
    for number, line in enumerate(_lines(read_text(path)), start=1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            row = from_json(line, whole=True)
        except PlainError as error:
            remedy = f"correct or remove the line ({AGAIN} if it is cut off)"
            raise DataError(path, place, str(error), remedy) from error
        if not isinstance(row, dict):
            raise DataError(
                path, place, "not a JSON object", f"give one object a line, and {_TOGETHER}"
            )
        yield Row(path, place, row)


def _lines(text: str) -> Iterator[str]:
    """Without a list of them, which would take the memory a second time.

    splitlines() would also break at U+2028, which JSON allows.
    """
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def document(path: Path, kind: type) -> Any:
    """The one JSON value of a file, a `dict` or a `list` as `kind` says."""
    try:
        value = from_json(read_text(path), whole=True)
    except PlainError as error:
        remedy = _TOGETHER if "Extra data" in str(error) else AGAIN
        raise DataError(path, f"line {error.line or 1}", str(error), remedy) from error
    if not isinstance(value, kind):
        wanted = {dict: "an object", list: "an array"}[kind]
        raise DataError(path, "line 1", f"JSON, but not {wanted}", _TOGETHER)
    return value


def records(path: Path) -> Iterator[Row]:
    """Each element of a file that is one JSON array."""
    for number, row in enumerate(document(path, list), start=1):
        place = f"record {number}"
        if not isinstance(row, dict):
            raise DataError(path, place, "not a JSON object", "correct or remove the record")
        yield Row(path, place, row)
