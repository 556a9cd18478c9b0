"""Scores out of records: the only way from a record to a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from rag_repro.evaluation import metrics
from rag_repro.evaluation.intervals import Resampled
from rag_repro.evaluation.ratios import resample_ratio
from rag_repro.evaluation.resampling import new_generator, resample
from rag_repro.study import manifests, records
from rag_repro.study.papers import Cell
from rag_repro.study.sealed import Lines

_SIGNS = (1, -1, -1, 1)
"""Of the sides of a difference, and of one from which another is subtracted."""

Keep = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, eq=False)
class Scores:
    """One metric of one cell: question ids, their clusters, values in the metric's unit.

    values: (questions,); of what was trained, each question's mean over its trainings.
    by_training: by seed (questions,) of each; empty where nothing was trained.
    recipe: what its trainings are of; the same name with the same seed is the same weights.
    training_sd: standard deviation of a training's own mean, in the metric's unit
    (`trainings.between_training_sd`); None where no row of several trainings has the metric.
    """

    ids: tuple[str, ...]
    clusters: tuple[str, ...]
    values: np.ndarray
    by_training: Mapping[int, np.ndarray] = field(default_factory=dict)
    recipe: str = ""
    training_sd: float | None = 0.0

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
        return replace(
            self, ids=tuple(ids), clusters=clusters, values=self.values[rows], by_training=each
        )

    def by_seed(self, seeds: Sequence[int]) -> np.ndarray:
        """(seeds, questions), the same in each of what was not trained; without seeds, one row."""
        if seeds and self.by_training:
            return np.stack([self.by_training[seed] for seed in seeds])
        return np.broadcast_to(self.values, (len(seeds) or 1, len(self.ids)))


@dataclass(frozen=True)
class Only:
    """A filter of questions: those of a kind that it holds of, and of these ids; None: of all."""

    of_kind: Callable[[str | None], bool] | None = None
    ids: frozenset[str] | None = None

    def __call__(self, line: Mapping[str, Any]) -> bool:
        fits = self.of_kind is None or self.of_kind(line.get("kind"))
        return fits and (self.ids is None or line["id"] in self.ids)

    def mask(self, lines: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """(len(lines),) which of them it keeps; sealed ones are not decoded for that."""
        if not isinstance(lines, Lines):
            return np.array([*map(self, lines)], bool)
        kept = np.ones(len(lines), bool)
        if self.of_kind is not None:
            kept &= np.array([*map(self.of_kind, lines.column("kind"))], bool)
        if self.ids is not None:
            kept &= np.array([name in self.ids for name in lines.column("id")], bool)
        return kept


everything = Only()


def _chosen(lines: Sequence[Mapping[str, Any]], keep: Keep) -> Sequence[Mapping[str, Any]]:
    """The lines that a filter keeps."""
    mask = keep.mask(lines) if isinstance(keep, Only) else np.array([*map(keep, lines)], bool)
    return lines.where(mask) if isinstance(lines, Lines) else tuple(compress(lines, mask))


def _measured(
    lines: Sequence[Mapping[str, Any]], metric: str, keep: Keep
) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    """Ids, clusters and values of the questions that the filter keeps and that have the metric."""
    lines = _chosen(lines, keep)
    if isinstance(lines, Lines):  # columns, without a look at any line
        ids, clusters, values = lines.column("id"), lines.column("cluster"), lines.metric(metric)
    else:
        ids, clusters = ([line[name] for line in lines] for name in ("id", "cluster"))
        values = np.array([metrics.of_line(metric, line) for line in lines], float)  # None: NaN
    there = np.flatnonzero(~np.isnan(values))
    return tuple(ids[i] for i in there), tuple(clusters[i] for i in there), values[there]


class Results:
    """The records under one folder, and the times beside it, each file read once.

    Of a condition that one's own records lack, the committed ones (`records.committed`).
    """

    _cut = True
    _platform: str | None = None
    _base: Results | None = None

    def __init__(self, folder: Path):
        self.folder = folder
        self._lines: dict[tuple[Path, str], Sequence[Mapping[str, Any]] | None] = {}
        self._platforms: dict[tuple[Path, str], frozenset[str]] = {}

    @cached_property
    def uncut(self) -> Results:
        """The same records with every answer that they hold, however many a cell's n asks for."""
        made = copy(self)
        made._cut, made._base = False, self
        return made

    def once(self, make: Callable[..., Any], of: Any, *key: Any) -> Any:
        """What `make()` tells of these records, reckoned once for each `of` (which is kept, so that
        no other can take its place) and key: hundreds of contrasts ask the same of a reader.
        """
        reckoned = vars(self).setdefault("_reckoned", {})  # views share it
        place = id(of), self._cut, self._platform, *key
        if place not in reckoned:
            reckoned[place] = of, make()
        return reckoned[place][1]

    @property
    def base(self) -> Results:
        """All the records, from whatever device, with at most a cell's n of each: those that tell
        how far trainings lie apart, of which one may have more answers than another.
        """
        return self._base or self

    @cached_property
    def training_spreads(self) -> dict[tuple[str, ...], float | None]:
        """What `trainings` has reckoned of these records: how far trainings lie apart."""
        return {}

    def lines(self, cell: Cell) -> Sequence[Mapping[str, Any]] | None:
        """The cell's recorded answers of its kinds, at most its n; None where nobody ran it.

        Of a sealed record they are decoded when one is looked at, not when they are counted.
        """
        place = folder, _ = self._place(cell)
        if place not in self._lines:
            record = records.load(folder, cell.condition)
            if record is None and not cell.timed and (behind := records.committed(folder)):
                record = records.load(behind, cell.condition)
            self._lines[place] = None if record is None else record.lines
        lines = self._lines[place]
        if lines is None or (self._platform and not self.platforms(cell)[0] <= {self._platform}):
            return None
        if cell.kinds:
            lines = _chosen(lines, Only(lambda kind: kind in cell.kinds))
        return lines[: cell.n if self._cut else None]

    def platforms(self, cell: Cell) -> list[frozenset[str]]:
        """Of each of the cell's trainings the devices that answered (`manifests.platform_of`); of
        a record without a manifest none.
        """
        place = folder, _ = self._place(cell)
        if place not in self._platforms:
            folders = filter(None, (folder, records.committed(folder)))
            held = (manifests.read(one, cell.condition) for one in folders)
            entries = next(filter(None, held), ())
            self._platforms[place] = frozenset(map(manifests.platform_of, entries))
        return [self._platforms[place]]

    def on(self, platform: str) -> Results:
        """The same of one device and torch alone."""
        made = copy(self)
        made._platform, made._base = platform, self.base
        return made

    def _place(self, cell: Cell) -> tuple[Path, str]:
        folder = records.times_beside(self.folder, cell.exhibit) if cell.timed else self.folder
        return folder, cell.condition.path

    def scores(self, cell: Cell, metric: str, keep: Keep = everything) -> Scores | None:
        """The metric of each recorded question that has it; None where there is none.

        Percentages are in points (0 to 100), all else in its own unit.
        """
        known = metrics.get(metric)
        if not known.defined(cell.condition.configured):
            return None
        ids, clusters, values = _measured(self.lines(cell) or (), metric, keep)
        return Scores(ids, clusters, values * known.scale) if ids else None

    def values(self, cell: Cell, metric: str) -> dict[str, float]:
        """The metric as it is recorded of each question that has it, by question."""
        ids, _, values = _measured(self.lines(cell) or (), metric, everything)
        return dict(zip(ids, values.tolist(), strict=True))

    def gain(
        self, more: Cell | None, less: Cell | None, metric: str, keep: Keep = everything
    ) -> Resampled | None:
        """Bootstrap of the mean difference of two cells; None where either has no score, or no
        question of the other's.
        """
        sides = self._both(more, less, metric, keep)
        return sides and paired([sides], metric)

    def percent(self, more: Cell | None, less: Cell | None, metric: str) -> Resampled | None:
        """Bootstrap of a cell's mean in percent of another's; None as of `gain` and `ratio`."""
        sides = self._both(more, less, metric, everything)
        return sides and ratio([sides], metric)

    def _both(
        self, more: Cell | None, less: Cell | None, metric: str, keep: Keep
    ) -> tuple[Scores, ...] | None:
        sides = tuple(cell and self.scores(cell, metric, keep) for cell in (more, less))
        return None if None in sides else sides


