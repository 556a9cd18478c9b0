"""What dynamic retrieval is tuned to, read off records of questions that are not tested on.

A row of the exhibit that varies one of `KNOBS` takes the value with the best EM, of equal ones
the one with the fewest retrievals. RIND without a factor, and random timing, are controls that
must alarm as often as RIND does, and are not tuned but matched: on every word that could
have given an alarm in the answers of RIND's row at its chosen threshold, as these answers'
records have measured it (`drafts`), the control's threshold is where as many words are above
it. Were the text the same whatever passages come, that is how many alarms it would give.
For random timing that is not so, by far: where the exhibit tries rates, it has the one at which
it searches as often as RIND.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ..methods.dragin.settings import FACTORS
from . import papers
from .exhibits import Cell, Exhibit
from .paper import Paper
from .scores import Results
from .strict import StudyError

KNOBS = ("threshold", "window", "doubt")
"""Settings that are chosen by the score, as the rows of such an exhibit vary them."""
RATE = "rate"
"""Of random timing: matched."""
REFERENCE = "dragin"
"""The row whose alarms the controls match."""


@dataclass(frozen=True)
class Choice:
    """A row's best value of its knob, of those tried: value -> (EM in points, retrievals)."""

    row: str
    knob: str
    value: float
    tried: Mapping[float, tuple[float, float]]
    n: int

    def __str__(self) -> str:
        others = ", ".join(f"{v:g}: {em:.1f}, {cost:.2f}" for v, (em, cost) in self.tried.items())
        return (
            f"{self.row}: {self.knob} {self.value:g} on {self.n} questions (EM, searches: {others})"
        )


@dataclass(frozen=True)
class Match:
    """A control's threshold, or chance, at which `share` of the words give an alarm."""

    row: str
    knob: str
    value: float
    share: float

    def __str__(self) -> str:
        share = f"{100 * self.share:.2f} % of the words"
        return f"{self.row}: {self.knob} {self.value:.4g}, an alarm at {share}"


@dataclass(frozen=True)
class Rate:
    """Random timing's rate, of those tried (rate -> retrievals), nearest to RIND's `wanted`."""

    value: float
    tried: Mapping[float, float]
    wanted: float
    n: int

    def __str__(self) -> str:
        others = ", ".join(f"{rate:g}: {cost:.2f}" for rate, cost in self.tried.items())
        return (
            f"random: rate {self.value:g} on {self.n} questions, beside RIND's {self.wanted:.2f} "
            f"searches ({others})"
        )


def varies(exhibit: Exhibit) -> bool:
    """Whether the exhibit's rows vary a knob."""
    return any(knob in cell.keys for cell in exhibit.cells() for knob in KNOBS)


def chosen(exhibit: str, dataset: str, results: Path) -> list[Choice | Match | Rate]:
    """The choice of every row that has records, then the controls' matches, on one data set.

    Raises StudyError for test questions, for a data set that the exhibit has not, and where
    records are missing, with the command that makes them.
    """
    paper, made = papers.exhibit(exhibit)
    found = Results(results)
    rows: dict[tuple[str, str], list[Cell]] = {}
    rates: list[Cell] = []
    for cell in made.cells():
        if cell.keys["dataset"] == dataset:
            if cell.condition.split == "test":
                raise StudyError(f"{exhibit}, {dataset}: nothing is tuned on test questions")
            if knob := next((name for name in KNOBS if name in cell.keys), None):
                rows.setdefault((cell.keys["method"], knob), []).append(cell)
            elif RATE in cell.keys:
                rates.append(cell)
    if not rows:
        known = ", ".join(dict.fromkeys(c.keys["dataset"] for c in made.cells()))
        raise StudyError(f"{exhibit} tunes nothing on {dataset!r}; it has: {known}")
    choices: list[Choice | Match | Rate] = []
    matched: list[Match | Rate] = []
    for (row, knob), cells in rows.items():
        if row != REFERENCE and not any(found.lines(cell) for cell in cells):
            continue  # a row that nobody has run chooses nothing, and holds up no other
        choice, lines = _best(exhibit, row, knob, cells, found)
        choices.append(choice)
        if row == REFERENCE:
            matched = _matches(exhibit, paper, made, dataset, lines)
            if rates and any(found.lines(cell) for cell in rates):
                matched[0] = _rate(exhibit, rates, found, choice)
    return choices + matched


