"""Sources of the chapters: NN_name.py is reviewed, NN_name.ipynb is its pair.

The pair is derived from the script alone, byte for byte the same each time
(ids of cells come from their text), so that a diff shows what was changed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from rag_repro.plain import PlainError, shortened, text_of
from rag_repro.publish.places import Places, here


class PairError(ValueError):
    """A source that is not a well-formed chapter script."""


# What every script's header must say. Papermill needs kernel and language; the
# version of jupytext is left out, since it would change without the chapter.
NOTEBOOK_METADATA = {
    "jupytext": {
        "cell_metadata_filter": "tags,-all",
        "formats": "ipynb,py:percent",
        "notebook_metadata_filter": (
            "kernelspec,jupytext,-jupytext.text_representation.jupytext_version"
        ),
    },
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
}


# jupytext reads a script's header and its cells' options with what comes to hand.
_JUPYTEXT = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


def read_source(source: Path) -> Any:
    """A script as a notebook (nbformat), with ids that depend on its text only."""
    import jupytext
    from nbformat import from_dict
    from nbformat.validator import NotebookValidationError
    from yaml import YAMLError

    try:
        book = jupytext.reads(text_of(source), fmt="py:percent")
    except (PlainError, OSError) as error:
        raise PairError(f"{source}: {error}") from error
    except (*_JUPYTEXT, YAMLError, NotebookValidationError) as error:
        raise PairError(f"{source} is no chapter script ({shortened(error)})") from error
    for key, wanted in NOTEBOOK_METADATA.items():
        held = book.metadata.get(key)
        told = {k: v for k, v in held.items() if k in wanted} if isinstance(held, dict) else {}
        if told != wanted:
            raise PairError(
                f"{source.name}: the header's `{key}` says {shortened(told)}, expected {wanted}"
            )
    book.metadata = from_dict(NOTEBOOK_METADATA)
    book.nbformat, book.nbformat_minor = 4, 5
    seen: dict[str, int] = {}
    for cell in book.cells:
        base = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:10]
        seen[base] = seen.get(base, 0) + 1
        cell.id = base if seen[base] == 1 else f"{base}-{seen[base]}"
    return book


def source_hash(source: Path) -> str:
    """What an executed copy must carry to be that of the present source."""
    cells = [
        [cell.cell_type, cell.source, cell.metadata.get("tags", [])]
        for cell in read_source(source).cells
    ]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def render(source: Path) -> str:
    """The pair's text."""
    return to_text(read_source(source))


def to_text(book: Any) -> str:
    """A notebook as JSON with sorted keys, one space an indent, and a last newline."""
    import nbformat

    return nbformat.writes(book, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


def pair(places: Places | None = None) -> list[Path]:
    """Write every script's pair; returns those that were changed."""
    places = places or here()
    changed = []
    for name in places.names():
        target = places.notebooks / f"{name}.ipynb"
        text = render(places.source(name))
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
            changed.append(target)
    return changed


def check_pairs(places: Places | None = None) -> list[str]:
    """What is wrong with scripts and pairs, a line each; empty where all is well."""
    from rag_repro.publish.parameters import ParameterError, guarded_name, parameters

    places = places or here()
    faults = []
    names = places.names()
    for name in names:
        source, target = places.source(name), places.notebooks / f"{name}.ipynb"
        try:
            text = render(source)
            parameters(name, places)
        except (PairError, ParameterError) as error:
            faults.append(str(error))
            continue
        if not target.is_file():
            faults.append(f"{source.name} has no pair; run `make pair`")
        elif target.read_text(encoding="utf-8") != text:
            faults.append(f"{target.name} is not the pair of {source.name}; run `make pair`")
        if guarded_name(source) != name:
            faults.append(f'{source.name} never calls chapter("{name}", globals())')
    for orphan in sorted({p.stem for p in places.notebooks.glob("*.ipynb")} - set(names)):
        faults.append(f"{orphan}.ipynb has no script {orphan}.py beside it")
    return faults


def main(arguments: list[str]) -> None:
    """`python -m rag_repro.publish.pairs [--check]`: write the pairs, or only look."""
    if arguments not in ([], ["--check"]):
        raise SystemExit("usage: python -m rag_repro.publish.pairs [--check]")
    if not arguments:
        pair()
    if faults := check_pairs():
        raise SystemExit("\n".join(faults))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
