"""The tables of wordings: which relations there are, and how they are said and asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

# Relations whose object is not an entity of the world, by the kind of answer.
LITERALS = {
    "release_year": "year",
    "inception": "year",
    "genre": "word",
    "currency": "word",
    "birth_date": "date",
    "death_date": "date",
    "capacity": "number",
    "population": "number",
}


@dataclass(frozen=True)
class Wording:
    """How one relation is said in one set of worlds.

    says: (before, after) the object, what a passage says after its subject.
    near, far: questions with {x}, with and without the words of passages.
    np_near, np_far: noun phrases with {x} for the object; () for literals.
    """

    says: tuple[tuple[str, str], ...]
    near: tuple[str, ...]
    far: tuple[str, ...]
    np_near: tuple[str, ...] = ()
    np_far: tuple[str, ...] = ()


def options(line: str) -> tuple[str, ...]:
    """The wordings of one line of the tables."""
    return tuple(part.strip() for part in line.split(" | "))


@cache
def read_table(name: str) -> Mapping[str, Any]:
    """A YAML file that lies beside this module: "wordings.yaml", "phrases.yaml" (leads, fillers,
    mentions, comparisons …) or "words.yaml"."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=loader)


def answer_type(relation: str) -> str:
    """ "entity", "year", "date", "number" or "word"; a subject has at most one object."""
    return LITERALS.get(relation, "entity")


@cache
def wordings(which: str) -> Mapping[str, Wording]:
    """Relation -> wording, for a set of wordings."""
    out = {}
    for name, sets in read_table("wordings.yaml").items():
        lines = sets[which]
        says = tuple(tuple(text.split("{o}")) for text in options(lines["says"]))
        np = options(lines["np"]) if "np" in lines else ()
        out[name] = Wording(says, options(lines["near"]), options(lines["far"]), np[:1], np[1:])
    return out


@cache
def held_out_pair(first: str, second: str) -> bool:
    """Whether learned worlds never ask `second` of the object of `first`.

    Decided by a hash, so that it holds for every relation that is added: about
    one pair in three is held out.
    """
    return hashlib.sha256(f"{first}>{second}".encode()).digest()[0] < 86
