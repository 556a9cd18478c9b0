"""Where the book's parts lie inside a checkout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rag_repro.words import nearest


class PlaceError(ValueError):
    """A folder or a chapter that should be there is not."""


@dataclass(frozen=True, slots=True)
class BookFolders:
    """The folders of one book, all below `root`."""

    root: Path

    @property
    def notebooks(self) -> Path:
        """Sources: NN_name.py and its pair NN_name.ipynb, without outputs."""
        return self.root / "notebooks"

    @property
    def book(self) -> Path:
        """Pages that are written by hand or generated, and the built book."""
        return self.root / "book"

    @property
    def chapters(self) -> Path:
        """Executed copies of the default runs."""
        return self.book / "chapters"

    @property
    def runs(self) -> Path:
        """Executed copies of runs with other parameters (git ignores them)."""
        return self.root / "results" / "local" / "chapters"

    @property
    def records(self) -> Path:
        """The committed records that the default run shows."""
        return self.root / "results" / "records"

    @property
    def own_records(self) -> Path:
        """Records of whoever runs something here (git ignores them)."""
        return self.root / "results" / "local" / "records"

    @property
    def html(self) -> Path:
        return self.book / "_build" / "html"

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
