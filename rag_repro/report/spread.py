"""How far a method's gain differs between data sets, against what sampling alone would spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.titles import word
from ..evaluation.resampling import fresh
from ..evaluation.statistics import Resampled
from ..study.judge import pair_cells
from ..study.paper import Contrast, Paper
from ..study.scores import Results
from . import arithmetic, missing
from .picture import Note
from .table import Table
from .values import number, p_value, within

FEWEST = 30  # questions of a data set that has a say in the spread


def of_gains(
    paper: Paper,
    key: str,
    results: Results,
    more: str,
    less: str,
    *,
    metric: str = "em",
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a data set: the gain of `more` over `less`, and those that the paper prints.

    Then, for each tier with two data sets of `FEWEST` questions, the highest minus the
    lowest gain; how large that is in 95 % of samples if all gains were one; and the share
    of samples in which it is as large.
    """
    exhibit = paper.exhibit(key)
    contrast = Contrast(metric=metric, more={"method": more}, less={"method": less}, delta=1.0)
    printed = _printed(paper, key, metric, more, less)
    body, cells = [], []
    for tier in ("testbed", "public"):
        held = []
        for pair in pair_cells(exhibit, contrast, tier):
            cells += pair
            if (drawn := results.gain(*pair, metric)) is None:
                continue
            dataset = pair[0].keys["dataset"]
            theirs = ", ".join(f"{gain:+.1f}" for gain in printed.get(dataset, ()))
            body.append([tier, word(dataset), within(drawn.interval(), 1, "+", n=True), theirs])
            if drawn.n >= FEWEST:
                held.append(drawn)
        if len(held) > 1:
            observed, usual, share = against_chance(held)
            body.append([tier, "highest minus lowest", number(observed, 1), _range(printed)])
            body.append(
                [tier, "were all gains equal: at most, in 95 % of samples", number(usual, 1), ""]
            )
            body.append([tier, "were all gains equal: so much by chance, p", p_value(share), ""])
    if not body:
        return missing.note(cells, results, caption)
    labels = [exhibit.methods[side].label for side in (more, less)]
    head = ["tier", "data set", f"{labels[0]} minus {labels[1]}, points [95 %], n"]
    return Table([*head, "paper, by reader"], body, caption, name)


def against_chance(held: Sequence[Resampled]) -> tuple[float, float, float]:
    """Highest minus lowest estimate; its 95 % quantile by sampling alone; p of as much."""
    estimates = [drawn.estimate for drawn in held]
    observed = max(estimates) - min(estimates)
    # Each record's draws come from the same seed: shuffled, data sets do not move together.
    rng = fresh()
    centred = np.stack([rng.permutation(drawn.draws) - drawn.estimate for drawn in held])
    ranges = centred.max(0) - centred.min(0)
    return observed, float(np.quantile(ranges, 0.95)), float((ranges >= observed).mean())


def _printed(paper: Paper, key: str, metric: str, more: str, less: str) -> dict[str, list[float]]:
    """Data set -> the paper's own gains, in the order of its readers."""
    found: dict[str, list[float]] = {}
    for place, gain in arithmetic.gains(paper, key, more, less, metric=metric).items():
        found.setdefault(dict(place)["dataset"], []).append(float(gain))
    return found


def _range(printed: dict[str, list[float]]) -> str:
    """The paper's highest minus its lowest gain, all readers together."""
    every = [gain for gains in printed.values() for gain in gains]
    return number(max(every) - min(every), 1) if every else ""
