"""What a pair classifier's selection did, out of records: pairs asked, passages taken away.

A line's `judged` holds [d, e, probability, how many of the two are gold] of each
pair in the order asked (`study.runner.line_of`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from ..data.dataset import Dataset
from ..data.titles import word
from ..evaluation.line_metrics import gold_of_judged, removed
from ..study.papers import Cell, Paper
from ..study.scores import Results
from . import missing
from .picture import Note
from .table import Table
from .values import number, points

Line = Mapping[str, Any]


# ------------------------------------------------------------- pairs and thresholds


@dataclass(frozen=True)
class Fed:
    """Passages that CIS and CFS hand on at one threshold, mean over the data sets.

    by: of either selection. off: how far they lie from the printed means, summed. questions: of
    each, over all data sets.
    """

    threshold: float
    by: Mapping[str, float]
    off: float
    questions: int


def fed(cells: Sequence[Cell], results: Results, printed: Mapping[str, float]) -> list[Fed]:
    """At each threshold that all data sets have records of, in order.

    printed: the mean number of each selection that is to be met.
    """
    held: dict[float, dict[str, list[Cell]]] = {}
    for cell in cells:
        by = held.setdefault(cell.condition.configured.threshold, {})
        by.setdefault(cell.keys["method"], []).append(cell)
    made = []
    for threshold, by in sorted(held.items()):
        scores = {m: [results.scores(c, "passages") for c in by.get(m, ())] for m in printed}
        if not all(of and None not in of for of in scores.values()):
            continue
        means = {m: mean(float(one.values.mean()) for one in of) for m, of in scores.items()}
        off = sum(abs(means[m] - printed[m]) for m in printed)
        made.append(Fed(threshold, means, off, sum(map(len, next(iter(scores.values()))))))
    return made


def tune_sweep(paper: Paper, tier: str) -> list[Cell]:
    """The cells in which both selections ran over questions to tune on, at each threshold."""
    wanted = {"method": ["cis", "cfs"], "split": "tune"}
    return [c for c in paper.exhibit("threshold").cells(tier) if c.matches(wanted)]


def printed_fed(paper: Paper, k: int = 4) -> dict[str, float]:
    """Table 5's number of passages that CIS and CFS hand on at k, mean over its data sets."""
    rows = [r for r in paper.printed("table5") if r["metric"] == "passages" and r["k"] == str(k)]
    return {
        method: mean(float(r["value"]) for r in rows if r["method"] == method)
        for method in ("cis", "cfs")
    }


def fed_table(
    paper: Paper, cells: Mapping[str, Sequence[Cell]], results: Results, name: str = ""
) -> Table | Note:
    """One line a tier and threshold, and which comes nearest to the paper's table 5."""
    printed, body = printed_fed(paper), []
    for tier, of_tier in cells.items():
        tried = fed(of_tier, results, printed)
        nearest = min(tried, key=lambda f: f.off, default=None)
        for one in tried:
            told = [number(one.by[m]) for m in printed]
            mark = "nearest" if one is nearest else ""
            told += [number(one.off), one.questions, mark]
            body.append([tier, f"{one.threshold:.2f}", *told])
    caption = "Passages handed on at k = 4 of questions to tune on, by threshold"
    if not body:
        return missing.note([c for of_tier in cells.values() for c in of_tier], results, caption)
    told = {m: f"{m.upper()} (printed: {number(value)})" for m, value in printed.items()}
    head = ["tier", "threshold", *told.values(), "apart", "questions", "choice"]
    return Table(head, body, caption, name)


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


def threshold_table(
    cells: Sequence[Cell], results: Results, chosen_on: str, name: str = ""
) -> Table:
    """The threshold that the pairs of each cell would choose, and of a tier's together."""
    body, pooled = [], defaultdict(list)
    for cell in cells:
        lines, start = results.lines(cell), [word(str(cell.keys["dataset"])), cell.keys["k"]]
        if chosen := _chosen(lines or ()):
            body.append([*start, *chosen])
            pooled[cell.tier, cell.keys["k"]].append(lines)
        else:
            why = missing.of_cells([cell]) if lines is None else "no pair judged"
            body.append([*start, why, *[""] * 6])
    for (tier, k), held in pooled.items():
        if len(held) > 1:
            together = _chosen([line for lines in held for line in lines])
            body.append([f"{tier}, these together", k, *together])
    head = ["data set", "k", "pairs", "both gold, %", "best for F1", "its F1, %"]
    head += ["F1 at 0.5, %", "best for accuracy", "accuracy, %"]
    return Table(head, body, f"Thresholds chosen on {chosen_on}", name)


def _chosen(lines: Sequence[Line]) -> list[Any]:
    """A row's numbers, from all pairs of these answers; [] where none was judged."""
    if (by_f1 := best(lines)) is None:
        return []
    plain, by_right = at_threshold(lines, 0.5), best(lines, "right")
    return [
        by_f1.pairs,
        points(by_f1.gold),
        f"{by_f1.threshold:.2f}",
        points(by_f1.f1),
        points(plain.f1),
        f"{by_right.threshold:.2f}",
        f"{points(by_right.right)} (at 0.5: {points(plain.right)})",
    ]


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


# ------------------------------------------------------- what is true of a line


def all_gold(line: Line) -> bool:
    return bool(line["gold"]) and all(rank is not None for *_, rank in line["gold"])


def only_useless_removed(line: Line) -> bool:
    """Whether something was judged and taken away, and none of it is gold."""
    gone, known = removed(line), gold_of_judged(line)
    return bool(gone) and not any(known.get(name, True) for name in gone)


def some_gold_removed(line: Line) -> bool:
    known = gold_of_judged(line)
    return any(known.get(name, False) for name in removed(line) or ())
