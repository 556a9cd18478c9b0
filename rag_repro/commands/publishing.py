"""The book."""

from __future__ import annotations

import argparse


def chapter(arguments: argparse.Namespace) -> None:
    """The executed copy is written to results/local/chapters/; --update writes the book's own."""
    from rag_repro.places import here

    from ..publish import execute, parameters

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
    from rag_repro.places import here

    from ..publish import build

    only = [*map(here().name_of, arguments.only)]
    print(build.build_book(only=only, force=arguments.force, jobs=arguments.jobs))
