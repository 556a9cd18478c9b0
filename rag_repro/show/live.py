"""Recorded questions asked again now: how many answers are the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from rag_repro.data.titles import word
from rag_repro.show.picture import Note
from rag_repro.show.table import Table
from rag_repro.study import again, papers
from rag_repro.study.papers import Cell
from rag_repro.study.scores import Results
from rag_repro.study.services import Workshop


def table(
    cells: Sequence[Cell], results: Results, workshop: Workshop, calls: int, seed: int
) -> Table | Note:
    """How many answers of up to `calls` questions, drawn in turn from all conditions, are the same.

    A sentence, with a table of the conditions whose answers are not all the same, if any.
    Asked are those with a record that lack nothing (`Workshop.lacks`): training, or encoding a
    corpus anew, would take minutes, and `rag-repro run` does that.
    """
    cells = [cell for cell in cells if results.lines(cell)]
    lacks = [workshop.lacks(cell.condition) if calls else None for cell in cells]
    cells = [cell for cell, lacking in zip(cells, lacks, strict=True) if lacking is None]
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
        return Note(f"No recorded question was asked again here{_left_out(lacks)}.")
    asked = sum(len(same) for _, same in found)
    alike = sum(sum(same.values()) for _, same in found)
    caption = f"{alike} of {asked} recorded answers came out the same on this machine, just now"
    caption += _left_out(lacks)
    if alike == asked:
        return Note(f"{caption}.")
    body = [
        [*(_said(cells[place], key) for key in keys), len(same), sum(same.values())]
        for place, same in found
        if not all(same.values())
    ]
    return Table([*keys, "asked again", "the same"], body, caption)


def _left_out(lacks: Iterable[str | None]) -> str:
    """How many conditions lack something, and what; nothing where none does."""
    wanting = Counter(filter(None, lacks))
    if not wanting:
        return ""
    left = f"{wanting.total()} condition{'s' if wanting.total() > 1 else ''}"
    only = len(wanting) == 1
    why = ", ".join(what if only else f"{what} ({n})" for what, n in wanting.items())
    return f"; {left} left out, for want of {why}"


def _said(cell: Cell, key: str) -> str:
    value = cell.keys.get(key, "")
    if key == "method":
        _, exhibit = papers.exhibit(cell.exhibit)
        return exhibit.methods[value].label
    return word(str(value))
