"""Which methods nothing beats in quality and in every cost at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..data.titles import word
from ..evaluation import metrics
from ..study.papers import Cell, Exhibit
from ..study.scores import Results, Scores, paired, resampled
from . import missing
from .picture import Note
from .table import Table
from .values import number, within

Held = Mapping[str, Scores]  # metric -> a method's scores


def table(
    exhibit: Exhibit,
    results: Results,
    tier: str,
    quality: str,
    costs: Sequence[str],
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a data set and primary method: its quality, its costs, and who beats it.

    Beaten: on the questions that both have answered another is on average no worse and in no cost
    dearer, and better or cheaper in one. Clearly so: the paired interval of the quality lies above
    zero; else the two are not told apart in quality, and the one costs less.
    """
    cells = [c for c in exhibit.cells(tier) if c.role == "primary"]
    by: dict[str, dict[str, Held]] = {}
    for cell in cells:
        if held := _scores(results, cell, (quality, *costs)):
            by.setdefault(cell.keys["dataset"], {})[cell.keys["method"]] = held
    body = []
    for dataset, methods in by.items():
        for method, held in methods.items():
            better = [
                exhibit.methods[other].label + (" (clearly)" if clear else "")
                for other, theirs in methods.items()
                if other != method and (clear := beats(theirs, held, quality)) is not None
            ]
            body.append(
                [
                    word(dataset),
                    exhibit.methods[method].label,
                    within(resampled(held[quality], quality).interval(), 1, n=True),
                    "; ".join(better) or "nobody",
                    *(number(float(held[cost].values.mean()), 1) for cost in costs),
                ]
            )
    if not body:
        return missing.note(cells, results, caption)
    symbols = [metrics.get(cost).symbol for cost in costs]
    head = ["data set", "method", f"{metrics.get(quality).symbol} [95 %], n", "beaten by", *symbols]
    return Table(head, body, caption, name)


def beats(ours: Held, theirs: Held, quality: str) -> bool | None:
    """None: it does not; else whether its quality is clearly higher. First of `ours`: quality."""
    gains = {}
    for metric in ours:
        drawn = paired([(ours[metric], theirs[metric])], metric)
        if drawn is None:
            return None
        gains[metric] = drawn.interval()
    better = gains.pop(quality)
    spared = [-gain.estimate for gain in gains.values()]
    if min(better.estimate, *spared) < 0 or max(better.estimate, *spared) == 0:
        return None
    return better.lo > 0


def _scores(results: Results, cell: Cell, names: Sequence[str]) -> Held | None:
    """Of each metric; None where the cell lacks one."""
    held = {name: results.scores(cell, name) for name in names}
    return None if None in held.values() else held
