"""The book."""

from __future__ import annotations

import argparse


def chapter(arguments: argparse.Namespace) -> None:
    """The executed copy is written to results/local/chapters/; --update writes the book's own."""
    from ..publish import execute, parameters
    from ..publish.places import here

    given = {name: parameters.parse_value(value) for name, value in arguments.parameter}
    if len(given) < len(arguments.parameter):
        names = [name for name, _ in arguments.parameter]
        raise ValueError(f"-p gives {max(names, key=names.count)!r} twice; give each value once")
    print(
        execute.execute(
            here().name_of(arguments.name),
            given,
            kernel=arguments.kernel,
            out=arguments.out,
            update=arguments.update,
        )
    )


def book(arguments: argparse.Namespace) -> None:
    """Prints the path of the front page."""
    from ..publish import build
    from ..publish.places import here

    only = [*map(here().name_of, arguments.only)]
    print(build.build_book(only=only, force=arguments.force, jobs=arguments.jobs))
