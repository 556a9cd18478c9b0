"""The book."""

from __future__ import annotations

import argparse


def chapter(arguments: argparse.Namespace) -> None:
    """A default run is kept in book/chapters/, any other in results/local/chapters/."""
    from ..publish import execute, parameters

    given = {name: parameters.parse_value(value) for name, value in arguments.parameter}
    if len(given) < len(arguments.parameter):
        names = [name for name, _ in arguments.parameter]
        raise ValueError(f"-p gives {max(names, key=names.count)!r} twice; give each value once")
    out = execute.execute(arguments.name, given, kernel=arguments.kernel, out=arguments.out)
    print(out)


def book(arguments: argparse.Namespace) -> None:
    """Prints the path of the front page."""
    from ..publish import build

    print(build.build_book(only=arguments.only, force=arguments.force, jobs=arguments.jobs))
