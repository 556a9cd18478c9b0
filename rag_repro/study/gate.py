"""Whether a reader can read: no verdict on answers that passages do not help it to find.

Decided for each reader on each data set, by a paper's own records: accuracy with
the gold passages minus accuracy without any, on the same questions.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..evaluation import metrics, verdicts
from ..evaluation.verdicts import Verdict
from .exhibits import Cell, Exhibit
from .paper import Gate, Paper
from .scores import Results, Scores, paired


def of_answers(paper: Paper, names: Iterable[str], cell: Cell, results: Results) -> Verdict | None:
    """`tried` by the paper's gate, where one of these metrics says how good an answer is."""
    if paper.gate is None or not any(metrics.get(name).of_answers for name in names):
        return None
    return tried(paper.gate, paper.exhibits[paper.gate.exhibit], cell, results)


def tried(gate: Gate, exhibit: Exhibit, cell: Cell, results: Results) -> Verdict | None:
    """What keeps the cell's answers from counting: `reader too weak`, `not run`, or nothing.

    exhibit: the gate's. A cell without a reader is not held back; one whose reader was
    trained over another and is not tried itself goes by that other.
    """
    reader, dataset = cell.condition.reader, cell.keys["dataset"]
    if reader is None:
        return None
    if (sides := _sides(gate, exhibit, cell, reader, results)) is None:
        reader = cell.keys.get("reader", reader)
        sides = _sides(gate, exhibit, cell, reader, results)
    if sides is None:
        return verdicts.not_run(
            f"whether {reader} can read {dataset} is not tried: rag-repro run {exhibit.name}"
        )
    gain = paired([tuple(sides)], gate.metric)
    if gain is None:
        return verdicts.not_run(f"{exhibit.name}: {reader}, {dataset}: no question in common")
    weak = verdicts.reader_gate(gain.interval())
    return weak and Verdict(weak.word, f"{reader}: {weak.reason}", weak.interval, weak.delta)


def _sides(
    gate: Gate, exhibit: Exhibit, cell: Cell, reader: str, results: Results
) -> list[Scores] | None:
    """The reader's scores with the gold passages and with none; None where one is missing."""
    sides = []
    for wanted in (gate.given, gate.bare):
        keys = {**wanted, "dataset": cell.keys["dataset"], "reader": reader}
        found = next((c for c in exhibit.cells(cell.tier) if c.matches(keys)), None)
        sides.append(results.scores(found, gate.metric) if found else None)
    return None if None in sides else sides
