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
    import yaml

    path = places.notebooks / "expected.yaml"
    if not path.is_file():
        return {}
    everything = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    for name in everything:
        places.source(name)
    entries = everything.get(chapter) or {}
    for name, entry in entries.items():
        if not isinstance(entry, dict) or set(entry) != KEYS or not entry["within"] >= 0:
            raise NumberError(
                f"{path.name}, {chapter}, {name!r}: an entry has the keys value, within "
                f"(a distance) and why, got {entry!r}"
            )
    return entries


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
