"""Numbers that a chapter must reproduce, each with its tolerance.

A chapter tells them with `number(name, value)`; `notebooks/expected.yaml` says
what they should be. Whatever the page prints, a number that left its
tolerance keeps the chapter from being published.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from rag_repro.plain import PlainError, fits, from_yaml, shortened, text_of
from rag_repro.publish.places import Places
from rag_repro.words import nearest

MIME = "application/vnd.rag-repro.number+json"
KEYS = {"value", "within", "why"}


class NumberError(ValueError):
    """A number told twice, or an entry of expected.yaml that cannot be read."""


def number(name: str, value: float) -> None:
    """Tell a number under which the chapter is checked; shows nothing on the page."""
    from IPython.display import display

    told = json.dumps({"name": name, "value": float(value)})
    display({MIME: told, "text/plain": ""}, raw=True)


def take(book: Any, chapter: str) -> dict[str, float]:
    """Remove what `number` left in the cells of an executed notebook; name -> value."""
    told: dict[str, float] = {}
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if MIME in output.get("data", {}):
                one = json.loads(output["data"][MIME])
                if one["name"] in told:
                    raise NumberError(f"{chapter}: number {one['name']!r} is told twice")
                told[one["name"]] = one["value"]
        if "outputs" in cell:
            cell.outputs = [o for o in cell.outputs if MIME not in o.get("data", {})]
    return told


def expected(chapter: str, places: Places) -> Mapping[str, Mapping[str, Any]]:
    """The chapter's entries of notebooks/expected.yaml; none where there is no file."""
    path = places.notebooks / "expected.yaml"
    if not path.is_file():
        return {}
    try:
        everything = from_yaml(text_of(path)) or {}
    except (PlainError, OSError) as error:
        raise NumberError(f"{path}: {error}") from error
    if not isinstance(everything, dict):
        raise NumberError(f"{path}: a table of chapters is needed, got {shortened(everything)}")
    for name in everything:
        places.source(str(name))
    entries = everything.get(chapter) or {}
    if not isinstance(entries, dict):
        raise NumberError(f"{path}, {chapter}: a table of numbers is needed")
    for name, entry in entries.items():
        if not _is_entry(entry):
            raise NumberError(
                f"{path}, {chapter}, {name!r}: an entry has the keys value, within "
                f"(a distance) and why, got {shortened(repr(entry))}"
            )
    return entries


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or set(entry) != KEYS:
        return False
    return fits(entry["value"], float) and fits(entry["within"], float) and entry["within"] >= 0


def faults(chapter: str, told: Mapping[str, float], places: Places) -> Iterator[str]:
    """What of the told numbers is not as expected, a line each."""
    for name, entry in expected(chapter, places).items():
        if name not in told:
            yield f"number {name!r} is expected but was not told{nearest(name, told)}"
        elif not math.isclose(told[name], entry["value"], rel_tol=0, abs_tol=entry["within"]):
            yield (
                f"number {name!r} is {told[name]:g}, expected {entry['value']:g} within "
                f"{entry['within']:g} ({entry['why']})"
            )
