"""What the committed records say, for sentences that chapters state in words (`test_said`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from rag_repro.evaluation.intervals import Interval
from rag_repro.lm.hub import card_of
from rag_repro.show import exhibit_rows, readers
from rag_repro.show.exhibit_rows import Row
from rag_repro.study import judge, papers
from rag_repro.study.papers import Cell
from rag_repro.study.scores import Results

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Results(ROOT / "results" / "records")

Distortion = Callable[[float], float]


@dataclass(frozen=True)
class Said:
    """A sentence of a chapter, typed by hand, and what records must say for it to be true.

    page: as "42_r2ag_soft_prompts". sentence: as in the chapter's source, line breaks and all
    spaces being one. holds: every number that it asks comes from its argument.
    """

    page: str
    sentence: str
    holds: Callable[[Told], bool]


@dataclass(frozen=True)
class Told:
    """Numbers of the committed records, in the units of the pages (percentages in points).

    distortion: what every number goes through, by which a test finds predicates that hold
    whatever the records say.
    """

    distortion: Distortion = float

    def row(self, exhibit: str, metric: str, tier: str | None = None, **keys: Any) -> Row:
        """The one row of an exhibit ("r2ag.table1") with this metric and these keys that was run.

        Raises LookupError, naming what there is, where there is none or more than one.
        """
        held = [
            r
            for r in _rows(exhibit)
            if r.ours is not None and r.metric == metric and tier in (None, r.tier)
        ]
        fits = [r for r in held if all(r.keys.get(key) == value for key, value in keys.items())]
        if len(fits) != 1:
            there = "\n".join(f"{r.tier} {dict(r.keys)} {r.ours}" for r in fits or held)
            raise LookupError(f"{len(fits)} rows of {exhibit}, {metric}, {tier}, {keys}:\n{there}")
        return fits[0]

    def ours(self, exhibit: str, metric: str, tier: str | None = None, **keys: Any) -> float:
        """That row's mean."""
        return self.of(self.row(exhibit, metric, tier, **keys).ours.estimate)

    def gain(self, exhibit: str, metric: str, tier: str | None = None, **keys: Any) -> Interval:
        """That row's paired difference to its baseline, as the tables show it."""
        diff = self.row(exhibit, metric, tier, **keys).diff
        if diff is None:
            raise LookupError(f"{exhibit} {metric} {keys} has no baseline")
        return self.between(diff)

    def contrast(self, claim: str, tier: str, label: str) -> Interval:
        """The interval of a claim's contrast ("r2ag.c23", "testbed", "over learnable tokens")."""
        judged = _judged(claim.split(".", 1)[0], tier)[claim]
        parts = [p for p in judged.parts if p.contrast.label == label]
        if len(parts) != 1 or parts[0].interval is None:
            there = [(p.contrast.label, p.interval) for p in judged.parts]
            raise LookupError(f"{claim} at {tier} has no contrast {label!r}: {there}")
        return self.between(parts[0].interval)

    def verdict(self, claim: str, tier: str) -> str:
        """A claim's word at a tier; distorted numbers make another."""
        word = _judged(claim.split(".", 1)[0], tier)[claim].verdict.word
        return word if self.of(1.0) == 1.0 else f"not {word}"

    def card(self, name: str, *keys: str) -> float:
        """A number of a training's card, as card("r2ag-mixed", "held_out_loss", "answer")."""
        found = card(name)
        for key in keys:
            found = found[key]
        return self.of(found)

    def of(self, number: float) -> float:
        """A number that was computed otherwise, so that it is distorted with the others."""
        return self.distortion(float(number))

    def between(self, interval: Interval) -> Interval:
        """An interval that was computed otherwise."""
        lo, hi = sorted(map(self.distortion, (interval.lo, interval.hi)))
        estimate = min(max(self.distortion(interval.estimate), lo), hi)
        return replace(interval, estimate=estimate, lo=lo, hi=hi)


def printed(number: float, digits: int = 1) -> str:
    """A number as the pages print it."""
    return f"{number:.{digits}f}"


def holds_zero(interval: Interval) -> bool:
    return interval.lo <= 0 <= interval.hi


def card(name: str) -> dict[str, Any]:
    """A training's card, which lies beside its weights or without them."""
    return card_of(readers.trained_folders([name])[name])


def cells(exhibit: str, tier: str | None = None, **keys: Any) -> list[Cell]:
    """An exhibit's cells with these keys that have records."""
    found = papers.exhibit(exhibit)[1].cells(tier)
    return [cell for cell in found if cell.matches(keys) and RESULTS.lines(cell)]


@cache
def _rows(exhibit: str) -> list[Row]:
    paper, found = papers.exhibit(exhibit)
    return exhibit_rows.recipe_rows(paper, found, RESULTS)


@cache
def _judged(paper: str, tier: str) -> dict[str, judge.Judged]:
    return {one.claim.id: one for one in judge.judge(papers.load(paper), tier, RESULTS)}
