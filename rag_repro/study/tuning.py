"""What is tuned on records of questions that are not tested on.

`threshold`: Adaptive Retrieval's, over an entity's popularity: a world's own views, PopQA's page
views (`meta["s_pop"]`), or "mentions", how many passages of the pooled corpus name the question's
rarest name, as the row `mentions` of the exhibit has counted (a search for each name, no reader).

`chosen`: dynamic retrieval's. A row that varies one of `KNOBS` gets the value of the best EM, of
tied ones the middle, and the one that searches as often as DRAGIN does in its table 3. RIND without
a factor, and random timing, are controls that must alarm as often as RIND: their threshold is where
as many words are above it, of all that could have given an alarm in RIND's answers at its tuned
threshold (`line_fields.of_drafts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from rag_repro import data
from rag_repro.methods.baselines.adaptive_retrieval import META, best_threshold
from rag_repro.methods.dragin.dynamic_settings import FACTORS
from rag_repro.study import papers
from rag_repro.study.exhibits import Cell, Exhibit
from rag_repro.study.papers import Paper
from rag_repro.study.scores import Results
from rag_repro.study.yaml_files import StudyError

WITHOUT, WITH, COUNTED = "A", "B", "mentions"
"""The exhibit's rows: no retrieval, one search, the counting of mentions."""


@dataclass(frozen=True)
class Tuned:
    """A threshold and what it rests on: n questions, the share of them that would search,
    and mean scores (0 to 1) without passages, with them, and as the threshold decides."""

    threshold: float
    n: int
    searched: float
    without: float
    given: float
    adaptive: float

    def __str__(self) -> str:
        return (
            f"threshold {self.threshold:g} on {self.n} questions: {100 * self.searched:.1f} % "
            f"search; {100 * self.adaptive:.1f} right, {100 * self.without:.1f} without passages, "
            f"{100 * self.given:.1f} always with them"
        )


def threshold(
    exhibit: str,
    popularity: str,
    datasets: Sequence[str],
    results: Path,
    *,
    data_dir: Path | None = None,
) -> Tuned:
    """The threshold under which these data sets' questions would have scored best in all.

    exhibit: with rows A and B, and `mentions` for that popularity. Raises StudyError for test
    questions, for records that are not there (with the command that makes them), and for
    questions of which nobody knows the popularity.
    """
    found = Results(results)
    values: list[float] = []
    without: list[float] = []
    given: list[float] = []
    for dataset in datasets:
        alone, retrieved = (
            found.values(_recorded(exhibit, dataset, row, found), "em") for row in (WITHOUT, WITH)
        )
        known = _popularities(exhibit, dataset, popularity, found, data_dir)
        if alone.keys() != retrieved.keys() or retrieved.keys() - known.keys():
            raise StudyError(
                f"{exhibit}, {dataset}: its rows are not of the same questions; finish them: "
                f"rag-repro run {exhibit} --dataset {dataset}"
            )
        values += [known[name] for name in retrieved]
        without += [alone[name] for name in retrieved]
        given += retrieved.values()
    best = best_threshold(values, without, given)
    search = [value < best for value in values]
    n = len(values)
    chosen = [b if s else a for a, b, s in zip(without, given, search, strict=True)]
    return Tuned(best, n, sum(search) / n, sum(without) / n, sum(given) / n, sum(chosen) / n)


def _popularities(
    exhibit: str, dataset: str, popularity: str, found: Results, data_dir: Path | None
) -> Mapping[str, float]:
    if popularity == COUNTED:
        lines = found.lines(_recorded(exhibit, dataset, COUNTED, found))
        return {line["id"]: line["decided"][0] for line in lines}
    if popularity not in META:
        known = ", ".join((*META, COUNTED))
        raise StudyError(f"popularity {popularity!r} cannot be tuned; it is one of: {known}")
    split = _cell(exhibit, dataset, WITH).condition.split
    key = META[popularity]
    asked = data.load(dataset, data_dir=data_dir, split=split).questions
    unknown = next((q.id for q in asked if q.meta.get(key) is None), None)
    if unknown is not None:
        raise StudyError(f"{dataset}: question {unknown!r} has no {key!r}; popularity: {COUNTED}")
    return {q.id: float(q.meta[key]) for q in asked}


def _cell(exhibit: str, dataset: str, row: str) -> Cell:
    _, made = papers.exhibit(exhibit)
    rows = [c for c in made.cells() if c.matches({"method": row})]
    fits = [c for c in rows if c.keys["dataset"] == dataset]
    if not fits:
        known = dict.fromkeys(c.keys["dataset"] for c in rows if c.condition.split != "test")
        told = f"tunes nothing on {dataset!r}; its row {row} is tuned on: {', '.join(known)}"
        if not known:
            told = (
                f"tunes nothing: it varies no threshold, and no row {row} is asked questions that "
                "are not tested on; such are drrag.outcomes and dragin.tuning"
            )
        raise StudyError(f"{exhibit} {told}")
    if len(fits) != 1:
        raise StudyError(f"{exhibit} has {len(fits)} conditions of row {row} on {dataset}, not one")
    if fits[0].condition.split == "test":
        raise StudyError(f"{exhibit}, {dataset}: nothing is tuned on test questions")
    return fits[0]


def _recorded(exhibit: str, dataset: str, row: str, found: Results) -> Cell:
    cell = _cell(exhibit, dataset, row)
    if not found.lines(cell):
        raise StudyError(_missing(exhibit, cell))
    return cell


