"""Recorded questions asked again now: how many answers are the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ..data.titles import word
from ..study import again, papers
from ..study.papers import Cell
from ..study.scores import Results
from ..study.services import Workshop
from .picture import Note
from .table import Table


def table(
    cells: Sequence[Cell], results: Results, workshop: Workshop, calls: int, seed: int
) -> Table | Note:
    """How many answers of up to `calls` questions, drawn in turn from all conditions, are the same.

    A sentence, with a table of the conditions whose answers are not all the same, if any.
    Asked are those with a record whose index is at hand, since encoding a corpus anew would
    take minutes: `rag-repro run` does that.
    """
    cells = [cell for cell in cells if results.lines(cell)]
    unready = [cell for cell in cells if calls and not workshop.ready(cell.condition)]
    cells = [cell for cell in cells if cell not in unready]
    rng = np.random.default_rng(seed)
    ids = [[line["id"] for line in results.lines(cell)] for cell in cells]
    chosen: dict[int, list[str]] = defaultdict(list)
    for place, question in again.spread(
        ([(i, q) for q in rng.permutation(of_one)] for i, of_one in enumerate(ids)), calls
    ):
        chosen[place].append(str(question))
    # Cells of one exhibit may have keys that others lack, as the seed of a training.
    keys = list(dict.fromkeys(key for place in chosen for key in cells[place].keys))
    held = [
        again.Recorded(
            cells[place].condition,
            {line["id"]: line for line in results.lines(cells[place])},
            asked,
        )
        for place, asked in chosen.items()
    ]
    found = list(zip(chosen, again.live_check(held, workshop), strict=True))
    if not found:
        return Note("No recorded question was asked again here.")
    asked = sum(len(same) for _, same in found)
    alike = sum(sum(same.values()) for _, same in found)
    caption = f"{alike} of {asked} recorded answers came out the same on this machine, just now"
    if unready:
        left = f"{len(unready)} condition{'s' if len(unready) > 1 else ''}"
        caption += f"; {left} left out, whose index or weights are not here"
    if alike == asked:
        return Note(f"{caption}.")
    body = [
        [*(_said(cells[place], key) for key in keys), len(same), sum(same.values())]
        for place, same in found
        if not all(same.values())
    ]
    return Table([*keys, "asked again", "the same"], body, caption)


def _said(cell: Cell, key: str) -> str:
    value = cell.keys.get(key, "")
    if key == "method":
        _, exhibit = papers.exhibit(cell.exhibit)
        return exhibit.methods[value].label
    return word(str(value))
