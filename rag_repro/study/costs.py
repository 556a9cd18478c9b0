"""What conditions ask and what their records took: counted from files, extrapolated where said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rag_repro.data import is_made_here
from rag_repro.study import campaign, manifests, records
from rag_repro.study.papers import Cell, Paper

Sizes = Mapping[tuple[str, str], int]
"""Data set and split -> questions that there are to ask."""


@dataclass(frozen=True)
class Spent:
    """What some conditions ask, and what was measured of it.

    conditions, and of these recorded: with at least one answer. wanted: answers asked for;
    unsized: conditions that ask "all" of a set whose size nobody knows here, which are not in it.
    answers: recorded. timed, seconds: answers in runs that came to their end, and how long these
    took; what the call cache had cost nothing, and runs may have shared the machine.
    """

    conditions: int = 0
    recorded: int = 0
    wanted: int = 0
    unsized: int = 0
    answers: int = 0
    timed: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        mine, theirs = vars(self), vars(other)
        return Spent(**{name: mine[name] + theirs[name] for name in mine})

    @property
    def left(self) -> int:
        """Answers that no record has yet."""
        return self.wanted - self.answers

    @property
    def each(self) -> float | None:
        """Seconds an answer, as measured; None where nothing was."""
        return self.seconds / self.timed if self.timed else None


def cells(papers: Iterable[Paper]) -> list[Cell]:
    """Every condition of these papers, each once though exhibits share it."""
    every = (paper.exhibits.values() for paper in papers)
    return campaign.once(c for exhibits in every for exhibit in exhibits for c in exhibit.cells())


def entries(cell: Cell, results: Path) -> list[dict[str, Any]]:
    """The runs that made the cell's record, as its manifest tells them."""
    return manifests.read(_folder(cell, results), cell.condition)


def recorded(cell: Cell, results: Path) -> int:
    """Answers in the cell's record.

    Its manifest does not tell: a run that was killed lags behind there, and a record that was
    made anew has the entries of both.
    """
    return len(records.at(_folder(cell, results), cell.condition.path) or ())


def _folder(cell: Cell, results: Path) -> Path:
    return records.times_beside(results, cell.exhibit) if cell.timed else results


def sizes(all_cells: Sequence[Cell], results: Path) -> dict[tuple[str, str], int]:
    """How many questions each data set has to ask: by the split file, of a world by its records.

    A world's is the most that any record holds or any condition asks.
    """
    found: dict[tuple[str, str], int] = {}
    for cell in all_cells:
        condition = cell.condition
        place = condition.label, condition.split
        if is_made_here(condition.dataset):
            most = max(recorded(cell, results), cell.n or 0)
            if most:
                found[place] = max(most, found.get(place, 0))
        elif place not in found and (there := cell.listed) is not None:
            found[place] = there
    return found


def short(cell: Cell, answers: int) -> str:
    """As "750 of 1,000 answers", where a record of so many lacks some; "" where it lacks none.

    Of a cell of all questions of a world, nobody knows how many these are without making it.
    """
    asked = campaign.least(cell.n, cell.listed)
    return f"{answers:,} of {asked:,} answers" if asked is not None and answers < asked else ""


def spent(cell: Cell, known: Sizes, results: Path) -> Spent:
    """What one condition asks and took."""
    there = known.get((cell.condition.label, cell.condition.split))
    asked = campaign.least(cell.n, there)
    answers = campaign.least(recorded(cell, results), asked)
    ended = [e for e in entries(cell, results) if "end" in e and e["questions"]]
    return Spent(
        conditions=1,
        recorded=int(answers > 0),
        wanted=asked or answers,
        unsized=int(asked is None),
        answers=answers,
        timed=sum(entry["questions"] for entry in ended),
        seconds=sum(
            (datetime.fromisoformat(e["end"]) - datetime.fromisoformat(e["start"])).total_seconds()
            for e in ended
        ),
    )


def machines(some: Iterable[Cell], results: Path) -> tuple[str, ...]:
    """Those that made these conditions' records, in words."""
    found = {entry["machine"] for cell in some for entry in entries(cell, results)}
    return tuple(sorted(found))


def passages(some: Iterable[Cell], results: Path) -> dict[str, int]:
    """Data set -> passages of its corpus, of those that have a record."""
    found: dict[str, int] = {}
    for cell in some:
        label = cell.condition.label
        if label in found or cell.timed:
            continue
        record = records.load(results, cell.condition)
        if record is not None and "passages" in record.header["fingerprint"]:
            found[label] = record.header["fingerprint"]["passages"]
    return found
