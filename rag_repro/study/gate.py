"""Whether a reader can read, and what else is trained does its work: else no verdict on answers.

A reader is tried on each data set, by a paper's own records: accuracy with the gold passages
minus accuracy without any, on the same questions. What else is trained, as a filter, is tried
on questions that nothing is tested on: one that takes all passages, or none, says nothing of a
claim about filters.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..evaluation import metrics, verdicts
from ..evaluation.verdicts import Verdict
from .exhibits import Cell, Exhibit
from .paper import Gate, Paper, Proof
from .scores import Results, Scores, paired


def of_answers(
    paper: Paper, names: Iterable[str], cell: Cell, results: Results, gated: bool = True
) -> Verdict | None:
    """What the paper's gate and proofs say, where one of these metrics tells of answers.

    gated: no, where what passages add is the claim's own matter: the reader must be able to
    answer something, and nothing more is asked.
    """
    if paper.gate is None or not any(metrics.get(name).of_answers for name in names):
        return None
    weak = tried(paper.gate, paper.exhibits[paper.gate.exhibit], cell, results, gated)
    if not gated:
        return weak
    unproven = (
        proven(proof, paper.exhibits[proof.exhibit], cell, results) for proof in paper.proofs
    )
    return weak or next((verdict for verdict in unproven if verdict is not None), None)


def proven(proof: Proof, exhibit: Exhibit, cell: Cell, results: Results) -> Verdict | None:
    """What keeps a cell from counting because of what it is answered with, or nothing.

    `not run` where that is not tried yet, `not judged` where it was and failed: more records would
    tell nothing. exhibit: the proof's. What that never tries, as a model that is only prompted,
    counts.
    """
    name = getattr(cell.condition.configured, proof.setting, None)
    cells = [
        c
        for c in exhibit.cells(cell.tier)
        if name is not None and getattr(c.condition.configured, proof.setting, None) == name
    ]
    held = [c for c in cells if results.lines(c) is not None]
    if cells and not held:
        return verdicts.not_run(
            f"whether {name} does its work is not tried: rag-repro run {exhibit.name}"
        )
    for one in held:
        sides = tuple(results.scores(one, metric) for metric in (proof.more, proof.less))
        gain = None if None in sides else paired([sides], proof.more)
        interval = gain and gain.interval()
        if interval is None or interval.estimate < proof.points or interval.lo <= 0:
            told = "no question tells" if interval is None else f"{interval.estimate:.1f} points"
            return verdicts.not_judged(
                f"{name} does not do its work: {exhibit.name}, {one.keys['dataset']}, "
                f"{proof.more} above {proof.less}: {told}, {proof.points:g} are needed"
            )
    return None


def tried(
    gate: Gate, exhibit: Exhibit, cell: Cell, results: Results, gated: bool = True
) -> Verdict | None:
    """What keeps the cell's answers from counting: `reader too weak`, `not run`, or nothing.

    exhibit: the gate's. A cell without a reader is not held back; one whose reader was
    trained over another and is not tried itself goes by that other. gated: as `of_answers`.
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
    if gated:
        weak = verdicts.reader_gate(gain.interval())
    else:
        weak = verdicts.reader_floor(float(sides[0].values.mean()))
    return weak and Verdict(weak.word, f"{reader}: {weak.reason}")


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
