"""Whether a reader can read, and what else is trained does its work: else no verdict on answers.

A reader is tried on each data set, by a paper's own records: accuracy with the gold passages
minus accuracy without any, on the same questions. What else is trained, as a filter, is tried
on questions that nothing is tested on: one that takes all passages, or none, says nothing of a
claim about filters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..evaluation import metrics, verdicts
from ..evaluation.verdicts import Verdict
from . import among
from .exhibits import Cell, Exhibit
from .paper import Contrast, Paper, Proof
from .scores import Results, Scores, paired

NO_KIND = "no question is of a kind that decides: each can be guessed, or is none of the paper's"


def of_answers(
    paper: Paper, names: Iterable[str], cell: Cell, results: Results, gated: bool = True
) -> Verdict | None:
    """What the paper's gate and proofs say, where one of these metrics tells of answers.

    gated: no, where what passages add is the claim's own matter: the reader must be able to
    answer something, and nothing more is asked.
    """
    if paper.gate is None or not any(metrics.get(name).of_answers for name in names):
        return None
    weak = tried(paper, cell, results, gated)
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


def tried(paper: Paper, cell: Cell, results: Results, gated: bool = True) -> Verdict | None:
    """What keeps the cell's answers from counting: `reader too weak`, `not run`, or nothing.

    By questions of the kinds that decide (`among.deciding`). A cell without a reader is not held
    back; one whose reader was trained over another and is not tried itself goes by that other.
    gated: as `of_answers`.
    """
    gate, exhibit = paper.gate, paper.exhibits[paper.gate.exhibit]
    reader, dataset = cell.condition.reader, cell.keys["dataset"]
    if reader is None or dataset in gate.without:
        return None
    if (found := sides(paper, cell, results)) is None:
        reader = cell.keys.get("reader", reader)
        return verdicts.not_run(
            f"whether {reader} can read {dataset} is not tried: rag-repro run {exhibit.name}"
        )
    reader, *both = found
    if None in both:
        return verdicts.not_judged(NO_KIND)
    gain = paired([tuple(both)], gate.metric)
    if gain is None:
        return verdicts.not_run(f"{exhibit.name}: {reader}, {dataset}: no question in common")
    if gated:
        weak = verdicts.reader_gate(gain.interval())
    else:
        weak = verdicts.reader_floor(float(both[0].values.mean()))
    return weak and Verdict(weak.word, f"{reader}: {weak.reason}")


def sides(
    paper: Paper, cell: Cell, results: Results, metric: str | None = None
) -> tuple[str, Scores | None, Scores | None] | None:
    """The reader that is tried, its scores with the gold passages and with none, of the kinds that
    decide; None where neither the cell's own nor the one it was trained over has records.

    metric: the gate's by default. None in place of scores where no question is of such a kind.
    """
    gate, exhibit = paper.gate, paper.exhibits[paper.gate.exhibit]
    of_kind = among.deciding(paper, cell.keys["dataset"])
    for reader in dict.fromkeys([cell.condition.reader, cell.keys.get("reader")]):
        both: list[Scores | None] = []
        for wanted in (gate.given, gate.bare):
            keys = {**wanted, "dataset": cell.keys["dataset"], "reader": reader}
            found = next((c for c in exhibit.cells(cell.tier) if c.matches(keys)), None)
            if found is None or results.lines(found) is None:
                break
            scores = results.scores(found, metric or gate.metric, lambda x: of_kind(x.get("kind")))
            both.append(scores and scores.at(scores.ids[: gate.n]))
        else:
            return reader, both[0], both[1]
    return None


def room(
    paper: Paper, contrast: Contrast, cell: Cell, scored: Sequence[Scores], results: Results
) -> tuple[float, float] | None:
    """What could be reached and what the baseline has, in percent: with the gold passages and with
    none by the gate's records, or everything and the side below; None where no gate is possible.
    """
    if not among.of_answers(contrast):
        return 100.0, float(scored[1].values.mean())
    found = sides(paper, cell, results, contrast.metric) if paper.gate else None
    if found is None or None in found:
        return None
    gold, bare = (float(scores.values.mean()) for scores in found[1:])
    return gold, bare
