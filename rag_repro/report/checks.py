"""Whether the adaptive baselines do what they are for: their exposing checks, out of records.

A Self-RAG whose reader cannot tell gold passages apart, or an adaptive method
that always or never searches, would lose for want of training and not for want of the
idea; and one whose signal can be shuffled without a change does not use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation import calibration
from ..evaluation.statistics import Interval
from ..study.papers import Cell, Exhibit
from ..study.scores import Results, paired, resampled
from .tables import Table

Line = Mapping[str, Any]
GOLD = ("all", "static", "dynamic")


@dataclass(frozen=True)
class Separation:
    """How well the probability of "relevant" tells a cell's gold passages from the others.

    role: which gold ("all", "static", "dynamic"). gold, others: how many passages were
    judged. area: AUC, from 0 to 1, n being questions; None where a kind is missing.
    """

    keys: Mapping[str, Any]
    role: str
    gold: int
    others: int
    area: Interval | None


def separations(exhibit: Exhibit, results: Results, tier: str | None = None) -> list[Separation]:
    """Of each cell whose records hold critiques; static and dynamic where gold has roles."""
    made = []
    for cell in exhibit.cells(tier):
        judged = list(judged_passages(results.lines(cell) or ()))
        for role in GOLD:
            kept = [one for one in judged if not one[1] or role in ("all", one[2])]
            kinds = [gold for _, gold, _, _ in kept]
            if not any(kinds):
                continue
            area = None
            if not all(kinds):
                judgements = calibration.Judgements.of(
                    [p for p, *_ in kept], kinds, [cluster for *_, cluster in kept]
                )
                area = calibration.auc(judgements, np.random.default_rng(20240607))
            made.append(Separation(cell.keys, role, sum(kinds), len(kinds) - sum(kinds), area))
    return made


def judged_passages(lines: Sequence[Line]) -> Iterator[tuple[float, bool, str | None, str]]:
    """-> probability of "relevant", whether gold, its role, the question's cluster.

    Of passages of which nobody knows whether they are gold there is nothing.
    """
    for line in lines:
        roles = {line["hits"][rank - 1]: role for role, _, rank in line["gold"] if rank is not None}
        for name, relevant, gold in line.get("critique", ()):
            if gold is not None:
                yield relevant, bool(gold), roles.get(name), line["cluster"]


@dataclass(frozen=True)
class Shuffled:
    """A method beside its control with a shuffled signal, on the same questions.

    searched, control: share of questions for which each fetched passages, in points;
    changed: share of questions whose decision differs. calls, em: the
    control's minus the method's, paired: searches a question, exact match in points.
    """

    keys: Mapping[str, Any]
    against: str
    searched: Interval
    control: Interval
    changed: float
    calls: Interval
    em: Interval | None


def shuffles(exhibit: Exhibit, results: Results, tier: str | None = None) -> list[Shuffled]:
    """Of each cell whose row names the true method as its baseline, where both have records."""
    cells = exhibit.cells(tier)
    made = []
    for cell in cells:
        baseline = exhibit.methods[cell.keys["method"]].baseline
        true = baseline and _beside(cells, cell, baseline)
        if not true or not (results.lines(cell) and results.lines(true)):
            continue
        rates = [results.scores(one, "searched") for one in (true, cell)]
        decided = [
            {line["id"]: line["decided"] for line in results.lines(one) if "decided" in line}
            for one in (true, cell)
        ]
        common = decided[0].keys() & decided[1].keys()
        if None in rates or not common:
            continue
        made.append(
            Shuffled(
                cell.keys,
                baseline,
                *(resampled(rate, "searched").interval() for rate in rates),
                100 * sum(_class(decided[0][q]) != _class(decided[1][q]) for q in common)
                / len(common),
                _difference(results, cell, true, "retrievals"),
                _difference(results, cell, true, "em"),
            )
        )  # fmt: skip
    return made


def _class(decided: Sequence[Any]) -> Any:
    """What was decided: a class's letter, else whether passages were fetched."""
    went_by, fetched = decided
    return went_by if isinstance(went_by, str) else fetched


def _beside(cells: Sequence[Cell], cell: Cell, method: str) -> Cell | None:
    wanted = {**cell.keys, "method": method}
    return next((c for c in cells if c.tier == cell.tier and c.keys == wanted), None)


def _difference(results: Results, more: Cell, less: Cell, metric: str) -> Interval | None:
    sides = tuple(results.scores(cell, metric) for cell in (more, less))
    drawn = None if None in sides else paired([sides], metric)
    return drawn and drawn.interval()


def separation_table(found: Sequence[Separation], name: str = "tab-relevance") -> Table:
    """Data set, which gold, how many passages, AUC with its interval."""
    body = [
        [s.keys["dataset"], s.role, f"{s.gold} / {s.others}", _shown(s.area, 3), _n(s.area)]
        for s in found
    ]
    head = ["data set", "gold", "gold / other passages", "AUC [95 %]", "questions"]
    return Table(head, body, 'How "relevant" tells gold passages from others', name)


def shuffle_table(
    found: Sequence[Shuffled], labels: Mapping[str, str], name: str = "tab-shuffled"
) -> Table:
    """labels: the exhibit's names of methods."""
    body = [
        [
            s.keys["dataset"],
            labels[s.against],
            _shown(s.searched, 1),
            _shown(s.control, 1),
            f"{s.changed:.1f}",
            _shown(s.calls, 2),
            _shown(s.em, 1),
            _n(s.searched),
        ]
        for s in found
    ]
    head = ["data set", "method", "searched, %", "shuffled", "decision changed, %"]
    head += ["searches a question (difference)", "EM (difference)", "n"]
    return Table(head, body, "The same method with its signal shuffled", name)


def _shown(interval: Interval | None, digits: int) -> str:
    if interval is None:
        return "-"
    low, high = (f"{value:.{digits}f}" for value in (interval.lo, interval.hi))
    return f"{interval.estimate:.{digits}f} [{low}, {high}]"


def _n(interval: Interval | None) -> str:
    return str(interval.n) if interval else "-"
