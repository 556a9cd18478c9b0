"""Where data sets come from: `sources.yaml`, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rag_repro.plain import from_yaml
from rag_repro.words import nearest

DOWNLOADS = "downloads"
ARCHIVES = (".zip", ".tar.gz", ".tgz")

# Plain relative names and paths: nothing else may name a place in the data folder.
_Name = Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
_Path = Annotated[str, Field(pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$")]


class _Exact(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class File(_Exact):
    """One file as its authors publish it.

    url: None where no program can get it; by_hand then says what to do.
    bytes, sha256: as others publish them; None where nobody does.
    """

    name: str = ""
    url: str | None = Field(None, pattern=r"^https?://")
    by_hand: str | None = Field(None, min_length=1)
    bytes: int | None = Field(None, ge=1)
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")

    @model_validator(mode="after")
    def _either(self) -> Self:
        if (self.url is None) == (self.by_hand is None):
            raise ValueError("give either url or by_hand")
        return self


class _Taken(_Exact):
    page: str = Field(min_length=1)
    take: dict[_Name, _Path | dict[_Path, _Path]]


class _Yaml(_Exact):
    files: dict[_Name, File]
    releases: dict[str, _Taken]
    ours: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a release and where it goes, as paths in the data folder.

    place: where the download lies. members: of an archive, member -> target.
    """

    file: File
    place: str
    members: Mapping[str, str]

    @property
    def targets(self) -> tuple[str, ...]:
        """Where the official reader looks."""
        return tuple(self.members.values()) or (self.place,)


@dataclass(frozen=True, slots=True)
class Release:
    """The official release of one data set."""

    page: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """All of sources.yaml. ours: data set -> repositories the project's file was made from."""

    releases: Mapping[str, Release]
    ours: Mapping[str, tuple[str, ...]]


@cache
def sources() -> Sources:
    """The package's own sources.yaml."""
    text = resources.files(__package__).joinpath("sources.yaml").read_text("utf-8")
    return parse(text)


def parse(text: str) -> Sources:
    """ValueError for anything that is unknown, missing, of the wrong kind or unsafe."""
    raw = _Yaml.model_validate(from_yaml(text))
    files = {name: one.model_copy(update={"name": name}) for name, one in raw.files.items()}
    releases = {
        name: Release(one.page, tuple(_part(files, *taken) for taken in one.take.items()))
        for name, one in raw.releases.items()
    }
    return Sources(releases, {name: tuple(lines) for name, lines in raw.ours.items()})


def _part(files: Mapping[str, File], name: str, goes: str | dict[str, str]) -> Part:
    if name not in files:
        raise ValueError(f"no file {name!r}{nearest(name, files)}")
    packed = name.endswith(ARCHIVES)
    if packed != isinstance(goes, dict):
        raise ValueError(f"{name}: members are taken of archives, and only of them")
    return Part(files[name], f"{DOWNLOADS}/{name}", goes) if packed else Part(files[name], goes, {})
