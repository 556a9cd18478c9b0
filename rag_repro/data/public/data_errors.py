"""What can be wrong with a data file: each error names file, place and remedy."""

from __future__ import annotations

from pathlib import Path

from rag_repro.plain import escaped, shortened


class DataError(ValueError):
    """A public data set cannot be read as it stands.

    `path` and `place` ("line 12", "record 3", or "" for the whole file) say
    where; the message ends with what to do next.
    """

    def __init__(self, path: Path | str, place: str, problem: str, remedy: str):
        self.path, self.place = Path(path), place
        # A place may name a key of the file, which may be of any length.
        where = f"{path}, {shortened(place)}" if place else str(path)
        super().__init__(escaped(f"{where}: {shortened(problem, 400)}; {remedy}"))


class MissingFile(DataError):
    """The file, or its folder, is not there."""


class UnknownName(ValueError):
    """No such data set, format or split; the message has the nearest name."""
