"""What each public data set is, where it comes from, and what to beware of: `registry.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from rag_repro.data.public.record import UnknownName
from rag_repro.plain import from_yaml
from rag_repro.words import choices


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
    sets = from_yaml(text)["sets"]
    return MappingProxyType({name: _source(name, **facts) for name, facts in sets.items()})


def _source(name: str, *, official: Any = (), caveats: Any = (), **facts: Any) -> Source:
    known = tuple(Official(**one) for one in official)
    return Source(name, official=known, caveats=tuple(caveats), **facts)


def source(name: str) -> Source:
    """The entry of a data set; an unknown name is refused with the nearest one."""
    sets = registry()
    if name in sets:
        return sets[name]
    raise UnknownName(f"no public data set {name!r}{choices(name, sets, 'rag-repro data list')}")
