"""What each public data set is, where it comes from, and what to beware of: `registry.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from ...plain import PlainError, from_yaml
from ...strict import Strict
from ...words import choices
from .errors import UnknownName


class RegistryError(ValueError):
    """registry.yaml is wrong; the message says where."""


_STRICT = Strict(RegistryError)


@dataclass(frozen=True, slots=True)
class Official:
    """A file name under which the authors publish a data set, and its format."""

    file: str
    format: str


@dataclass(frozen=True, slots=True)
class Source:
    """One data set.

    full_size: questions of the official file (None: not known).
    corpus: file in the project's layout whose passages join the pool.
    official: names to look for where the project's file is not there.
    gold_optional: a question may be without gold passages.
    answers_optional: a question may be without answers.
    multi_hop: gold passages are given roles.
    first_docs: only so many passages of each question are used.
    file: the project's file, where another than `<name>.jsonl.gz`.
    over: the data set whose corpus is searched; questions without an answer in it are left out.
    recurring: only the questions that `data.recurring` has of it.
    """

    name: str
    title: str
    paper: str
    source: str
    licence: str
    split: str
    full_size: int | None = None
    caveats: tuple[str, ...] = ()
    corpus: str | None = None
    official: tuple[Official, ...] = ()
    gold_optional: bool = False
    answers_optional: bool = False
    multi_hop: bool = False
    first_docs: int | None = None
    file: str | None = None
    over: str | None = None
    recurring: bool = False

    @property
    def project_file(self) -> str:
        return self.file or f"{self.name}.jsonl.gz"


@cache
def registry() -> Mapping[str, Source]:
    """Every public data set by name: the package's own registry.yaml."""
    text = resources.files(__package__).joinpath("registry.yaml").read_text("utf-8")
    return parse(text, "registry.yaml")


def parse(text: str, where: str) -> Mapping[str, Source]:
    """The data sets that a text lists under `sets`; `shared` holds what aliases point to.

    Raises RegistryError for anything that is unknown, missing or of the wrong kind.
    """
    try:
        raw = from_yaml(text)
    except PlainError as error:
        raise RegistryError(f"{where}: {error}") from error
    sets = _STRICT.keys(raw, where, known=("sets", "shared"), needed=("sets",))["sets"]
    made = {
        name: _source(name, one, f"{where}, {name}")
        for name, one in _STRICT.table(sets, where).items()
    }
    for one in made.values():
        if one.over is not None and one.over not in made:
            raise RegistryError(f"{where}, {one.name}: no data set {one.over!r} to search in")
    return MappingProxyType(made)


def _source(name: str, raw: Any, where: str) -> Source:
    there = f"{where}, official"
    named = _STRICT.listed(_STRICT.table(raw, where).get("official"), there)
    official = tuple(_STRICT.made(Official, one, there) for one in named)
    given = {**_STRICT.tuples(raw, where), "name": name, "official": official}
    return _STRICT.made(Source, given, where)


def source(name: str) -> Source:
    """The entry of a data set; an unknown name is refused with the nearest one."""
    sets = registry()
    if name in sets:
        return sets[name]
    raise UnknownName(f"no public data set {name!r}{choices(name, sets, 'rag-repro data list')}")
