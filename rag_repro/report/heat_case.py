"""A worked question for a heat map: chosen from records, answered again to be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data import is_made_here
from ..evaluation import metrics
from ..study import again
from ..study.papers import Cell
from ..study.scores import Results
from ..study.services import Workshop
from . import missing
from .heat import HeatMap
from .picture import Note
from .rounds import Shown

Line = Mapping[str, Any]


def case(
    cells: Mapping[str, Cell],
    results: Results,
    workshop: Workshop,
    caption: str = "",
    name: str = "",
) -> HeatMap | Note:
    """One question by methods of dynamic retrieval, each under its label; the first is shown.

    Of the questions that all have recorded the first that shows most of what there is to
    see: the first method searches at an alarm, its answer is right, those of the others are
    wrong, and it writes as few tokens as any such: a reader that is lost repeats itself. So it
    illustrates and proves nothing. Traces are in no record: the question is
    asked again now, of readers and indexes that must be here. Texts of public data sets
    are not shown.
    """
    if not all(is_made_here(cell.condition.dataset) for cell in cells.values()):
        return Note("Texts of public data sets are not shown here.")
    held = [results.lines(cell) for cell in cells.values()]
    if not cells or None in held:
        return missing.note(list(cells.values()), results, caption)
    chosen = choose(held)
    if chosen is None:
        return Note("No question has been answered by all of these methods.")
    unready = [cell for cell in cells.values() if workshop.lacks(cell.condition)]
    if unready:
        return missing.note_of_cells(unready, caption)
    condition = next(iter(cells.values())).condition
    dataset = workshop.dataset(condition.dataset, condition.split)
    question = dataset.by_id[chosen]
    answers = again.answered([(cell.condition, question) for cell in cells.values()], workshop)
    shown = [
        Shown(label, answer, cell.condition.configured)
        for (label, cell), answer in zip(cells.items(), answers, strict=True)
    ]
    titles = {name: passage.title for name, passage in dataset.corpus.by_id.items()}
    return HeatMap(question, shown, titles, caption, name)


def choose(held: Sequence[Sequence[Line]]) -> str | None:
    """The id of the question to show, from the methods' lines; None: none in common."""
    first, *others = held
    by_id = [{line["id"]: line for line in lines} for lines in others]
    common = [line for line in first if all(line["id"] in lines for lines in by_id)]

    def shows(line: Line) -> tuple[bool, bool, bool, float]:
        rest = (lines[line["id"]] for lines in by_id)
        alarms = bool(metrics.of_line("alarms", line))
        right = bool(metrics.of_line("em", line))
        alone = not any(metrics.of_line("em", one) for one in rest)
        return alarms, alarms and right, alone, -(metrics.of_line("new_tokens", line) or 0)

    # Of equals `max` takes the first.
    return max(common, key=shows)["id"] if common else None
