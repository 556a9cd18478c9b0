"""A paper's printed values against its own sentences: gains, bests, and sizes of samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from rag_repro.show.table import Table
from rag_repro.study.papers import Paper
from rag_repro.study.printed import Compared, Place

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
