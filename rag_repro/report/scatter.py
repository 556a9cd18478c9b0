"""One metric against another, a point a method: quality by what it costs, or rests on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .exhibits import Row, whole
from .figures import Point, point_panels
from .missing import note_of_rows
from .picture import Note, Picture
from .tables import data_of


def against(
    rows: Sequence[Row],
    x: str,
    y: str,
    *,
    xlabel: str,
    ylabel: str,
    named: Callable[[Row], str],
    told: str,
    alt: str,
    caption: str = "",
    name: str = "",
    among: Sequence[str] = (),
) -> Picture | Note:
    """A panel a data set, a point for each method that has both metrics; bars are 95 %.

    named: a row's words for the legend; of rows of one data set each point's must be its own.
    told: a point in words, as "{y:.0f} at {x:.1f}". alt: what the alternative text begins with.
    among: the words that a page's figures share, so that each has one colour in all of them.
    """
    held = whole(rows, (x, y), lambda row: (row.keys["dataset"], named(row)))
    if not held:
        return note_of_rows(rows)
    at = {found[x].ours.estimate for found in held.values()}
    if len(held) > 1 and len(at) == 1:  # points above each other tell nothing of a trade
        return Note(f"{caption}: not drawn, since {xlabel} is {at.pop():g} in every row.")
    panels = point_panels(
        [Point(*place, found[x].ours, found[y].ours) for place, found in held.items()],
        {said: said for said in (*among, *(said for _, said in held))},
        list(dict.fromkeys(dataset for dataset, _ in held)),
        xlabel=xlabel,
        ylabel=ylabel,
        told=told,
        sharey=True,
    )
    spoken = "; ".join(said for of_one in panels.spoken.values() for said in of_one)
    data = data_of([row for found in held.values() for row in found.values()])
    return Picture(panels.figure, f"{alt} {spoken}.", caption, name, data)
