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


class Release(_Exact):
    """The official release of one data set: its page, and what is taken of which file."""

    page: str = Field(min_length=1)
    take: dict[_Name, _Path | dict[_Path, _Path]]
    _parts: tuple[Part, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._parts


class Sources(_Exact):
    """All of sources.yaml. ours: data set -> repositories the project's file was made from."""

    files: dict[_Name, File]
    releases: dict[str, Release]
    ours: dict[str, list[str]]

    @model_validator(mode="after")
    def _with_parts(self) -> Self:
        for release in self.releases.values():
            release._parts = tuple(_part(self.files, *taken) for taken in release.take.items())
        return self


@cache
def sources() -> Sources:
    """The package's own sources.yaml."""
    text = resources.files(__package__).joinpath("sources.yaml").read_text("utf-8")
    return parse(text)


def parse(text: str) -> Sources:
    """ValueError for anything that is unknown, missing, of the wrong kind or unsafe."""
    return Sources.model_validate(from_yaml(text))


def _part(files: Mapping[str, File], name: str, goes: str | dict[str, str]) -> Part:
    if name not in files:
        raise ValueError(f"no file {name!r}{nearest(name, files)}")
    packed = name.endswith(ARCHIVES)
    if packed != isinstance(goes, dict):
        raise ValueError(f"{name}: members are taken of archives, and only of them")
    file = files[name].model_copy(update={"name": name})
    return Part(file, f"{DOWNLOADS}/{name}", goes) if packed else Part(file, goes, {})