KNOBS = ("threshold", "window", "doubt", "rate")
"""Settings that the rows of such an exhibit vary."""
ALWAYS = {"threshold": 0, "window": 1, "doubt": 1, "rate": 1}
"""Where a grid ends by nature, since every word, or every sentence, gives an alarm. The other
natural end is any value at which nothing does."""
REFERENCE = "dragin"
"""The row whose alarms the controls match."""
NEAR = 0.25
"""Searches per question by which a matched value may miss the printed number."""


class Tried(NamedTuple):
    """What one value gave: EM and F1 in points, searches and alarms per question."""

    em: float
    f1: float
    searches: float
    alarms: float


@dataclass(frozen=True)
class Choice:
    """A row's values of its knob, lowest first, on n questions, and how often it should search."""

    row: str
    knob: str
    tried: Mapping[float, Tried]
    n: int
    wanted: float | None

    @property
    def value(self) -> float:
        """The value with the best EM: of tied ones the middle, of two middle ones by F1."""
        best = max(round(one.em, 9) for one in self.tried.values())
        tied = [value for value, one in self.tried.items() if round(one.em, 9) == best]
        middle = tied[(len(tied) - 1) // 2 : len(tied) // 2 + 1]
        return max(middle, key=lambda value: self.tried[value].f1)

    @property
    def matched(self) -> float | None:
        """The value that searches as often as is wanted, within `NEAR`; None: none does."""
        if self.wanted is None:
            return None
        nearest = min(self.tried, key=self._off)
        return nearest if self._off(nearest) <= NEAR else None

    def _off(self, value: float) -> float:
        return abs(self.tried[value].searches - self.wanted)

    @property
    def is_open(self) -> bool:
        """Whether the best value ends the grid where it could go on, so that it must be widened."""
        natural = self.value == ALWAYS[self.knob] or not self.tried[self.value].alarms
        return self.value in (min(self.tried), max(self.tried)) and not natural

    def __str__(self) -> str:
        curve = "; ".join(
            f"{value:g}: {one.em:.1f}, {one.f1:.1f}, {one.searches:.2f}"
            for value, one in self.tried.items()
        )
        told = f"{self.row}: {self.knob} {self.value:g} by the best EM on {self.n} questions"
        if self.is_open:
            told += " (the grid ends there: widen it)"
        if self.wanted is not None:
            other = "none" if self.matched is None else f"{self.matched:g}"
            told += f", {other} by the {self.wanted:g} searches that the paper prints"
        return f"{told} (EM, F1, searches: {curve})"


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


def varies(exhibit: Exhibit) -> bool:
    """Whether the exhibit's rows vary a knob."""
    return any(knob in cell.keys for cell in exhibit.cells() for knob in KNOBS)


def chosen(exhibit: str, dataset: str, results: Path) -> list[Choice | Match]:
    """The choice of every row that has records, then the controls' matches, on one data set.

    Raises StudyError for test questions, for a data set that the exhibit has not, and where
    records are missing, with the command that makes them.
    """
    paper, made = papers.exhibit(exhibit)
    found = Results(results)
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in made.cells():
        if cell.keys["dataset"] == dataset:
            if cell.condition.split == "test":
                raise StudyError(f"{exhibit}, {dataset}: nothing is tuned on test questions")
            if knob := next((name for name in KNOBS if name in cell.keys), None):
                rows.setdefault((cell.keys["method"], knob), []).append(cell)
    if not rows:
        known = ", ".join(dict.fromkeys(c.keys["dataset"] for c in made.cells()))
        raise StudyError(f"{exhibit} tunes nothing on {dataset!r}; it has: {known}")
    choices: list[Choice | Match] = []
    matched: list[Match] = []
    wanted = printed_searches(dataset)
    for (row, knob), cells in rows.items():
        if row != REFERENCE and not any(found.lines(cell) for cell in cells):
            continue  # a row that nobody has run chooses nothing, and holds up no other
        choice, lines = _choice(exhibit, row, knob, cells, found, wanted)
        choices.append(choice)
        if row == REFERENCE:
            matched = _matches(exhibit, paper, made, dataset, lines)
    return choices + matched


def printed_searches(dataset: str) -> float | None:
    """How often DRAGIN searches per question in its table 3, with its first reader.

    Worlds ask 2WikiMultihopQA's kinds of questions, so its number is theirs. None: not printed.
    """
    name = "2wikimultihopqa" if dataset.startswith("world-") else dataset.removesuffix("_train")
    rows = papers.load("dragin").printed("table3")
    fits = (row for row in rows if (row["method"], row["dataset"]) == (REFERENCE, name))
    return next((float(row["value"]) for row in fits), None)


def _choice(
    exhibit: str,
    row: str,
    knob: str,
    cells: Sequence[Cell],
    found: Results,
    wanted: float | None,
) -> tuple[Choice, Sequence[Mapping[str, Any]]]:
    """The row's choice, and the lines of the tuned cell."""
    tried, asked = {}, set()
    for cell in sorted(cells, key=lambda cell: cell.keys[knob]):
        scores = [found.scores(cell, name) for name in ("em", "f1", "retrievals", "alarms")]
        if None in scores:
            raise StudyError(_missing(exhibit, cell))
        asked.add(frozenset(scores[0].ids))
        tried[cell.keys[knob]] = Tried(*(float(one.values.mean()) for one in scores))
    if len(asked) != 1:
        raise StudyError(f"cells are not of the same questions: {_missing(exhibit, cells[0])}")
    choice = Choice(row, knob, tried, len(asked.pop()), wanted)
    [cell] = [cell for cell in cells if cell.keys[knob] == choice.value]
    return choice, found.lines(cell)


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
