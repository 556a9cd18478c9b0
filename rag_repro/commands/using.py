"""The methods themselves, without a paper's exhibit; and the book."""

from __future__ import annotations

import argparse
import textwrap
from typing import get_type_hints


def methods(arguments: argparse.Namespace) -> None:
    """What each does, its paper, what it needs, what it costs, its settings with their values."""
    from rag_repro.methods import systems
    from rag_repro.study.setups import listing

    wanted = [systems.get(name).name for name in arguments.name]
    for one in listing():
        if wanted and one["name"] not in wanted:
            continue
        print(f"{one['name']}: {one['does']}")
        for key in ("paper", "needs", "costs", "retriever", "settings", "example"):
            print(textwrap.fill(f"  {key}: {one[key]}", 100, subsequent_indent="    "))


def compare_methods(arguments: argparse.Namespace) -> None:
    """The file has the arguments of `rag_repro.compare` by name, as `methods: {dragin: {threshold:
    [0.2, 1.0]}, bm25-rag: {}}` and `dataset: folder:texts`. Paths in it are of the folder in which
    you call. What is answered already is not asked again."""
    from rag_repro.comparison import compare
    from rag_repro.plain import fits, from_yaml, shortened
    from rag_repro.study.services import Workshop

    given = from_yaml(arguments.file.read_text(encoding="utf-8"))
    if not isinstance(given, dict) or not {"methods", "dataset"} <= given.keys():
        raise ValueError(
            f"{arguments.file}: name methods and a dataset, as `methods: [drrag, bm25-rag]` and "
            "`dataset: folder:texts`"
        )
    known = get_type_hints(compare)
    for key, value in given.items():
        if key in ("services", "return") or not isinstance(key, str):
            raise ValueError(f"{arguments.file}: {key!r} cannot be given in a file; leave it out")
        if key in known and not fits(value, known[key]):
            raise ValueError(f"{arguments.file}: {key} cannot be {shortened(repr(value), 60)}")
    services = Workshop(data_dir=arguments.data, device=arguments.device, dtype=arguments.dtype)
    made = compare(**given, services=services)
    if arguments.format == "csv":
        print(made.to_frame().to_csv(index=False), end="")
    else:
        print(made)


def chapter(arguments: argparse.Namespace) -> None:
    """The executed copy is written to results/local/chapters/; --update writes the book's own."""
    from rag_repro.book_folders import here
    from rag_repro.publish import build, parameters

    given = {name: parameters.parse_value(value) for name, value in arguments.parameter}
    if len(given) < len(arguments.parameter):
        names = [name for name, _ in arguments.parameter]
        raise ValueError(f"-p gives {max(names, key=names.count)!r} twice; give each value once")
    print(
        build.execute(
            here().name_of(arguments.name),
            given,
            kernel=arguments.kernel,
            out=arguments.out,
            update=arguments.update,
        )
    )


def book(arguments: argparse.Namespace) -> None:
    """Prints the path of the front page."""
    from rag_repro.book_folders import here
    from rag_repro.publish import build

    only = [*map(here().name_of, arguments.only)]
    print(build.build_book(only=only, force=arguments.force, jobs=arguments.jobs))
