"""What a pair classifier's selection did, out of records: pairs asked, passages taken away.

A line's `judged` holds [d, e, probability, how many of the two are gold] of each
pair in the order asked (`study.runner.line_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data.dataset import Dataset
from ..evaluation.line_metrics import gold_of_judged, removed
from ..schema import Answer, Hit, Question
from ..study.papers import Cell
from ..study.scores import Results
from ..study.services import Workshop
from . import traces
from .picture import Note
from .tables import Table, word

Line = Mapping[str, Any]
NOT_RUN = "not run"


# ------------------------------------------------------------- pairs and thresholds


@dataclass(frozen=True)
class Pairs:
    """Judged pairs at one threshold; the shares lie in [0, 1], None where of nothing.

    right: pairs whose verdict is that of the labels (equation 2). precision: gold
    pairs among the positive ones. found: positive ones among the gold pairs.
    """

    threshold: float
    pairs: int
    positive: float
    gold: float
    right: float
    precision: float | None
    found: float | None

    @property
    def f1(self) -> float:
        if not self.precision or not self.found:
            return 0.0
        return 2 * self.precision * self.found / (self.precision + self.found)


def at_threshold(lines: Iterable[Line], threshold: float) -> Pairs | None:
    """The lines' labelled pairs at a threshold, each (question, pair) once; None: no pair."""
    held = {
        (line["id"], d, e): (p >= threshold, gold == 2)
        for line in lines
        for d, e, p, gold in line.get("judged", ())
        if gold is not None
    }
    if not held:
        return None
    said, true = (sum(pair[i] for pair in held.values()) for i in (0, 1))
    both = sum(yes and needed for yes, needed in held.values())
    return Pairs(
        threshold,
        len(held),
        said / len(held),
        true / len(held),
        sum(yes == needed for yes, needed in held.values()) / len(held),
        both / said if said else None,
        both / true if true else None,
    )


def best(lines: Sequence[Line], measure: str = "f1") -> Pairs | None:
    """The pairs at the threshold that makes `measure` ("f1" or "right") largest.

    Tried are 0.01 to 0.99 by 0.01; of equals it is the one nearest to 0.5.
    """
    tried = [at_threshold(lines, step / 100) for step in range(1, 100)]
    if tried[0] is None:
        return None
    return max(tried, key=lambda p: (getattr(p, measure), -abs(p.threshold - 0.5)))


def pairs_table(
    cells: Sequence[Cell], labels: Mapping[str, str], results: Results, name: str = ""
) -> Table:
    """One line a cell: pairs a question, how many are positive, and how right that is."""
    body = []
    for cell in cells:
        lines = results.lines(cell)
        start = [word(str(cell.keys["dataset"])), labels[cell.keys["method"]], cell.keys["k"]]
        told = at_threshold(lines or (), cell.condition.configured.threshold)
        if told is None:
            body.append([*start, NOT_RUN if lines is None else "no pair judged", *[""] * 5])
            continue
        asked = sum(len(line.get("judged", ())) for line in lines) / len(lines)
        shares = (told.positive, told.gold, told.precision, told.found)
        body.append([*start, len(lines), f"{asked:.1f}", *map(_points, shares)])
    head = ["data set", "method", "k", "questions", "pairs a question", "positive, %"]
    head += ["both gold, %", "of positive ones both gold, %", "of gold pairs positive, %"]
    return Table(head, body, "What the classifier was asked, and what it said", name)


def threshold_table(
    cells: Sequence[Cell], results: Results, chosen_on: str, name: str = ""
) -> Table:
    """The threshold that the pairs of each cell would choose, beside 0.5."""
    body = []
    for cell in cells:
        lines = results.lines(cell) or ()
        if (by_f1 := best(lines)) is None:
            body.append([str(cell.keys["dataset"]), NOT_RUN, *[""] * 6])
            continue
        plain, by_right = at_threshold(lines, 0.5), best(lines, "right")
        body.append(
            [
                str(cell.keys["dataset"]),
                by_f1.pairs,
                _points(by_f1.gold),
                f"{by_f1.threshold:.2f}",
                _points(by_f1.f1),
                _points(plain.f1),
                f"{by_right.threshold:.2f}",
                f"{_points(by_right.right)} (at 0.5: {_points(plain.right)})",
            ]
        )
    head = ["data set", "pairs", "both gold, %", "best for F1", "its F1, %", "F1 at 0.5, %"]
    head += ["best for accuracy", "accuracy, %"]
    return Table(head, body, f"Thresholds chosen on {chosen_on}", name)