def on_one(cells: Sequence[Cell], results: Results) -> Results | None:
    """The records of one kind of device and torch: of those that all sides have, the one with most
    questions; None where they have none in common.
    """
    held = [results.platforms(cell) for cell in cells]
    every = sorted({platform for of in held for one in of for platform in one})
    if len(every) < 2:
        return results
    found: list[tuple[int, Results]] = []
    for platform in every:
        on = results.on(platform)
        found.append((min(len(on.lines(cell) or ()) for cell in cells), on))
    most, best = max(found, key=lambda one: one[0])
    return best if most else None


def resampled(scores: Scores, metric: str) -> Resampled:
    """Bootstrap of the mean, by cluster, with the spread of its trainings; the same draws for the
    same record.
    """
    seeds = [*scores.by_training]
    return _limited(_of(scores.by_seed(seeds), seeds, scores.clusters, span(metric)), metric, 1)


def _of(
    values: np.ndarray, seeds: Sequence[int], clusters, span: float | None, signed: bool = False
) -> Resampled:
    """Draws of the mean of values (seeds or 1, questions).

    One training says nothing of others: then it is questions alone that are drawn.
    """
    if len(values) == 1:
        return _drawn(tuple(values[0].tolist()), clusters, span, signed=signed)
    drawn = _drawn(tuple(map(tuple, values.tolist())), clusters, span, signed=signed)
    return replace(drawn, trainings=dict(zip(seeds, drawn.trainings.values(), strict=True)))


