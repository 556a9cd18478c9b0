"""Which methods nothing beats in quality and cost at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..evaluation import metrics
from ..study.papers import Exhibit
from .exhibits import Row, whole
from .missing import note_of_rows
from .picture import Note
from .tables import Table, word
from .values import number, within


def table(
    exhibit: Exhibit,
    rows: Sequence[Row],
    quality: str,
    costs: Sequence[str],
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a data set and method with its quality, its costs, and for each cost who beats it.

    Beaten: another is no worse and no dearer, and better or cheaper, by the means; whether that
    difference is one stands in the intervals beside.
    """
    held = whole(rows, {quality, *costs}, lambda row: (row.keys["dataset"], row.keys["method"]))
    body = []
    for dataset in dict.fromkeys(dataset for dataset, _ in held):
        methods = {method: found for (of, method), found in held.items() if of == dataset}
        for method, found in methods.items():
            cells = [within(found[quality].ours, 1)]
            for cost in costs:
                points = {m: (r[quality].ours.estimate, r[cost].ours.estimate)
                          for m, r in methods.items()}  # fmt: skip
                better = [exhibit.methods[m].label for m in beaten_by(method, points)]
                cells += [number(found[cost].ours.estimate, 1), ", ".join(better) or "nobody"]
            body.append([word(dataset), exhibit.methods[method].label, *cells])
    if not body:
        return note_of_rows(rows)
    head = ["data set", "method", f"{metrics.get(quality).symbol} [95 %]"]
    head += [part for cost in costs for part in (metrics.get(cost).symbol, "beaten by")]
    return Table(head, body, caption, name)


def beaten_by(method: str, points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The methods that are no worse and no dearer than it, and better or cheaper.

    points: method -> (quality, cost).
    """
    q, c = points[method]
    return [
        other for other, (oq, oc) in points.items() if oq >= q and oc <= c and (oq, oc) != (q, c)
    ]