def _best(
    exhibit: str, row: str, knob: str, cells: Sequence[Cell], found: Results
) -> tuple[Choice, Sequence[Mapping[str, Any]]]:
    """The row's choice, and the lines of the chosen cell."""
    tried, asked = {}, set()
    for cell in cells:
        scores, costs = (found.scores(cell, name) for name in ("em", "retrievals"))
        if scores is None or costs is None:
            raise StudyError(_missing(exhibit, cell))
        asked.add(frozenset(scores.ids))
        tried[cell.keys[knob]] = (float(scores.values.mean()), float(costs.values.mean()))
    if len(asked) != 1:
        raise StudyError(f"cells are not of the same questions: {_missing(exhibit, cells[0])}")
    value = min(tried, key=lambda v: (-round(tried[v][0], 9), round(tried[v][1], 9)))
    [cell] = [cell for cell in cells if cell.keys[knob] == value]
    return Choice(row, knob, value, tried, len(asked.pop())), found.lines(cell)


def _rate(exhibit: str, cells: Sequence[Cell], found: Results, reference: Choice) -> Rate:
    """Of the rates tried the one with as many searches; of two as near, the one with fewer."""
    tried, asked = {}, set()
    for cell in cells:
        if (costs := found.scores(cell, "retrievals")) is None:
            raise StudyError(_missing(exhibit, cell))
        asked.add(len(costs.ids))
        tried[cell.keys[RATE]] = float(costs.values.mean())
    if asked != {reference.n}:
        raise StudyError(f"cells are not of the same questions: {_missing(exhibit, cells[0])}")
    wanted = reference.tried[reference.value][1]
    value = min(tried, key=lambda rate: (abs(tried[rate] - wanted), rate))
    return Rate(value, tried, wanted, reference.n)


def _matches(
    exhibit: str,
    paper: Paper,
    made: Exhibit,
    dataset: str,
    lines: Sequence[Mapping[str, Any]],
) -> list[Match]:
    """Thresholds of the paper's rows that leave factors out, and random timing's rate."""
    told = [line.get("dynamic", {}) for line in lines]
    if any("signals" not in entry for entry in told if entry.get("judged")):
        raise StudyError(
            f"{exhibit}, {dataset}: records of row {REFERENCE} hold no signals (an older version "
            f"made them); delete them and run the row again"
        )
    words = [dict(zip(FACTORS, row, strict=True)) for e in told for row in e.get("signals", ())]
    alarms = sum(entry.get("alarms", 0) for entry in told)
    if not words:
        raise StudyError(f"{exhibit}, {dataset}: row {REFERENCE} judged no word")
    matched = [Match("random", "rate", round(alarms / len(words), 4), alarms / len(words))]
    for row, factors in _without(paper).items():
        values = [prod(word[name] for name in factors) for word in words]
        value = matching(values, alarms)
        matched.append(Match(row, "threshold", value, sum(v > value for v in values) / len(words)))
    return matched


def _without(paper: Paper) -> dict[str, tuple[str, ...]]:
    """Rows of the paper's exhibits whose score is of other factors than RIND's."""
    return {
        name: tuple(row.settings["factors"])
        for exhibit in paper.exhibits.values()
        for name, row in exhibit.methods.items()
        if "factors" in row.settings
    }


def matching(values: Sequence[float], wanted: int) -> float:
    """The threshold with, as nearly as ties allow, that many values above it: of four digits,
    half way between two values. Of two as near the higher one, which gives fewer alarms."""
    held = sorted(set(values))
    between = [(a + b) / 2 for a, b in zip([0.0, *held], held, strict=False)]
    candidates = {float(f"{value:.4g}") for value in (*between, held[-1] * 1.01)}

    def off(threshold: float) -> tuple[int, float]:
        return abs(sum(value > threshold for value in values) - wanted), -threshold

    return min(candidates, key=off)


def _missing(exhibit: str, cell: Cell) -> str:
    keys = cell.keys
    return (
        f"records are missing; make them first: rag-repro run {exhibit} "
        f"--dataset {keys['dataset']} --method {keys['method']}"
    )