def shared_seeds(sides: Iterable[Scores]) -> list[int] | None:
    """The trainings that all trained sides have; [] where nothing is trained.

    None: what is trained has no training in common. One of a recipe is compared with the
    same one of another, with its own weights where only what it is given differs.
    """
    trained = [set(side.by_training) for side in sides if side.by_training]
    return (sorted(set.intersection(*trained)) or None) if trained else []


def concatenated(parts: Sequence[Scores]) -> Scores | None:
    """The questions of several data sets as one, of the trainings that all have; None: no part, or
    no training in common.
    """
    if not parts or (seeds := shared_seeds(parts)) is None:
        return None
    ids, clusters = ([x for p in parts for x in getattr(p, name)] for name in ("ids", "clusters"))
    each = {seed: np.concatenate([part.by_seed([seed])[0] for part in parts]) for seed in seeds}
    values = (
        np.mean([*each.values()], axis=0) if each else np.concatenate([p.values for p in parts])
    )
    whole = {"ids": tuple(ids), "clusters": tuple(clusters), "values": values}
    return replace(parts[0], **whole, by_training=each)


def _limited(drawn: Resampled, metric: str, sides: int) -> Resampled:
    """Within what the metric can be, or the difference of two, or of two differences."""
    if (widest := span(metric)) is None:
        counted = sides == 1 and metrics.get(metric).unit != "nats"
        return drawn.within(0, math.inf) if counted else drawn
    low, high = {1: (0, 1), 2: (-1, 1), 4: (-2, 2)}[sides]
    return drawn.within(low * widest, high * widest)


def paired(
    pairs: Sequence[tuple[Scores, ...]], metric: str, seeds: Sequence[int] | None = None
) -> Resampled | None:
    """Bootstrap of the mean difference over one data set.

    pairs: (more, less), or (level,) alone, or (more, less, more, less) with the second
    difference subtracted from the first, of settings that share their questions (k = 3, 4, 6):
    they are averaged a question first. Only questions that every side has count; None where
    there is none. seeds: the trainings to compare; None: those that all trained sides have
    (`shared_seeds`), subtracted one by one. Where that is one, how far trainings lie apart is
    borrowed from rows that have several (`Scores.training_sd`).
    """
    if (aligned := _aligned(pairs, seeds)) is None:
        return None
    pairs, seeds = aligned
    differences = np.mean(
        [
            sum(sign * s.by_seed(seeds) for sign, s in zip(_SIGNS, sides, strict=False))
            for sides in pairs
        ],
        axis=0,
    )
    widest = span(metric)
    if widest is not None and len(pairs[0]) == len(_SIGNS):
        widest *= 2
    drawn = _of(differences, seeds, pairs[0][0].clusters, widest, signed=len(pairs[0]) > 1)
    if len(seeds) == 1 and len(pairs[0]) > 1:
        drawn = replace(drawn, borrowed=_borrowed(pairs))
    return _limited(drawn, metric, len(pairs[0]))


