"""Official releases into the data folder: downloaded, checked, unpacked.

Where sources.yaml has no SHA-256 of a file, the one of the first download is
trusted: it is kept beside the file (`<name>.sha256`, as sha256sum writes it),
and whatever comes later must have it. Members of an archive get one as well,
so that a file that was changed since is noticed.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from rag_repro.arguments import path as as_path
from rag_repro.data import ENVIRONMENT, check_name
from rag_repro.data.archives import unpack
from rag_repro.data.download import download, without_query
from rag_repro.data.public import MissingFile, registry, source
from rag_repro.data.sources import File, Part, Release, sources
from rag_repro.digest import sha256 as sha256_of
from rag_repro.digest import write_whole

log = logging.getLogger(__name__)

_RECORD = re.compile(r"([0-9a-f]{64}) [ *].+\n?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class FetchError(ValueError):
    """A release cannot be had as asked; the message says what to do instead."""


def fetch(
    name: str,
    data_dir: Path | str | None = None,
    *,
    url: str | None = None,
    sha256: str | None = None,
) -> list[Path]:
    """The official release of a data set -> its files where `load` looks for them.

    data_dir: by default the folder that RAG_REPRO_DATA names; made if need be.
    url: another address; one that ends in "/" is a folder with the files under
    their names. sha256: what the (one) file must have, instead of what is known.
    Files that are there already are checked and not downloaded again.

    Raises FetchError, DownloadError, ArchiveError, UnknownName.
    """
    release = _release(name)
    folder = _folder(name, data_dir)
    if len(release.parts) > 1 and (sha256 or (url and not url.endswith("/"))):
        files = ", ".join(part.file.name for part in release.parts)
        raise FetchError(
            f"{name} has several files ({files}): end --url in / where they lie under these names"
            ", and give no --sha256"
        )
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise FetchError(f"--sha256 {sha256!r}: 64 small hex digits are wanted")
    entry = source(name)
    log.info("%s: licence %s; see %s", entry.title, entry.licence, release.page)
    found: list[Path] = []
    for part in release.parts:
        file = part.file
        if url:
            file = file.model_copy(update={"url": url + file.name if url.endswith("/") else url})
        if sha256:
            file = file.model_copy(update={"sha256": sha256, "bytes": None})
        found += _part(part, file, folder)
    if (own := folder / entry.project_file).exists():
        log.info(
            "%s is there as well, and is what `load` takes by name; for the release name its file "
            "with path= (or move %s away)",
            own,
            own.name,
        )
    return found


def _release(name: str) -> Release:
    check_name(name)
    if name not in registry():
        raise FetchError(f"{name} is generated or your own, not downloaded: use it by its name")
    releases = sources().releases
    if name not in releases:
        raise FetchError(
            f"{name} has no release of its own to fetch: {source(name).project_file} was made for "
            f"this project (rag-repro data card {name}); there are releases of: "
            f"{', '.join(releases)}"
        )
    return releases[name]


def _folder(name: str, data_dir: Path | str | None) -> Path:
    named = data_dir if data_dir is not None else os.environ.get(ENVIRONMENT)
    if not named:
        raise MissingFile(
            name,
            "",
            "no folder of real data is named",
            f"set {ENVIRONMENT} to the folder that it shall go to, or give --data",
        )
    return as_path(named)


def _part(part: Part, file: File, folder: Path) -> list[Path]:
    """The part's files, each checked; file: what is to be downloaded for it."""
    place = folder / part.place
    targets = [folder / target for target in part.targets]
    absent = [target for target in targets if not target.is_file()]
    for target in targets:
        if target not in absent:
            _check(target, None if part.members else file.sha256)
    if not absent:
        return targets
    if part.members and place.is_file():
        _check(place, file.sha256)
    elif file.url is None:
        raise FetchError(
            f"{file.name} has to be got by hand: {file.by_hand}; put it at {place} and give this "
            "command again, which then checks and unpacks it"
        )
    else:
        log.info("downloading %s from %s", file.name, without_query(file.url))
        held = file.sha256 or recorded(place)
        got = download(file.url, place, size=file.bytes, sha256=held)
        _record(place, got)
        log.info(_FIRST if held is None else _AS_EXPECTED, place, got)
    if part.members:
        unpack(place, {m: folder / t for m, t in part.members.items() if folder / t in absent})
        for target in absent:
            _record(target, sha256_of(target))
        log.info("%s: unpacked; the archive is no longer needed", place)
    return targets


_AS_EXPECTED = "%s: SHA-256 %s, as expected"
_FIRST = (
    "%s: SHA-256 %s. Nobody has stated what it should be, so these bytes are trusted: it is kept "
    "beside the file, and later downloads are held to it"
)


def _check(path: Path, expected: str | None) -> None:
    """Hold a file that is there to what is expected or recorded; the first look records it.

    FetchError where the bytes are others.
    """
    held = expected or recorded(path)
    got = sha256_of(path)
    if held is None:
        _record(path, got)
    elif got != held:
        raise FetchError(
            f"{path} is there but is another file: SHA-256 {held} was expected, it has {got}; "
            "move it away and fetch it again"
        )
    log.info("already here: " + (_FIRST if held is None else _AS_EXPECTED), path, got)


def recorded(path: Path) -> str | None:
    """The SHA-256 kept beside a file, or None. FetchError where the note is no such note."""
    if not (note := _note_of(path)).exists():
        return None
    if (found := _RECORD.fullmatch(note.read_text(encoding="utf-8", errors="replace"))) is None:
        raise FetchError(f"{note} holds no SHA-256; delete it to trust the next download anew")
    return found[1]


def _note_of(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _record(path: Path, sha256: str) -> None:
    write_whole(_note_of(path), f"{sha256}  {path.name}\n")
