"""Sources of the chapters: NN_name.py is reviewed, NN_name.ipynb is its pair.

The pair is derived from the script alone, byte for byte the same each time
(ids of cells come from their text), so that a diff shows what was changed.
What editors write into both of their own accord (the kernel's display name,
ids, counts) is no content: nothing compares it, and `pair` removes it.
"""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

from rag_repro import logs
from rag_repro.book_folders import BookFolders, here
from rag_repro.digest import write_whole
from rag_repro.plain import PlainError, from_json, shortened, text_of


class PairError(ValueError):
    """A source that is not a well-formed chapter script."""


log = logging.getLogger(__name__)

# What every script's header says. Papermill needs kernel and language; the
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
    """A script as a notebook (nbformat) with its content alone: cells, their tags, ids that
    depend on their text. PairError where it is no script, or one of another language."""
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
    kernel = book.metadata.get("kernelspec")
    language = kernel.get("language", "python") if isinstance(kernel, dict) else "python"
    if language != "python":
        raise PairError(
            f"{source.name}: its kernel's language is {shortened(language)}; choose a Python kernel"
        )
    book.metadata = from_dict(NOTEBOOK_METADATA)
    for cell in book.cells:
        kept = ("tags", "lines_to_next_cell")  # which are blank lines of the script
        held = {k: v for k, v in cell.metadata.items() if k in kept and v != []}
        cell.metadata = type(cell.metadata)(held)
    book.nbformat, book.nbformat_minor = 4, 5
    seen: dict[str, int] = {}
    for cell in book.cells:
        base = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:10]
        seen[base] = seen.get(base, 0) + 1
        cell.id = base if seen[base] == 1 else f"{base}-{seen[base]}"
    return book


def _cells(book: Any) -> list[list]:
    return [[cell.cell_type, cell.source, cell.metadata.get("tags", [])] for cell in book.cells]


def source_hash(source: Path) -> str:
    """What an executed copy must carry to be that of the present source."""
    return hashlib.sha256(json.dumps(_cells(read_source(source))).encode()).hexdigest()


def run_of(path: Path) -> dict[str, Any] | None:
    """What an executed copy tells of its run; None where it is no whole notebook of ours."""
    try:
        block = from_json(text_of(path))["metadata"]["rag_repro"]
    except (PlainError, OSError, KeyError, TypeError):
        return None
    return block if isinstance(block, dict) else None


def read_notebook(path: Path) -> Any:
    """What the file holds, as of the present format; None where it is no notebook."""
    import nbformat
    from nbformat.reader import NotJSONError

    try:
        return nbformat.reads(text_of(path), as_version=4)
    except (PlainError, OSError, NotJSONError, nbformat.ValidationError, *_JUPYTEXT):
        return None


def to_text(book: Any) -> str:
    """A notebook as JSON with sorted keys, one space an indent, and a last newline."""
    import nbformat

    return nbformat.writes(book, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


def pair(places: BookFolders | None = None) -> list[Path]:
    """Write every script's pair, and the script where an editor put something of its own into
    it; returns those that were changed. The log says which, and whether outputs were dropped."""
    import jupytext

    places = places or here()
    changed = []
    for name in places.names():
        source, target = places.source(name), places.notebooks / f"{name}.ipynb"
        book = read_source(source)
        script = jupytext.writes(book, fmt="py:percent")
        for path, text in ((source, script), (target, to_text(book))):
            if path.is_file() and path.read_bytes() == text.encode():
                continue
            dropped = (
                " without the outputs that it held" if _has_outputs(read_notebook(path)) else ""
            )
            write_whole(path, text)
            log.info("wrote %s%s", path.name, dropped)
            changed.append(path)
    return changed


def _has_outputs(book: Any) -> bool:
    return book is not None and any(cell.get("outputs") for cell in book.cells)


def check_pairs(places: BookFolders | None = None) -> list[str]:
    """What is wrong with scripts and pairs, a line each; empty where all is well."""
    from rag_repro.publish.parameters import ParameterError, guarded_name, parameters

    places = places or here()
    faults = []
    names = places.names()
    for name in names:
        source, target = places.source(name), places.notebooks / f"{name}.ipynb"
        try:
            parameters(name, places)
        except (PairError, ParameterError) as error:
            faults.append(str(error))
            continue
        if not target.is_file():
            faults.append(f"{source.name} has no pair; run `make pair`")
        elif (book := read_notebook(target)) is None or _cells(book) != _cells(read_source(source)):
            faults.append(f"{target.name} is not the pair of {source.name}; run `make pair`")
        elif _has_outputs(book):
            faults.append(f"{target.name} holds outputs; run `make pair`, which leaves them out")
        if guarded_name(source) != name:
            faults.append(f'{source.name} never calls chapter("{name}", globals())')
    for orphan in sorted({p.stem for p in places.notebooks.glob("*.ipynb")} - set(names)):
        faults.append(f"{orphan}.ipynb has no script {orphan}.py beside it")
    return faults


def main(arguments: list[str]) -> None:
    """`python -m rag_repro.publish.notebook_pairs [--check]`: write the pairs, or only look."""
    if arguments not in ([], ["--check"]):
        raise SystemExit("usage: python -m rag_repro.publish.notebook_pairs [--check]")
    if not arguments:
        logs.to_stderr()
        pair()
    if faults := check_pairs():
        raise SystemExit("\n".join(faults))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
