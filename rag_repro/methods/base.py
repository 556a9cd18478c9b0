"""What every method shares: its settings, its name, its version.

A method is listed in `METHODS` by the name that conditions use. Its version
is part of every record's identity: raise it when its answers can change, and
only then (a golden-trace test fails when they change without it).
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..engine import Method
from ..words import nearest


@dataclass(frozen=True)
class Settings:
    """What all methods can be told.

    k: passages given to the reader, at most.
    own_candidates: search only the passages that came with the question (term
        statistics stay those of the whole corpus) instead of the whole corpus.
    prompt: the reading prompt's name (`methods.reading.PROMPTS`); None: stop
        after retrieval, no reader is called.
    max_new_tokens: longest answer of the reader, in tokens.
    """

    k: int = 3
    own_candidates: bool = False
    prompt: str | None = None
    max_new_tokens: int = 64

    def __post_init__(self):
        if self.k < 1:
            raise ValueError(f"k is {self.k}; it must be at least 1")
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {self.max_new_tokens}; it must be at least 1")


@dataclass(frozen=True)
class MethodSpec:
    """A method as conditions know it."""

    name: str
    version: int
    run: Method
    settings: type[Settings]
    source: str

    def configure(self, given: Mapping[str, Any]) -> Settings:
        """Settings from plain data; an unknown name is refused."""
        known = {f.name for f in dataclasses.fields(self.settings)}
        for name in given:
            if name not in known:
                raise ValueError(
                    f"method {self.name!r} has no setting {name!r}"
                    f"{nearest(name, known)}; it has: {', '.join(sorted(known))}"
                )
        return self.settings(**given)


# name -> where the module is that defines a MethodSpec called SPEC
METHODS = {
    "no_retrieval": "baselines.single_step:NO_RETRIEVAL",
    "single_step": "baselines.single_step:SINGLE_STEP",
    "gold_passages": "baselines.single_step:GOLD_PASSAGES",
    "qdc": "drrag.concatenation:QDC",
}


def get(name: str) -> MethodSpec:
    """The method of that name; an unknown name is refused with the nearest one."""
    if name not in METHODS:
        raise ValueError(
            f"there is no method {name!r}{nearest(name, METHODS)}; there are: "
            + ", ".join(sorted(METHODS))
        )
    module, attribute = METHODS[name].split(":")
    return getattr(importlib.import_module(f".{module}", __package__), attribute)
