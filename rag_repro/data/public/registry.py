"""What each public data set is, where it comes from, and what to beware of: `registry.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from ...plain import PlainError, fits, from_yaml, hints
from ...words import nearest
from .errors import UnknownName


class RegistryError(ValueError):
    """registry.yaml is wrong; the message says where."""


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
    if not isinstance(raw, dict) or not isinstance(raw.get("sets"), dict):
        raise RegistryError(f"{where}: a table with the key 'sets' is needed")
    if odd := sorted(map(str, raw.keys() - {"sets", "shared"})):
        raise RegistryError(f"{where}: unknown key {odd[0]!r}")
    made = {name: _source(name, one, f"{where}, {name}") for name, one in raw["sets"].items()}
    for one in made.values():
        if one.over is not None and one.over not in made:
            raise RegistryError(f"{where}, {one.name}: no data set {one.over!r} to search in")
    return MappingProxyType(made)


def _source(name: Any, raw: Any, where: str) -> Source:
    if not isinstance(raw, dict):
        raise RegistryError(f"{where}: not a table")
    if not isinstance(raw.get("official", []), list):
        raise RegistryError(f"{where}: 'official' is no list")
    official = tuple(_made(Official, o, f"{where}, official") for o in raw.get("official", []))
    return _made(Source, {**raw, "name": name, "official": official}, where)


def _made(cls: type, given: Any, where: str) -> Any:
    """cls(**given): each key a field, and of the kind that its annotation says."""
    if not isinstance(given, dict):
        raise RegistryError(f"{where}: not a table")
    known = {f.name: f for f in fields(cls)}
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in given.items()}
    for key, value in given.items():
        if key not in known:
            raise RegistryError(f"{where}: unknown key {key!r}{nearest(key, known)}")
        if not fits(value, hints(cls)[key]):
            raise RegistryError(f"{where}: {key!r} cannot be {value!r}; it is {known[key].type}")
    for key, field in known.items():
        if key not in given and field.default is MISSING:
            raise RegistryError(f"{where}: the key {key!r} is missing")
    return cls(**given)


def source(name: str) -> Source:
    """The entry of a data set; an unknown name is refused with the nearest one."""
    sets = registry()
    if name in sets:
        return sets[name]
    raise UnknownName(
        f"no public data set {name!r}{nearest(name, sets)}; there are: {', '.join(sets)}"
    )
