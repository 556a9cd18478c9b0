"""Effects of things that are each on or off, from half of all their combinations.

With signs x = +1 (on) and -1 (off), an effect is twice the mean over the runs of score times sign:
what turning it on changes, the others being on as often as off. The sign of an interaction is the
product of its factors' signs. In half a design some of these products are the same in every run,
so that their effects cannot be told apart: they stand in one line (Box, Hunter and Hunter 2005,
chapter 6). Each is computed a question, so that intervals draw questions, not runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from rag_repro.evaluation.intervals import Resampled
from rag_repro.study.scores import Scores, paired, resampled

Effect = frozenset[str]


@dataclass(frozen=True)
class Design:
    """Which factors are on in which run: row -> the factors that are on.

    Raises ValueError for a factor that is not on in half of the runs.
    """

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
    def from_rows(cls, rows: Sequence[str], factors: Sequence[str]) -> Design:
        """From the rows' names, as "erm4_drrag"; "none": all off."""
        runs = {row: frozenset(() if row == "none" else row.split("_")) for row in rows}
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

    def describe(self, group: Sequence[Effect], names: Mapping[str, str]) -> str:
        """As "ERM4 with DR-RAG or DRAGIN with R²AG"; names: a factor's."""
        listed = ([names[f] for f in self.factors if f in effect] for effect in group)
        return " or ".join(" with ".join(one) for one in listed)


def effect_of(
    design: Design, effect: Effect, scores: Mapping[str, Scores], metric: str
) -> Resampled | None:
    """In the metric's unit, on the questions that all runs have; None where there is none."""
    sides = [scores[row] for row in design.runs]
    common = set.intersection(*(set(side.ids) for side in sides))
    if not common:
        return None
    first = sides[0].at([name for name in sides[0].ids if name in common])
    values = np.zeros(len(first))
    for sign, side in zip(design.signs(effect), sides, strict=True):
        values += sign * side.at(first.ids).values * 2 / len(sides)
    drawn = resampled(Scores(first.ids, first.clusters, values), metric)
    # A level's limits are none of an effect, which can be negative.
    return drawn.within(-drawn.limits[1], drawn.limits[1])


def beyond_sum(
    both: Scores, first: Scores, second: Scores, none: Scores, metric: str
) -> list[Resampled] | None:
    """What the first gains over none, the second, both, and both beyond the sum of the two.

    On the questions that all four have; None where there is none.
    """
    common = set.intersection(*(set(side.ids) for side in (both, first, second, none)))
    if not common:
        return None
    both, first, second, none = (
        side.at([name for name in side.ids if name in common])
        for side in (both, first, second, none)
    )
    pairs = ((first, none), (second, none), (both, none), (both, first, second, none))
    return [paired([sides], metric) for sides in pairs]
