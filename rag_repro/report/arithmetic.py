"""A paper's printed values against its own sentences: gains, bests, and sizes of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import ceil, floor
from statistics import mean

from ..data.titles import word
from ..study.papers import Paper
from ..study.printed import Compared, Place
from .table import Table

Entry = Mapping[str, str]
ANSWERS = ("em", "f1", "acc")


def pick(entries: Iterable[Entry], **wanted: str | Sequence[str]) -> list[Entry]:
    """The printed values whose keys have the wanted value, or one of several."""
    return [
        entry
        for entry in entries
        if all(
            entry.get(key) == value if isinstance(value, str) else entry.get(key) in value
            for key, value in wanted.items()
        )
    ]


def gains(
    paper: Paper, key: str, method: str, baseline: str, **where: str | Sequence[str]
) -> dict[Place, Decimal]:
    """Every difference between two methods' printed values, by all their other keys."""
    return Compared(key, {"method": method}, {"method": baseline}, where).values(paper)


def _place(entry: Entry) -> tuple:
    return tuple((k, v) for k, v in entry.items() if k not in ("method", "value", "note"))


def best(
    paper: Paper,
    key: str,
    methods: Sequence[str],
    name: str = "",
    *,
    metrics: Sequence[str] = ANSWERS,
    across: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    **wanted: str | Sequence[str],
) -> Table:
    """In how many printed cells each method has the highest value, alone.

    methods: as printed. wanted: other keys of the values that count. across: keys, as
    "reader", whose values compete as well: each is then named with its method, and cells
    that they tell apart are one. labels: of printed methods that have no row of ours.
    """
    known = {**(labels or {}), **{k: m.label for k, m in paper.exhibit(key).methods.items()}}
    cells: dict[tuple, dict[str, Decimal]] = {}
    found = pick(paper.printed(key), method=methods, metric=metrics, **wanted)
    for entry in sorted(found, key=lambda entry: list(methods).index(entry["method"])):
        method = entry["method"]
        who = ", ".join([known.get(method, method), *(entry[k] for k in across)])
        place = tuple(pair for pair in _place(entry) if pair[0] not in across)
        cells.setdefault(place, {})[who] = Decimal(entry["value"])
    won = dict.fromkeys([*(who for values in cells.values() for who in values), "two alike"], 0)
    for values in cells.values():
        top = [who for who, value in values.items() if value == max(values.values())]
        won[top[0] if len(top) == 1 else "two alike"] += 1
    caption = f"Who is best in the {len(cells)} cells of {paper.short}'s {paper.exhibit(key).place}"
    return Table(["method", "cells"], [list(pair) for pair in won.items()], caption, name)


def fits(value: str, n: int) -> bool:
    """Whether a printed percentage can be a whole number of n questions, rounded as printed."""
    number = Decimal(value)
    half = Decimal(1).scaleb(number.as_tuple().exponent) / 2
    low, high = ((number + side) / 100 * n for side in (-half, half))
    return floor(high) >= ceil(low)


def sizes(values: Iterable[str], among: Iterable[int]) -> list[int]:
    """The numbers of questions that all these printed percentages could be shares of."""
    held = set(values)
    return [n for n in among if all(fits(value, n) for value in held)]


def independent(
    shown: Mapping[str, Sequence[str]], sources: Mapping[str, str], name: str = ""
) -> Table:
    """One line an exhibit: its data sets, and of how many sources they were drawn.

    shown: exhibit in words -> its data sets. sources: data set -> what it was drawn from, of
    those that share it with another.
    """
    body = []
    for said, datasets in shown.items():
        of = {sources.get(one, one) for one in datasets}
        body.append([said, len(datasets), len(of), ", ".join(map(word, datasets))])
    head = ["exhibit", "data sets", "independent sources", "which"]
    return Table(head, body, "How many data sets each exhibit is about", name)


def listed(
    found: Mapping[str, Mapping[Place, Decimal]], caption: str = "", name: str = ""
) -> Table:
    """One line a data set, and for all: each of these differences, as `gains` makes them."""
    by = {
        said: {dict(place)["dataset"]: gain for place, gain in held.items()}
        for said, held in found.items()
    }
    datasets = list(dict.fromkeys(dataset for held in by.values() for dataset in held))
    body = [
        [word(one), *(f"{held[one]:+.2f}" if one in held else "" for held in by.values())]
        for one in datasets
    ]
    body.append(["mean", *(f"{mean(held.values()):+.2f}" for held in by.values())])
    return Table(["data set", *by], body, caption, name)
