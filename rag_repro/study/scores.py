"""Scores out of records: the only way from a record to a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluation import metrics, statistics
from ..evaluation.resampling import fresh
from ..evaluation.statistics import Resampled
from . import records
from .papers import Cell

_SIGNS = (1, -1, -1, 1)
"""Of the sides of a difference, and of one from which another is subtracted."""

Keep = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, eq=False)
class Scores:
    """One metric of one cell: question ids, their clusters, values in the metric's unit.

    values: (questions,). Where several trainings made them (`trainings`), each question's mean
    over them, and by_training: (trainings, questions), in the order of their seeds.
    """

    ids: tuple[str, ...]
    clusters: tuple[str, ...]
    values: np.ndarray
    by_training: Mapping[int, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def by_id(self) -> dict[str, float]:
        return dict(zip(self.ids, self.values, strict=True))

    def at(self, ids: Sequence[str]) -> Scores:
        """The scores of these questions, in this order."""
        place = {name: i for i, name in enumerate(self.ids)}
        rows = [place[name] for name in ids]
        each = {seed: values[rows] for seed, values in self.by_training.items()}
        clusters = tuple(self.clusters[i] for i in rows)
        return Scores(tuple(ids), clusters, self.values[rows], each)

    def of(self, seeds: Sequence[int]) -> np.ndarray:
        """(seeds, questions); what was not trained several times is the same in each.

        Without seeds (1, questions), the means.
        """
        if seeds and self.by_training:
            return np.stack([self.by_training[seed] for seed in seeds])
        return np.broadcast_to(self.values, (len(seeds) or 1, len(self.ids)))


def everything(line: Mapping[str, Any]) -> bool:
    return True


class Results:
    """The records under one folder, and the times beside it, each file read once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._lines: dict[tuple[Path, str], tuple[Mapping[str, Any], ...] | None] = {}

    def lines(self, cell: Cell) -> tuple[Mapping[str, Any], ...] | None:
        """The cell's recorded answers, at most its n; None where nobody has run it."""
        folder = records.times_beside(self.folder, cell.exhibit) if cell.timed else self.folder
        place = folder, cell.condition.path
        if place not in self._lines:
            record = records.load(folder, cell.condition)
            self._lines[place] = None if record is None else record.lines
        lines = self._lines[place]
        return None if lines is None else lines[: cell.n]

    def scores(self, cell: Cell, metric: str, keep: Keep = everything) -> Scores | None:
        """The metric of each recorded question that has it; None where there is none.

        Percentages are in points (0 to 100), all else in its own unit.
        """
        lines = self.lines(cell)
        scale = metrics.get(metric).scale
        values = ((x, metrics.of_line(metric, x)) for x in lines or () if keep(x))
        kept = [(x, value) for x, value in values if value is not None]
        if not kept:
            return None
        return Scores(
            tuple(x["id"] for x, _ in kept),
            tuple(x["cluster"] for x, _ in kept),
            np.array([value * scale for _, value in kept]),
        )


def resampled(scores: Scores, metric: str) -> Resampled:
    """Bootstrap of the mean, by cluster and by training; the same draws for the same record."""
    values = scores.of([*scores.by_training]) if scores.by_training else scores.values
    return _limited(_drawn(_hashable(values), scores.clusters, span(metric)), metric, 1)


def _hashable(values: np.ndarray) -> tuple:
    """(questions,), or (trainings, questions), as what a cache can look up."""
    return tuple(values.tolist() if values.ndim == 1 else map(tuple, values.tolist()))


def _seeds_of(sides: Sequence[Scores]) -> list[int]:
    """The trainings that all sides have which were trained several times; [] of none."""
    several = [set(side.by_training) for side in sides if side.by_training]
    return sorted(set.intersection(*several)) if several else []


def _limited(drawn: Resampled, metric: str, sides: int) -> Resampled:
    """Within what the metric can be, or the difference of two, or of two differences."""
    if (widest := span(metric)) is None:
        return drawn
    low, high = {1: (0, 1), 2: (-1, 1), 4: (-2, 2)}[sides]
    return drawn.within(low * widest, high * widest)


def paired(pairs: Sequence[tuple[Scores, ...]], metric: str) -> Resampled | None:
    """Bootstrap of the mean difference over one data set.

    pairs: (more, less), or (level,) alone, or (more, less, more, less) with the second
    difference subtracted from the first, of settings that share their questions (k = 3, 4, 6):
    they are averaged a question first. Only questions that every side has count; None where
    there is none. Where a side was trained several times, trainings are drawn, too.
    """
    common = set.intersection(*(set(side.ids) for pair in pairs for side in pair))
    if not common:
        return None
    ids = [name for name in pairs[0][0].ids if name in common]
    pairs = [tuple(side.at(ids) for side in sides) for sides in pairs]
    seeds = _seeds_of([side for sides in pairs for side in sides])
    # (trainings, questions): two trained sides differ training by training, of one data order.
    # One training says nothing of others: then it is questions alone that are drawn.
    differences = np.mean(
        [
            sum(sign * s.of(seeds) for sign, s in zip(_SIGNS, sides, strict=False))
            for sides in pairs
        ],
        axis=0,
    )
    values = differences if len(seeds) > 1 else differences[0]
    clusters = pairs[0][0].clusters
    widest = span(metric)
    if widest is not None and len(pairs[0]) == len(_SIGNS):
        widest *= 2
    drawn = _drawn(_hashable(values), clusters, widest, signed=len(pairs[0]) > 1)
    return _limited(drawn, metric, len(pairs[0]))


def ratio(pairs: Sequence[tuple[Scores, Scores]]) -> Resampled | None:
    """Bootstrap of mean(more) in percent of mean(less) over one data set; pairs as in `paired`.

    None also where `less` is zero throughout. Draws questions, and no trainings.
    """
    common = set.intersection(*(set(side.ids) for pair in pairs for side in pair))
    if not common:
        return None
    ids = [name for name in pairs[0][0].ids if name in common]
    more, less = (
        np.mean([side.at(ids).values for side in sides], axis=0)
        for sides in zip(*pairs, strict=True)
    )
    if not less.any():
        return None
    rng, clusters = fresh(), pairs[0][0].at(ids).clusters  # as `_drawn`
    return statistics.resample_ratio(100 * more, less, rng=rng, clusters=clusters)


def span(metric: str) -> float | None:
    """The largest difference between two scores, in points; None where unbounded."""
    known = metrics.get(metric)
    return None if known.span is None else known.span * known.scale


@lru_cache(maxsize=512)  # of 160 kB each
def _drawn(
    values: tuple,
    clusters: tuple[str, ...],
    span: float | None,
    signed: bool = False,
) -> Resampled:
    """Draws of a mean, kept: the tables, figures and verdicts of a page share many."""
    # A fixed seed: the same records give the same interval, wherever they are read.
    rng = fresh()
    return statistics.resample(values, rng=rng, clusters=clusters, span=span, signed=signed)
