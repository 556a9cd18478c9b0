"""Official releases into the data folder: downloaded, checked, unpacked.

No name in an archive ever becomes a path here: members are copied to where sources.yaml says.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from rag_repro.arguments import path as as_path
from rag_repro.data import ENVIRONMENT, check_name
from rag_repro.data.download import FetchError, download, without_query
from rag_repro.data.public import MissingFile, registry, source
from rag_repro.data.sources import File, Part, Release, sources
from rag_repro.digest import replacing
from rag_repro.digest import sha256 as sha256_of

log = logging.getLogger(__name__)

_DELETE = "delete it, and fetch it again or get it from the data set's page"
_SHA256 = re.compile(r"[0-9a-f]{64}")


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
    Files that are there already are not downloaded again; those whose SHA-256 is known are checked.

    Raises FetchError, UnknownName.
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
            "%s is there as well, and is what `load` takes by name; for the release name its file, "
            "as %s:%s (or move %s away)",
            *(own, entry.official[0].format, found[0], own.name),
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
    """The part's files; file: what is to be downloaded for it."""
    place = folder / part.place
    targets = [folder / target for target in part.targets]
    if part.members and all(target.is_file() for target in targets):
        log.info("already here: %s", ", ".join(map(str, targets)))
        return targets
    if place.is_file():
        got = sha256_of(place)
        if file.sha256 not in (None, got):
            raise FetchError(
                f"{place} is there but is another file: SHA-256 {file.sha256} was expected, it has "
                f"{got}; move it away and fetch it again"
            )
        log.info("already here: %s: SHA-256 %s%s", place, got, _expected(file))
    elif file.url is None:
        raise FetchError(
            f"{file.name} has to be got by hand: {file.by_hand}; put it at {place} and give this "
            "command again, which then checks and unpacks it"
        )
    else:
        log.info("downloading %s from %s", file.name, without_query(file.url))
        got = download(file.url, place, size=file.bytes, sha256=file.sha256)
        log.info("%s: SHA-256 %s%s", place, got, _expected(file))
    if part.members:
        members = {m: folder / target for m, target in part.members.items()}
        unpack(place, {m: target for m, target in members.items() if not target.is_file()})
        log.info("%s: unpacked; the archive is no longer needed", place)
    return targets


def _expected(file: File) -> str:
    return ", as expected" if file.sha256 else "; nobody has stated what it should be"


def unpack(archive: Path, members: Mapping[str, Path]) -> None:
    """Copy each member of a zip or tar.gz file to its target: all of them, or none.

    A member is a file named by the end of its path in the archive ("dev.json"
    finds "release/dev.json"); what fits two files is refused. Targets that
    exist are replaced.

    Raises FetchError, with the archive's name, the member and what to do.
    """
    try:
        with _opened(archive) as (names, read), ExitStack() as parts:
            entries = [_entry(archive, member, names) for member in members]
            for name, target in zip(entries, members.values(), strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                part = parts.enter_context(replacing(target))
                with read(name) as content, part.open("xb") as out:
                    shutil.copyfileobj(content, out)
    except FetchError:
        raise
    # RuntimeError: a password, or a compression that Python does not know.
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError) as error:
        raise FetchError(f"{archive} is damaged ({error}); {_DELETE}") from error
    except (OSError, ValueError) as error:
        raise FetchError(f"{archive} cannot be unpacked ({error}); {_DELETE}") from error


@contextmanager
def _opened(archive: Path) -> Iterator[tuple[list[str], Callable[[str], BinaryIO]]]:
    """The names of the regular files in an archive, and what opens one by its name."""
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as opened:
            yield [info.filename for info in opened.infolist() if not info.is_dir()], opened.open
    else:
        with tarfile.open(archive, "r:gz") as opened:
            yield [info.name for info in opened if info.isreg()], opened.extractfile


def _entry(archive: Path, member: str, names: Sequence[str]) -> str:
    found = [name for name in names if f"/{name}".endswith(f"/{member}")]
    if not found:
        raise FetchError(f"{archive}: there is no {member!r} in it; {_DELETE}")
    if len(found) > 1:
        raise FetchError(
            f"{archive}: both {found[0]!r} and {found[1]!r} could be the member {member!r}; "
            f"{_DELETE}"
        )
    return found[0]
