"""A paper's printed values against its own sentences: gains, bests, what bears claims out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from statistics import mean
from typing import Any

from rag_repro.data.titles import word
from rag_repro.evaluation import metrics
from rag_repro.show.table import Table
from rag_repro.study.audits import Finding, points
from rag_repro.study.exhibits import Exhibit
from rag_repro.study.papers import Claim, Paper
from rag_repro.study.printed import LEVEL, Compared, has, place_of

ANSWERS = ("em", "f1", "acc")


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
    wanted = {"method": methods, "metric": metrics, **wanted}
    found = [row for row in paper.printed(key) if has(row, wanted)]
    for row in sorted(found, key=lambda row: [*methods].index(row["method"])):
        who = ", ".join([known.get(row["method"], row["method"]), *(row[k] for k in across)])
        cells.setdefault(place_of(row, {"method", *across}), {})[who] = Decimal(row["value"])
    won = dict.fromkeys([*(who for values in cells.values() for who in values), "two alike"], 0)
    for values in cells.values():
        top = [who for who, value in values.items() if value == max(values.values())]
        won[top[0] if len(top) == 1 else "two alike"] += 1
    caption = f"Who is best in the {len(cells)} cells of {paper.short}'s {paper.exhibit(key).place}"
    return Table(["method", "cells"], [list(pair) for pair in won.items()], caption, name)


def workings(paper: Paper, claim: Claim, findings: Iterable[Finding] = ()) -> list[str]:
    """One sentence for each comparison that the claim names, and each finding that bears on it."""
    made = [_sentence(paper, compared) for compared in claim.printed]
    return [*made, *(found.working for found in findings)]


def working(paper: Paper, claim: Claim, findings: Iterable[Finding] = ()) -> str:
    """Why its own numbers bear the claim out or do not: in words, then what is computed."""
    words = [f"{claim.support_note}."] if claim.support_note else []
    return " ".join([*words, *workings(paper, claim, findings)])


def _sentence(paper: Paper, compared: Compared) -> str:
    exhibit, values = paper.exhibits[compared.exhibit], compared.values(paper)
    said = partial(_words, exhibit)
    place = exhibit.place.split(",")[0]
    told = ", ".join(
        [f"{place[0].upper()}{place[1:]}", *said(compared.where), _sides(said, compared)]
    )
    least, most = (end(values, key=values.__getitem__) for end in (min, max))
    signed = compared.says != LEVEL
    if len(values) == 1:
        return f"{told}: {points(values[least], sign=signed)}."
    shared = set.intersection(*(set(place) for place in values))
    ends = []
    for place in (least, most):
        where = ", ".join(said({k: v for k, v in place if v and (k, v) not in shared}))
        ends.append(f"{points(values[place], sign=signed)} ({where})")
    span = f"from {ends[0]} to {ends[1]}."
    if not signed:
        return f"{told}: {span}"
    above = sum(value > 0 for value in values.values())
    average = points(mean(values.values()), sign=True)
    return f"{told}: above in {above} of {len(values)}, mean {average}, {span}"


def _sides(said: Callable[[Mapping[str, Any]], list[str]], compared: Compared) -> str:
    more = ", ".join(said(compared.more))
    if compared.less is None:
        return more
    several = any(isinstance(value, list | tuple) for value in compared.less.values())
    return f"{more} less {'the best of ' if several else ''}{', '.join(said(compared.less))}"


def _words(exhibit: Exhibit, keys: Mapping[str, Any]) -> list[str]:
    """Each key's value in words, or its several ones."""
    made = []
    for key, value in keys.items():
        values = value if isinstance(value, list | tuple) else [value]
        *others, last = (_word(exhibit, key, str(one)) for one in values)
        made.append(f"{', '.join(others)} and {last}" if others else last)
    return made


def _word(exhibit: Exhibit, key: str, value: str) -> str:
    if key == "method" and value in exhibit.methods:
        # What stands in brackets tells our rows apart and not the paper's.
        label = exhibit.methods[value].label.split(" (")[0]
        return f"“{label}”" if "," in label else label
    if key == "metric":
        return metrics.get(value).symbol if value in metrics.METRICS else value
    if key == "dataset":
        return word(value)
    return value if key in ("method", "reader") else f"{key} = {value}"
