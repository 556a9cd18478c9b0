"""What is not run: one sentence for it, with the commands that make what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_repro.evaluation.verdicts import NOT_RUN
from rag_repro.show.escape import as_code, as_html, as_myst
from rag_repro.show.picture import Note
from rag_repro.study import names
from rag_repro.study.papers import Cell
from rag_repro.study.scores import Results

if TYPE_CHECKING:
    from rag_repro.show import exhibit_rows

NOTHING = "this exhibit has no such condition at this tier"
UNTOLD = "the records of this exhibit hold nothing of this kind"


@dataclass(frozen=True)
class Missing:
    """What stands in place of a number; commands: what makes it, in their order; why: in a word."""

    commands: tuple[str, ...] = ()
    why: str = NOT_RUN

    def __str__(self) -> str:
        return self._with(as_code)

    def __html__(self) -> str:
        """For a cell of a table on a page."""
        return self._with(lambda command: f"<code>{as_html(command)}</code>")

    def _with(self, code) -> str:
        return ": ".join(filter(None, (self.why, ", then ".join(map(code, self.commands)))))

    @property
    def note(self) -> Note:
        """For a table or figure that is not there at all."""
        return _sentence(str(self))


def of_cells(cells: Iterable[Cell]) -> Missing:
    """What makes the cells' records: first the training of what is not there."""
    cells = list(cells)
    train = [command for cell in cells for command in untrained(cell)]
    return Missing(tuple(dict.fromkeys([*train, *map(_command, cells)])))


def note(cells: Sequence[Cell], results: Results, caption: str = "") -> Note:
    """In place of what the cells would show, with what makes the records that they lack.

    caption: that of the table or figure, which says what is not shown where
    nothing could be run: there is no cell, or all have records that do not tell.
    """
    lacking = [cell for cell in cells if not results.lines(cell)]
    if lacking:
        return of_cells(lacking).note
    return _sentence(UNTOLD if cells else NOTHING, caption)


def _sentence(text: str, caption: str = "") -> Note:
    return Note(f"{as_myst(caption)}: {text}." if caption else f"{text[:1].upper()}{text[1:]}.")


def note_of_rows(rows: Iterable[exhibit_rows.Row], verb: str = "run") -> Note:
    """In place of what an exhibit's rows would show, of which none has a value of ours.

    verb: "time" for exhibits that are timed.
    """
    waiting = (row for row in rows if row.ours is None and row.note.startswith(NOT_RUN))
    commands = dict.fromkeys(run_command(row.exhibit, row.tier, verb) for row in waiting)
    return Missing(tuple(commands)).note if commands else _sentence(NOTHING)


def run_command(exhibit: str, tier: str, verb: str = "run") -> str:
    return f"rag-repro {verb} {exhibit} --tier {tier}"


def _command(cell: Cell) -> str:
    """What makes the cell's records; of a timed one with those that it is compared with."""
    if cell.timed:
        return f"rag-repro time {cell.exhibit} --dataset {cell.keys['dataset']}"
    return run_command(cell.exhibit, cell.tier)


def untrained(cell: Cell) -> list[str]:
    """What trains the cell's readers and classifiers, of those that are not there."""
    condition = cell.condition
    return list(names.untrained(condition.reader, condition.configured.needs).values())
