"""Where data sets come from: `sources.yaml`, read strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from ..plain import PlainError, from_yaml
from ..strict import Strict
from ..words import nearest

DOWNLOADS = "downloads"
ARCHIVES = (".zip", ".tar.gz", ".tgz")

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PATH = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)


class SourceError(ValueError):
    """sources.yaml is wrong; the message says where."""


_STRICT = Strict(SourceError)


@dataclass(frozen=True, slots=True)
class File:
    """One file as its authors publish it.

    url: None where no program can get it; by_hand then says what to do.
    bytes, sha256: as others publish them; None where nobody does.
    """

    name: str
    url: str | None = None
    by_hand: str | None = None
    bytes: int | None = None
    sha256: str | None = None


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

    name: str
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
    return parse(text, "sources.yaml")


def parse(text: str, where: str) -> Sources:
    """SourceError for anything that is unknown, missing, of the wrong kind or unsafe."""
    try:
        raw = from_yaml(text)
    except PlainError as error:
        raise SourceError(f"{where}: {error}") from error
    top = _only(raw, where, "files", "releases", "ours")
    files = {
        name: _file(name, entry, f"{where}, file {name}")
        for name, entry in _STRICT.table(top["files"], where).items()
    }
    releases = {
        name: _release(name, entry, files, f"{where}, release {name}")
        for name, entry in _STRICT.table(top["releases"], where).items()
    }
    taken = {part.file.name for r in releases.values() for part in r.parts}
    if idle := sorted(files.keys() - taken):
        raise SourceError(f"{where}: no release takes the file {idle[0]!r}")
    ours = {}
    for name, lines in _STRICT.table(top["ours"], where).items():
        if not (isinstance(lines, list) and all(isinstance(x, str) for x in lines)):
            raise SourceError(f"{where}, ours {name}: not a list of repositories")
        ours[name] = tuple(lines)
    return Sources(releases, ours)


def _file(name: str, raw: Any, where: str) -> File:
    file = _STRICT.made(File, {**_STRICT.table(raw, where), "name": name}, where)
    _check_inside(name, where)
    if "/" in name:
        raise SourceError(f"{where}: a name without folders is wanted")
    if (file.url is None) == (file.by_hand is None):
        raise SourceError(f"{where}: give either url or by_hand")
    if file.url is not None and urlsplit(_text(file.url, where)).scheme not in ("http", "https"):
        raise SourceError(f"{where}: the address {file.url!r} is not http or https")
    if file.by_hand is not None:
        _text(file.by_hand, where)
    if file.sha256 is not None and not _SHA256.fullmatch(_text(file.sha256, where)):
        raise SourceError(f"{where}: sha256 is not 64 small hex digits: {file.sha256!r}")
    if file.bytes is not None and file.bytes < 1:
        raise SourceError(f"{where}: bytes is no whole number above 0: {file.bytes!r}")
    return file


def _release(name: str, raw: Any, files: Mapping[str, File], where: str) -> Release:
    entry = _only(raw, where, "page", "take")
    parts = []
    for file, goes in _STRICT.table(entry["take"], where).items():
        if file not in files:
            raise SourceError(f"{where}: no file {file!r}{nearest(file, files)}")
        packed = file.endswith(ARCHIVES)
        if packed != isinstance(goes, dict):
            raise SourceError(f"{where}: {file}: members are taken of archives, and only of them")
        place = f"{DOWNLOADS}/{file}" if packed else goes
        part = Part(files[file], place, _STRICT.table(goes, where) if packed else {})
        for path in (*part.members, *part.targets):
            _check_inside(path, where)
        parts.append(part)
    return Release(name, _text(entry["page"], where), tuple(parts))


def _only(raw: Any, where: str, *keys: str) -> dict[str, Any]:
    return _STRICT.keys(raw, where, known=keys, needed=keys)


def _check_inside(path: Any, where: str) -> None:
    """A plain relative path: nothing else may name a place in the data folder."""
    if not _PATH.fullmatch(_text(path, where)):
        raise SourceError(f"{where}: {path!r} is no plain path inside the data folder")


def _text(value: Any, where: str) -> str:
    if not (isinstance(value, str) and value.strip()):
        raise SourceError(f"{where}: {value!r} is no text")
    return value
