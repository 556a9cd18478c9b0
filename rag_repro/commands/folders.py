"""Where commands read and write."""

from __future__ import annotations

import argparse
import logging
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
