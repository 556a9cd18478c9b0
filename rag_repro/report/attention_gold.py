"""Whether a prompt's last token looks at gold passages, by layer and by rank (r2ag.c31, c01)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..data.titles import word
from ..evaluation.attention_metrics import EARLY, best_other, gold_places, passages
from ..study.papers import Cell, Exhibit
from ..study.scores import Results
from . import missing
from .figures import MARKERS, WIDTH, legend_of_labels, plots
from .picture import Note, Picture
from .table import Table
from .values import number

Line = Mapping[str, Any]
LEAST = 5
"""Passages of which a mean is shown."""


def over_best_other(lines: Iterable[Line]) -> tuple[np.ndarray, int] | None:
    """(layers,) points of each layer's attention on a gold passage above the best other one.

    A passage's embedding counts with its words. The mean over questions that have both, and
    their number; None where there is none.
    """
    made = []
    for line in lines:
        shares, gold, other = passages(line), gold_places(line), best_other(line)
        if shares is not None and gold and other is not None:
            made.append(100 * (shares[:, gold].mean(1) - shares[:, other]))
    return (np.mean(made, axis=0), len(made)) if made else None


def by_layer(
    exhibit: Exhibit, cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Picture | Note:
    """A panel a data set and reader, a line a row of the exhibit: gold above the best other.

    Layers from 1, the first. Above zero gold gets more.
    """
    held = [(cell, over_best_other(results.lines(cell) or ())) for cell in cells]
    held = [(cell, found) for cell, found in held if found is not None]
    if not held:
        return missing.note(cells, results, caption)
    plt, colours = plots()
    sets = list(dict.fromkeys(map(_place, (cell for cell, _ in held))))
    methods = list(dict.fromkeys(cell.keys["method"] for cell, _ in held))
    figure, [axes] = plt.subplots(
        1, len(sets), figsize=(WIDTH, 3.2), sharey=True, squeeze=False, layout="constrained"
    )
    spoken = []
    for cell, (points, n) in held:
        axis, i = axes[sets.index(_place(cell))], methods.index(cell.keys["method"])
        label = exhibit.methods[cell.keys["method"]].label
        look = {"color": colours[i], "marker": MARKERS[i], "ms": 3, "lw": 1}
        axis.plot(range(1, len(points) + 1), points, label=label, **look)
        axis.set_title(_place(cell))
        axis.set_xlabel("layer")
        spoken.append(
            f"{_place(cell)}, {label}: {points[:EARLY].mean():+.2f} points in layers "
            f"1 to {EARLY}, {points.mean():+.2f} over all; {n} questions"
        )
    for axis in axes:
        axis.axhline(0, color="0.6", lw=0.8)
    axes[0].set_ylabel("gold above the best other, points")
    legend_of_labels(figure)
    alt = "Attention on a gold passage above the best other one. " + "; ".join(spoken) + "."
    return Picture(figure, alt, caption, name)


def by_rank(
    cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Table | Note:
    """One line a data set, reader and rank: the mean of gold passages there, and of others, %.

    In the first layers (`EARLY`), and in all. Means of fewer than `LEAST` passages are left out.
    """
    body: dict[tuple[str, str, int], dict[bool, list]] = {}
    for cell in cells:
        for line in results.lines(cell) or ():
            shares, gold = passages(line), gold_places(line)
            if shares is None or not gold:
                continue
            for place in range(shares.shape[1]):
                at = word(cell.keys["dataset"]), word(cell.keys.get("reader", "")), place
                found = body.setdefault(at, {True: [], False: []})
                found[place in gold].append((shares[:EARLY, place].mean(), shares[:, place].mean()))
    if not body:
        return missing.note(cells, results, caption)
    rows = []
    for (dataset, reader, place), found in sorted(body.items(), key=lambda item: item[0]):
        told = [dataset, reader, place + 1]
        for depth in (0, 1):
            told += [_mean([pair[depth] for pair in found[is_gold]]) for is_gold in (True, False)]
        rows.append([*told, len(found[True]), len(found[False])])
    depths = (f"layers 1 to {EARLY}", "all layers")
    shares = [f"{who}, {depth}, %" for depth in depths for who in ("gold", "others")]
    head = ["data set", "reader", "rank", *shares, "gold passages", "others"]
    return Table(head, rows, caption, name)


def _place(cell: Cell) -> str:
    return f"{word(cell.keys['dataset'])}, {word(cell.keys.get('reader', ''))}"


def _mean(shares: Sequence[float]) -> str:
    return number(100 * float(np.mean(shares)), 2) if len(shares) >= LEAST else ""
