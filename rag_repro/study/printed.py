"""What a paper's own printed values say of a claim: two sides of its tables, compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Literal

from rag_repro.study.yaml_files import StudyError

if TYPE_CHECKING:
    from rag_repro.study.papers import Paper

ABOVE, NOT_ALWAYS, LEVEL = "above", "not always", "level"

Place = tuple[tuple[str, str], ...]
"""A printed value's keys."""
Side = tuple[Decimal, Decimal | None]


@dataclass(frozen=True)
class Compared:
    """Printed values alike in every key that the two sides do not name.

    exhibit: key of one that prints values. more, less, where: keys, of one value or several; of
    several in `less` the highest of each place counts. says: what the claim says of them,
    `more` lies "above" `less` everywhere, or "not always"; without `less`, "level".
    """

    exhibit: str
    more: Mapping[str, Any]
    less: Mapping[str, Any] | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    says: Literal["above", "not always", "level"] = ABOVE

    def __post_init__(self):
        if (self.less is None) != (self.says == LEVEL):
            raise StudyError(f"without `less`, and only then, it says {LEVEL!r}")

    def values(self, paper: Paper) -> dict[Place, Decimal]:
        """Each place's difference, or its level. Raises StudyError where nothing is printed."""
        return {name: more - (less or 0) for name, (more, less) in self.sides(paper).items()}

    def sides(self, paper: Paper) -> dict[Place, tuple[Decimal, Decimal | None]]:
        """Each place's values of `more` and of `less`, None without. Raises as `values`."""
        rows = [row for row in paper.printed(self.exhibit) if has(row, self.where)]
        more = [row for row in rows if has(row, self.more)]
        if self.less is None:
            made = {place_of(row): (Decimal(row["value"]), None) for row in more}
        else:
            apart = {*self.more, *self.less}
            less: dict[Place, list[Decimal]] = defaultdict(list)
            for row in rows:
                if has(row, self.less):
                    less[place_of(row, apart)].append(Decimal(row["value"]))
            made = {
                place_of(row): (Decimal(row["value"]), max(less[place_of(row, apart)]))
                for row in more
                if place_of(row, apart) in less
            }
        if not made:
            raise StudyError(f"{paper.name}.{self.exhibit} prints nothing of {self.more}")
        return made

    def holds(self, values: Mapping[Place, Decimal]) -> bool:
        """Whether these differences are as the claim says."""
        everywhere = all(value > 0 for value in values.values())
        return {ABOVE: everywhere, NOT_ALWAYS: not everywhere, LEVEL: True}[self.says]


@dataclass(frozen=True)
class Gain:
    """What a paper gains over a baseline, in percent: typed, or the means over its printed values.

    exhibit, more, less, where: as of `Compared`. gain, baseline: instead of them.
    """

    exhibit: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    less: Mapping[str, Any] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    gain: float | None = None
    baseline: float | None = None

    def __post_init__(self):
        if (self.exhibit is None) == (self.gain is None or self.baseline is None):
            raise StudyError("it names an exhibit that prints the gain, or gain and baseline")

    def amounts(self, paper: Paper, keys: Mapping[str, Any] | None = None) -> tuple[float, float]:
        """Gain and baseline, of the printed cell with these keys, else the means over all.

        Raises StudyError where nothing is printed, or no gain.
        """
        gain, below = self.gain, self.baseline
        if self.exhibit is not None:
            printed = Compared(self.exhibit, self.more, self.less, self.where).sides(paper)
            sides = _of_cell(printed, keys or {}) or [*printed.values()]
            below = float(sum(less for _, less in sides)) / len(sides)
            gain = float(sum(more for more, _ in sides)) / len(sides) - below
        if not (gain > 0 and below < 100):
            raise StudyError(f"{paper.name} gains {gain:g} over {below:g}, which sets no effect")
        return gain, below


def _of_cell(printed: Mapping[Place, Side], keys: Mapping[str, Any]) -> list[Side]:
    """The sides printed for a cell, by the keys of it that tell printed values apart; [] where it
    is none of them, or where the paper gains nothing."""
    cell = {(key, str(value)) for key, value in keys.items()}
    told = {
        key for place in printed for key, _ in place if len({dict(p)[key] for p in printed}) > 1
    }
    made = [sides for place, sides in printed.items() if {p for p in place if p[0] in told} <= cell]
    return made if sum(more - less for more, less in made) > 0 else []


def has(row: Mapping[str, str], keys: Mapping[str, Any]) -> bool:
    """Whether a printed value has these keys, each of one value or one of several."""
    return all(
        row.get(k) in [str(one) for one in (v if isinstance(v, tuple | list) else [v])]
        for k, v in keys.items()
    )


def place_of(row: Mapping[str, str], apart: Collection[str] = ()) -> Place:
    """A printed value's keys, but for those that tell sides `apart`."""
    return tuple((k, v) for k, v in row.items() if k not in {*apart, "value", "note"})


def sizes(values: Iterable[str | Decimal], among: range) -> list[int]:
    """The numbers of questions that all these printed percentages could be shares of."""
    return _sizes(frozenset(map(str, values)), among)


@lru_cache(maxsize=32)  # tables and the ledger of one page ask for the same
def _sizes(values: frozenset[str], among: range) -> list[int]:
    numbers = [Decimal(value) for value in values]
    return [n for n in among if all(fits(value, n) for value in numbers)]


def fits(value: str | Decimal, n: int) -> bool:
    """Whether a printed percentage can be a whole number of n questions, rounded as printed."""
    number = Decimal(value)
    half = Decimal(1).scaleb(number.as_tuple().exponent) / 2
    low, high = ((number + side) / 100 * n for side in (-half, half))
    return floor(high) >= ceil(low)
