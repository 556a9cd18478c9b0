"""Recall against answers: cell by cell as the paper shows it, and question by question."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from statistics import mean

from ..data.titles import word
from ..study.papers import Paper
from . import arithmetic
from .exhibits import Row, whole
from .figures import MARKERS, WIDTH, legend, plots
from .picture import Note, Picture
from .table import Table
from .tables import data_of

CHANGES = {"higher": "more recall", "same": "as much", "lower": "less"}


def trade(paper: Paper, method: str, baseline: str, name: str = "") -> Table:
    """The paper's own cells: what a method does to recall, and to the mean of EM, F1 and Acc.

    Recall is of table 5, answers are of table 3, each reader apart.
    """
    recall = arithmetic.gains(paper, "table5", method, baseline, metric="recall")
    answers = arithmetic.gains(paper, "table3", method, baseline)
    readers = list(dict.fromkeys(e["reader"] for e in paper.printed("table3") if e["reader"]))
    body = []
    for place, change in sorted(recall.items(), key=lambda item: item[1]):
        at = dict(place)
        changed = [
            mean(
                gain
                for key, gain in answers.items()
                if {**at, "metric": dict(key)["metric"], "reader": reader} == dict(key)
            )
            for reader in readers
        ]
        body.append(
            [word(at["dataset"]), at["k"], f"{change:+.2f}", *(f"{c:+.2f}" for c in changed)]
        )
    head = ["data set", "k", "recall", *(f"answers, {reader}" for reader in readers)]
    caption = f"Printed: {method.upper()} minus {baseline.upper()}, least recall first"
    return Table(head, body, caption, name)


def scatter(
    paper: Paper, rows: Sequence[Row], reader: str, caption: str = "", name: str = ""
) -> Picture | Note:
    """Acc against recall, one panel a data set: the paper's cells hollow, ours filled.

    reader: whose printed values are shown. rows: of an exhibit with recall and acc.
    """
    theirs = _printed_points(paper, reader)
    ours = _points(rows)
    datasets = list(dict.fromkeys([*theirs, *ours]))
    plt, colours = plots()
    figure, axes = plt.subplots(
        1, len(datasets), figsize=(WIDTH, 3.2), sharey=True, squeeze=False, layout="constrained"
    )
    methods = list(dict.fromkeys(m for held in (theirs, ours) for d in held for m in held[d]))
    named = paper.exhibit("table3").methods
    words = {m: named[m].label if m in named else m.upper() for m in methods}
    looks = dict(zip(methods, cycle(zip(colours, MARKERS, strict=True)), strict=False))
    spoken = []
    for axis, dataset in zip(axes[0], datasets, strict=True):
        for held, face, whose in ((theirs, "none", "paper"), (ours, None, "ours")):
            for method, points in held.get(dataset, {}).items():
                colour, marker = looks[method]
                axis.plot(
                    *zip(*points, strict=True), ls="", marker=marker, color=colour,
                    mfc=face or colour,
                )  # fmt: skip
                said = ", ".join(f"{x:.0f} and {y:.0f}" for x, y in points)
                spoken.append(f"{word(dataset)}, {words[method]}, {whose}: {said}")
        axis.set_title(word(dataset))
        axis.set_xlabel("recall, %")
    axes[0][0].set_ylabel("Acc, %")
    legend(figure, looks.values(), words.values(), ls="")
    alt = "Accuracy against recall. " + "; ".join(spoken)
    return Picture(figure, alt, caption, name, data_of(rows))


def _printed_points(paper: Paper, reader: str) -> dict[str, dict[str, list[tuple[float, float]]]]:
    acc = arithmetic.pick(paper.printed("table3"), metric="acc", reader=reader)
    recall = {
        (e["dataset"], e["method"], e["k"]): float(e["value"])
        for e in arithmetic.pick(paper.printed("table5"), metric="recall")
    }
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for e in acc:
        of = points.setdefault(e["dataset"], {}).setdefault(e["method"], [])
        of.append((recall[e["dataset"], e["method"], e["k"]], float(e["value"])))
    return points


def _points(rows: Sequence[Row]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    held = whole(rows, ("recall", "acc"), lambda row: tuple(map(str, row.keys.items())))
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for found in held.values():
        at = found["recall"].keys
        of = points.setdefault(at["dataset"], {}).setdefault(at["method"], [])
        of.append((found["recall"].ours.estimate, found["acc"].ours.estimate))
    return points
