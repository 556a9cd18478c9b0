"""Effects of things that are each on or off, from half of all their combinations.

With signs x = +1 (on) and -1 (off), an effect is twice the mean over the runs of score times sign:
what turning it on changes, the others being on as often as off. The sign of an interaction is the
product of its factors' signs. In half a design some of these products are the same in every run,
so that their effects cannot be told apart: they stand in one line (Box, Hunter and Hunter 2005,
chapter 6). Each is computed a question, so that intervals draw questions, not runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from ..data.titles import word
from ..evaluation import metrics
from ..evaluation.power import mde_of
from ..evaluation.statistics import Interval, Resampled
from ..study.papers import Exhibit
from ..study.scores import Results, Scores, resampled
from . import missing
from .picture import Note
from .table import Table
from .values import within

Effect = frozenset[str]
Group = tuple[Effect, ...]


@dataclass(frozen=True)
class Design:
    """Which factors are on in which run: row -> the factors that are on."""

    factors: tuple[str, ...]
    runs: Mapping[str, frozenset[str]]

    def __post_init__(self):
        for row, on in self.runs.items():
            if unknown := on - set(self.factors):
                raise ValueError(f"{row}: {sorted(unknown)} are none of {list(self.factors)}")
        for factor in self.factors:
            if 2 * sum(factor in on for on in self.runs.values()) != len(self.runs):
                raise ValueError(f"{factor} is not on in half of the {len(self.runs)} runs")

    @classmethod
    def of(cls, rows: Sequence[str], factors: Sequence[str], none: str = "none") -> Design:
        """From the rows' names, as "erm4_drrag"; `none`: all off."""
        runs = {row: frozenset(() if row == none else row.split("_")) for row in rows}
        return cls(tuple(factors), runs)

    def signs(self, effect: Effect) -> tuple[int, ...]:
        """Of the effect in each run."""
        return tuple(prod(1 if f in on else -1 for f in effect) for on in self.runs.values())

    def groups(self, most: int = 2) -> list[tuple[Effect, ...]]:
        """Effects of up to `most` factors, those together that have the same signs in every run."""
        held: dict[tuple[int, ...], list[Effect]] = {}
        for size in range(1, most + 1):
            for one in combinations(self.factors, size):
                held.setdefault(self.signs(frozenset(one)), []).append(frozenset(one))
        return [tuple(effects) for effects in held.values()]


def effect_of(design: Design, effect: Effect, scores: Mapping[str, Scores], metric: str):
    """-> Resampled in the metric's unit; None where the runs have no question in common."""
    sides = [scores[row] for row in design.runs]
    common = set.intersection(*(set(side.ids) for side in sides))
    if not common:
        return None
    first = sides[0]
    kept = [i for i, name in enumerate(first.ids) if name in common]
    ids = tuple(first.ids[i] for i in kept)
    values = np.zeros(len(ids))
    for sign, side in zip(design.signs(effect), sides, strict=True):
        value = side.by_id()
        values += sign * np.array([value[name] for name in ids]) * 2 / len(sides)
    return _resampled(Scores(ids, tuple(first.clusters[i] for i in kept), values), metric)


def _resampled(scores: Scores, metric: str) -> Resampled:
    # A level's limits are none of an effect, which can be negative.
    drawn = resampled(scores, metric)
    _, high = drawn.limits
    return drawn.within(-high, high)


def table(
    exhibit: Exhibit,
    results: Results,
    design: Design,
    names: Mapping[str, str],
    measured: Sequence[str] = ("em",),
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a data set, metric and group of effects. names: a factor in words."""
    body = [
        [
            word(dataset),
            metrics.get(metric).symbol,
            _all_said(group, design, names),
            within(found, 1, "+", n=True),
        ]
        for dataset, metric, group, found in _found(exhibit, results, design, measured)
    ]
    if not body:
        return missing.note(exhibit.cells(), results, caption)
    return Table(["data set", "metric", "effect of", "effect [95 %], n"], body, caption, name)


def answer(
    exhibit: Exhibit,
    results: Results,
    design: Design,
    names: Mapping[str, str],
    metric: str = "em",
) -> Note:
    """What the table says of one metric, in words: who moves it alone, and who together."""
    found = list(_found(exhibit, results, design, [metric]))
    told = []
    for dataset in dict.fromkeys(dataset for dataset, *_ in found):
        of_it = [(group, held) for name, _, group, held in found if name == dataset and held]
        alone, pairs = ([one for one in of_it if len(one[0][0]) == size] for size in (1, 2))
        told.append(
            f"{word(dataset)}, {metrics.get(metric).symbol}: of each alone, "
            f"{_moved(alone, design, names)}; of two together, {_moved(pairs, design, names)}."
        )
    return Note(" ".join(told)) if told else missing.note(exhibit.cells(), results)


def _moved(held: Sequence[tuple[Group, Interval]], design: Design, names: Mapping) -> str:
    """Whose interval excludes zero, and what the others could have shown."""
    sides = {True: [], False: []}
    for group, one in held:
        sides[one.lo > 0 or one.hi < 0].append((_all_said(group, design, names), one))
    clear = ", ".join(f"{said} {within(one, 1, '+')}" for said, one in sides[True])
    still = ", ".join(f"{said} (detectable {mde_of(one):.1f})" for said, one in sides[False])
    verb = "exclude" if len(sides[True]) > 1 else "excludes"
    told = f"{len(sides[True]) or 'none'} of the {len(held)} intervals {verb} zero"
    told += f": {clear}" if clear else ""
    return f"{told}; open: {still}" if still else told


def _found(
    exhibit: Exhibit, results: Results, design: Design, measured: Sequence[str]
) -> Iterator[tuple[str, str, Group, Interval | None]]:
    """Data set, metric, effects that cannot be told apart, and their interval."""
    for dataset in dict.fromkeys(c.keys["dataset"] for c in exhibit.cells()):
        by = {c.keys["method"]: c for c in exhibit.cells() if c.keys["dataset"] == dataset}
        for metric in measured:
            scores = {row: results.scores(by[row], metric) for row in design.runs}
            if None in scores.values():
                continue
            for group in design.groups():
                drawn = effect_of(design, group[0], scores, metric)
                yield dataset, metric, group, drawn and drawn.interval()


def _all_said(group: Group, design: Design, names: Mapping[str, str]) -> str:
    return " or ".join(_said(effect, design, names) for effect in group)


def _said(effect: Effect, design: Design, names: Mapping[str, str]) -> str:
    return " with ".join(names[factor] for factor in design.factors if factor in effect)
