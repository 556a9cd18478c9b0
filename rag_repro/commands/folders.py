"""Where commands read and write."""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

log = logging.getLogger(__name__)


def results_of(arguments: argparse.Namespace) -> Path:
    """The folder of records to read: the one that is given, or the checkout's."""
    from rag_repro.book_folders import here

    return arguments.results or here().records


def written_to(arguments: argparse.Namespace) -> Path:
    """The folder of records to add to: the one that is given, or the checkout's own of this user.

    Committed records are added to only where that is asked for (`--record`, `--continue`).
    """
    from rag_repro.book_folders import here

    if arguments.results and arguments.into_committed:
        raise ValueError(
            "--record and --continue add to the checkout's results; leave them or --results out"
        )
    return arguments.results or (here().records if arguments.into_committed else here().own_records)


def held_in(arguments: argparse.Namespace) -> Path:
    """The same as `results_of`, for who only reads: a mistyped folder must not read as "nobody
    has run it", and what the user ran is not passed over in silence."""
    from rag_repro.book_folders import here

    folder = results_of(arguments)
    if arguments.results and not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; --results names one with records")
    if not arguments.results and (own := here().own_records).is_dir():
        log.info("shown are committed records; what was run here is read with --results %s", own)
    return folder


KEPT = 20  # texts of commands, the newest


def kept(arguments: argparse.Namespace, results: Path, make: Callable[[], str]) -> str:
    """What `make` gives for these arguments and records, made once as long as nothing changes.

    Verdicts take half a minute of resampling. Kept in the cache folder under a hash of every file
    that counts, by name, size and time: records, times, papers' files and this package.
    """
    from rag_repro.digest import write_whole
    from rag_repro.lm.hub import WeightsError, cache_folder

    try:
        file = cache_folder() / "shown" / _state(arguments, results)
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, make())
            for old in sorted(file.parent.iterdir(), key=lambda p: -p.stat().st_mtime)[KEPT:]:
                old.unlink(missing_ok=True)
        return file.read_text(encoding="utf-8")
    except (OSError, WeightsError) as error:  # a cache is a help, no need
        log.debug("nothing is kept (%s)", error)
        return make()


def _state(arguments: argparse.Namespace, results: Path) -> str:
    """A hash of all that a command's text is made of: records and what is registered of them,
    papers, weights, code."""
    from rag_repro.arguments import path as as_path
    from rag_repro.digest import installed
    from rag_repro.lm import hub
    from rag_repro.study import papers, records, registration

    asked = {name: value for name, value in vars(arguments).items() if name != "run"}
    told = hashlib.sha256(repr([sorted(asked.items()), installed(("numpy", "scipy"))]).encode())
    beside = ("times", registration.FOLDER, registration.FILE, registration.UNCLEAN)
    held = [results, *filter(None, [records.committed(results)])]
    held += [root.parent / name for root in held for name in beside]
    held += [papers.PAPERS, as_path(os.environ.get(papers.ENVIRONMENT) or papers.PAPERS)]
    held += [hub.artifacts_folder(), hub.local_artifacts_folder(), Path(__file__).parents[1]]
    for folder in sorted(set(held)):
        for path in _files(folder):
            stat = path.stat()
            told.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return told.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    return (
        path
        for path in (folder, *sorted(folder.rglob("*")))
        if path.suffix not in (".pyc", ".lock", ".part") and path.is_file()
    )
