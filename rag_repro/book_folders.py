"""Where the book's parts lie inside a checkout."""

from __future__ import annotations

from pathlib import Path

from rag_repro.words import nearest


class PlaceError(ValueError):
    """A folder or a chapter that should be there is not."""


class BookFolders:
    """The folders of one book, all below `root`."""

    def __init__(self, root: Path):
        self.root = root
        # Sources: NN_name.py and its pair NN_name.ipynb, without outputs.
        self.notebooks = root / "notebooks"
        # Pages that are written by hand or generated, and the built book.
        self.book = root / "book"
        self.html = self.book / "_build" / "html"
        # Executed copies of the default runs, and of runs with other parameters (git ignores them).
        self.chapters = self.book / "chapters"
        self.runs = root / "results" / "local" / "chapters"
        # The committed records that the default run shows, and those of whoever runs something
        # here (git ignores them).
        self.records = root / "results" / "records"
        self.own_records = root / "results" / "local" / "records"

    def names(self) -> list[str]:
        """Every chapter's name, in the order of the numbers."""
        return sorted(path.stem for path in self.notebooks.glob("[0-9]*_*.py"))

    def name_of(self, start: str) -> str:
        """The chapter that is called so, or the only one whose name begins so, as "30".

        PlaceError, with the nearest names, where none or several do.
        """
        known = self.names()
        found = [start] if start in known else [k for k in known if start and k.startswith(start)]
        if len(found) > 1:
            several = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
            raise PlaceError(f"{len(found)} chapters begin with {start!r}: {several}; write more")
        return found[0] if found else self.source(start).stem

    def source(self, name: str) -> Path:
        """The reviewed source of a chapter; PlaceError with the nearest name else."""
        if name not in self.names():
            raise PlaceError(f"no chapter {name!r} in notebooks/{_meant(name, self)}")
        return self.notebooks / f"{name}.py"

    def executed(self, name: str) -> Path:
        return self.chapters / f"{name}.ipynb"


def _meant(name: str, places: BookFolders) -> str:
    """A hint on what was meant; a number alone or a part of the name will do."""
    known = places.names()
    partial = [k for k in known if name and name in k]
    return f", did you mean {partial[0]!r}?" if len(partial) == 1 else nearest(name, known)


def here(start: Path | None = None) -> BookFolders:
    """The checkout around `start` (the working folder), else the package's own.

    Raises PlaceError where the package was installed without its notebooks.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents, Path(__file__).resolve().parents[1]):
        if (folder / "notebooks").is_dir() and (folder / "_toc.yml").is_file():
            return BookFolders(folder)
    raise PlaceError(
        "no book around this folder: work inside a checkout of the project, "
        "where notebooks/ and _toc.yml are"
    )
