"""Whether a reader can read: no verdict on answers that passages do not help it to find.

Decided for each reader on each data set, by a paper's own records: accuracy with
the gold passages minus accuracy without any, on the same questions.
"""

from __future__ import annotations

from ..evaluation import verdicts
from ..evaluation.verdicts import Verdict
from .exhibits import Cell, Exhibit
from .paper import Gate
from .scores import Results, paired


def tried(gate: Gate, exhibit: Exhibit, cell: Cell, results: Results) -> Verdict | None:
    """What keeps the cell's answers from counting: `reader too weak`, `not run`, or nothing.

    exhibit: the gate's. A cell without a reader is not held back.
    """
    reader, dataset = cell.condition.reader, cell.keys["dataset"]
    if reader is None:
        return None
    sides = []
    for wanted in (gate.given, gate.bare):
        keys = {**wanted, "dataset": dataset, "reader": reader}
        found = next((c for c in exhibit.cells(cell.tier) if c.matches(keys)), None)
        scores = results.scores(found, gate.metric) if found else None
        if scores is None:
            return verdicts.not_run(
                f"whether {reader} can read {dataset} is not tried: rag-repro run {exhibit.name}"
            )
        sides.append(scores)
    gain = paired([tuple(sides)], gate.metric)
    if gain is None:
        return verdicts.not_run(f"{exhibit.name}: {reader}, {dataset}: no question in common")
    weak = verdicts.reader_gate(gain.interval())
    return weak and Verdict(weak.word, f"{reader}: {weak.reason}", weak.interval, weak.delta)