def _points(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


# ------------------------------------------------------------------ a worked case


@dataclass(frozen=True)
class Case:
    """One recorded question under two conditions, and how often they part.

    gained: questions of which `after` is the better (as `case` was told), lost: the
    reverse, of: recorded under both.
    """

    question: Question
    dataset: Dataset
    before: Line
    after: Line
    gained: int
    lost: int
    of: int

    def counts(self, gained: str, lost: str) -> Table:
        """How often the shown thing happens, and how often its reverse."""
        rest = self.of - self.gained - self.lost
        return Table(
            [gained, lost, "neither", "questions"], [[self.gained, self.lost, rest, self.of]]
        )

    def handed_on(self, line: Line) -> Answer:
        """The line's passages, from the corpus, as an answer's hits."""
        passages = self.dataset.corpus.by_id
        ranked = enumerate(line["hits"], start=1)
        return Answer(hits=tuple(Hit(passages[name], 0.0, rank) for rank, name in ranked))

    def pages(self, before: str, after: str) -> list[Table]:
        """The question, what each condition hands on, and what the classifier was asked."""
        shown = [traces.question_table(self.question, self.dataset)]
        for line, caption in ((self.before, before), (self.after, after)):
            shown.append(traces.context_table(self.handed_on(line), self.question, caption))
        return [*shown, judged_table(self.after, self.dataset)]


def judged_table(line: Line, dataset: Dataset) -> Table:
    """Every pair that the classifier was asked about, in order."""
    passages, kept = dataset.corpus.by_id, set(line["hits"])
    body = [
        [
            passages[d].title,
            passages[e].title,
            f"{p:.2f}",
            "" if gold is None else gold,
            "yes" if e in kept else "no",
        ]
        for d, e, p, gold in line.get("judged", ())
    ]
    head = ["d", "d'", "probability", "gold of the two", "d' handed on"]
    return Table(head, body, "What the classifier was asked, in order")


def case(
    before: Cell,
    after: Cell,
    results: Results,
    workshop: Workshop,
    better: Callable[[Line, Line], bool],
    worse: Callable[[Line, Line], bool],
    fine: Callable[[Line, Line], bool] = lambda before, after: True,
) -> Case | Note:
    """The first recorded question that `after` has `better`; a note where there is none.

    better, worse: of (line before, line after). fine: asked beside `better` of the
    question that is shown, not of those counted. Texts are shown, so only of the testbed.
    """
    if after.tier != "testbed":
        return Note("Texts of public data sets are not shown here.")
    sides = [{line["id"]: line for line in results.lines(cell) or ()} for cell in (before, after)]
    both = [(sides[0][name], sides[1][name]) for name in sides[0] if name in sides[1]]
    if not both:
        return Note("No case is shown: its conditions are not run yet.")
    gained = [pair for pair in both if better(*pair)]
    if not gained:
        return Note(f"No case is shown: none of the {len(both)} recorded questions is one.")
    shown = next((pair for pair in gained if fine(*pair)), gained[0])
    dataset = workshop.dataset(after.condition.dataset, after.condition.split)
    return Case(
        dataset.by_id[shown[0]["id"]],
        dataset,
        *shown,
        len(gained),
        sum(worse(*pair) for pair in both),
        len(both),
    )


def all_gold(line: Line) -> bool:
    return bool(line["gold"]) and all(rank is not None for *_, rank in line["gold"])


def only_useless_removed(line: Line) -> bool:
    """Whether something was judged and taken away, and none of it is gold."""
    gone, known = removed(line), gold_of_judged(line)
    return bool(gone) and not any(known.get(name, True) for name in gone)


def some_gold_removed(line: Line) -> bool:
    known = gold_of_judged(line)
    return any(known.get(name, False) for name in removed(line) or ())
