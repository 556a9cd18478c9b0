"""What makes an executed chapter unfit to be published."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_repro.book_folders import BookFolders
from rag_repro.publish.notebook_pairs import read_notebook, source_hash

# Sections that a chapter about a paper (10 to 49) must have, as tags of its markdown cells; another
# has the last of them.
SECTIONS = ["claims", "symbols", "equation", "worked", "result", "verdict", "deviations", "rerun"]
LARGEST = 4 * 2**20  # bytes of a page that a reader should have to load

_FOLDERS = "home|Users|root|tmp|work|var|mnt|opt|private|srv|content|scratch|workspace"
ABSOLUTE = re.compile(rf"(?<![\w/.:~<])/(?:{_FOLDERS})/[\w.~-]+|\b[A-Za-z]:\\\\?[\w.~-]+\\")
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")
WIDGET = "application/vnd.jupyter.widget"


class BuildError(ValueError):
    """Pages that cannot be built, or must not be published; the text says what is wrong."""


def check(executed: Path, places: BookFolders) -> list[str]:
    """The faults of one executed chapter, a line each; none: it may be published."""
    if not executed.is_file():
        return [f"{executed.stem}: has no executed copy"]
    book = read_notebook(executed)
    if book is None:
        why = "is no whole notebook; execute the chapter again"
        return [f"{executed.stem}: {executed.name} {why}"]
    name = book.metadata.get("rag_repro", {}).get("chapter", executed.stem)
    faults = [
        *_whole_book(book, name, executed, places),
        *_sections(book, name),
        *_counts(book),
        *(fault for cell in book.cells for fault in _cell(cell)),
    ]
    return [f"{executed.stem}: {fault}" for fault in faults]


def check_all(places: BookFolders) -> None:
    """Raise BuildError unless every chapter has a sound executed copy, and no other is there."""
    names = places.names()
    orphans = sorted({path.stem for path in places.chapters.glob("*.ipynb")} - set(names))
    faults = [f"{name}: has no source" for name in orphans]
    faults += [fault for name in names for fault in check(places.executed(name), places)]
    if faults:
        raise BuildError("not fit to be published:\n" + "\n".join(f"  {f}" for f in faults))


def _whole_book(book: Any, name: str, executed: Path, places: BookFolders) -> Iterator[str]:
    told = book.metadata.get("rag_repro")
    if told is None:
        yield "was not executed by `rag-repro`"
    elif told.get("source") != source_hash(places.source(name)):
        yield "is stale: its source changed after it was executed"
    if executed.stat().st_size > LARGEST:
        yield f"is larger than {LARGEST // 2**20} MB"


def _sections(book: Any, name: str) -> Iterator[str]:
    tags = {tag for cell in book.cells for tag in cell.metadata.get("tags", [])}
    for section in SECTIONS if 10 <= int(name.split("_")[0]) <= 49 else SECTIONS[-1:]:
        if section not in tags:
            yield f"no cell is tagged `{section}`"


def _counts(book: Any) -> Iterator[str]:
    counts = [c.execution_count for c in book.cells if c.cell_type == "code" and c.source.strip()]
    if counts != list(range(1, len(counts) + 1)):
        yield f"its cells were not executed once each in order: {counts}"


def _cell(cell: Any) -> Iterator[str]:
    for place in (cell.source, *(_texts(cell.get("outputs", [])))):
        for found in (*ABSOLUTE.findall(place), *ADDRESS.findall(place)):
            yield f"{found!r} would differ on another machine"
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            yield f"a cell raised {output.ename}: {output.evalue}"
        if output.output_type == "stream" and output.name == "stderr":
            yield f"debris on stderr: {output.text.strip()[:200]!r}"
        if any(mime.startswith(WIDGET) for mime in output.get("data", {})):
            yield "shows a widget, which needs a script from another host"


def _texts(outputs: list) -> Iterator[str]:
    """Every text of a cell's outputs; pictures are left out."""
    for output in outputs:
        if output.output_type == "stream":
            yield output.text
        for mime, value in output.get("data", {}).items():
            if isinstance(value, str) and not mime.startswith(("image/png", "image/jpeg")):
                yield value