def _borrowed(
    pairs: Sequence[tuple[Scores, ...]], weights: Sequence[float] = _SIGNS
) -> dict[str, float]:
    """What one training of each recipe adds to the standard error of the mean difference.

    weights: what a side counts. One trained side adds its own, two of different recipes sqrt(2)
    of it together, and the same weights on both sides, with other inputs, nothing.
    """
    added: dict[str, float] = {}
    for sides in pairs:
        for weight, side in zip(weights, sides, strict=False):
            if side.by_training and side.training_sd:
                share = weight * side.training_sd / len(pairs)
                added[side.recipe] = added.get(side.recipe, 0.0) + share
    return added


def hangs_on_one(sides: Sequence[Scores]) -> bool:
    """Whether a difference hangs on one training of a recipe, and nobody knows how far another
    would lie from it by this metric: an interval then holds the questions' noise alone.

    The same weights on both sides, with other inputs or by two metrics, hang on nothing else.
    """
    if len(sides) < 2 or len(shared_seeds(sides) or ()) != 1:
        return False
    net: dict[str, int] = {}
    for sign, side in zip(_SIGNS, sides, strict=False):
        if side.by_training and side.training_sd is None:
            net[side.recipe] = net.get(side.recipe, 0) + sign
    return any(net.values())


def _aligned(
    pairs: Sequence[tuple[Scores, ...]], seeds: Sequence[int] | None
) -> tuple[list[tuple[Scores, ...]], Sequence[int]] | None:
    """The sides on the questions that all have, in one order, and the trainings to compare."""
    sides = [side for pair in pairs for side in pair]
    common = set.intersection(*(set(side.ids) for side in sides))
    seeds = shared_seeds(sides) if seeds is None else seeds
    if not common or seeds is None:
        return None
    ids = [name for name in pairs[0][0].ids if name in common]
    return [tuple(side.at(ids) for side in pair) for pair in pairs], seeds


def ratio(
    pairs: Sequence[tuple[Scores, Scores]], metric: str, seeds: Sequence[int] | None = None
) -> Resampled | None:
    """Bootstrap of mean(more) in percent of mean(less) over one data set; pairs as in `paired`.

    None also where `less` is zero throughout. Of one training, what is borrowed is carried over
    to the ratio by its derivatives.
    """
    if (aligned := _aligned(pairs, seeds)) is None:
        return None
    pairs, seeds = aligned
    more, less = (
        np.mean([side.by_seed(seeds) for side in sides], axis=0)
        for sides in zip(*pairs, strict=True)
    )
    if not less.any():
        return None
    rng, clusters = new_generator(), pairs[0][0].clusters  # as `_drawn`
    widest = span(metric)
    drawn = resample_ratio(
        100 * more.mean(0),
        less.mean(0),
        rng=rng,
        clusters=clusters,
        span=None if widest is None else 100 * widest,
    )
    if len(seeds) == 1:
        below = float(less.mean())
        slopes = 100 / below, -drawn.estimate / below
        drawn = replace(drawn, borrowed=_borrowed(pairs, slopes))
    if metrics.get(metric).unit != "nats":  # all else is never below zero
        drawn = drawn.within(0, math.inf)
    if len(more) == 1 or not less.mean(1).all():
        return drawn
    apart = 100 * more.mean(1) / less.mean(1) - drawn.estimate
    return replace(drawn, trainings=dict(zip(seeds, apart.tolist(), strict=True)))


def span(metric: str) -> float | None:
    """The largest difference between two scores, in points; None where unbounded."""
    known = metrics.get(metric)
    return None if known.span is None else known.span * known.scale


@lru_cache(maxsize=128)  # of 160 kB each
def _drawn(
    values: tuple,
    clusters: tuple[str, ...],
    span: float | None,
    signed: bool = False,
) -> Resampled:
    """Draws of a mean, kept: the tables, figures and verdicts of a page share many."""
    # A fixed seed: the same records give the same interval, wherever they are read.
    rng = new_generator()
    return resample(values, rng=rng, clusters=clusters, span=span, signed=signed)
