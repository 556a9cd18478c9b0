"""Where commands read and write."""

from __future__ import annotations

import argparse
from pathlib import Path


def results_of(arguments: argparse.Namespace) -> Path:
    """The folder of records: the one that is given, or the checkout's."""
    from ..publish.places import here

    return arguments.results or here().records


def written_to(arguments: argparse.Namespace) -> Path:
    """The same, for who writes: where nothing can be written is told before the work."""
    from ..study.files import check_output

    folder = results_of(arguments)
    check_output(folder / "records")
    return folder


def held_in(arguments: argparse.Namespace) -> Path:
    """The same, for who only reads: a mistyped folder must not read as "nobody has run it"."""
    folder = results_of(arguments)
    if arguments.results and not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; --results names one with records")
    return folder
