"""Whether a reader can read, and what else is trained does its work: else no verdict on answers.

A reader is tried on each data set, by a paper's own records: accuracy with the gold passages
minus accuracy without any, on the same questions. What else is trained, as a filter or a former,
is tried on questions that nothing is tested on: one that takes all passages, or none, says nothing
of a claim about filters. What nothing tries decides nothing either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rag_repro.evaluation import metrics, verdicts
from rag_repro.evaluation.resampling import combine
from rag_repro.evaluation.verdicts import Verdict
from rag_repro.study import names as known
from rag_repro.study import outcomes
from rag_repro.study.exhibits import Cell, Exhibit
from rag_repro.study.papers import Contrast, Paper, Proof
from rag_repro.study.scores import Only, Results, Scores, paired
from rag_repro.study.trainings import place

NO_KIND = "no question is of a kind that decides: each can be guessed, or is none of the paper's"
HELD_OUT = 100
"""Held-out examples, at least, that a proof of training is read off, by each of its metrics."""


def of_answers(
    paper: Paper, names: Iterable[str], cell: Cell, results: Results, gated: bool = True
) -> Verdict | None:
    """What the paper's gate says of a reader, where one of these metrics tells of answers.

    gated: no, where what passages add is the claim's own matter: the reader must be able to
    answer something, and nothing more is asked.
    """
    if paper.gate is None or not any(metrics.get(name).of_answers for name in names):
        return None
    reader = cell.condition.reader, cell.keys.get("reader")
    return results.once(
        lambda: tried(paper, cell, results, gated),
        paper,
        *(*reader, cell.keys["dataset"], cell.tier, gated),
    )


def of_training(paper: Paper, contrast: Contrast, cell: Cell, results: Results) -> Verdict | None:
    """What keeps a cell from counting because of what was trained, where one of the contrast's
    metrics tells how good answers, or passages, are.

    What a part says itself, as a classifier's AUC, needs no proof: it is one. What is only
    prompted, and no proof tries, counts.
    """
    if not asks(contrast):
        return None
    contrast = replace(contrast, kinds=())  # a part need not be proven of each kind by itself
    tried = [proof for proof in paper.proofs if tries(proof, paper.exhibits[proof.exhibit], cell)]
    told = (
        results.once(
            lambda proof=proof: proven(paper, proof, contrast, cell, results),
            proof,
            *(proof.part(cell), cell.keys["dataset"], cell.tier, outcomes.of_answers(contrast)),
        )
        for proof in tried
    )
    if (unproven := next((verdict for verdict in told if verdict is not None), None)) is not None:
        return unproven
    for part in parts(cell):
        if part not in {proof.part(cell) for proof in tried}:
            return verdicts.not_judged(
                f"{part} is tried on no held-out questions: whether it does its work is not known"
            )
    return None


def asks(contrast: Contrast) -> bool:
    """Whether a contrast's verdict asks what a reader can, or what is trained."""
    of_passages = ("hits", "texts")
    return any(
        metric.of_answers or (metric.needs in of_passages and bool(metric.higher_is_better))
        for metric in map(metrics.get, outcomes.read(contrast))
    )


def is_tried(paper: Paper, cell: Cell) -> bool:
    """Whether a proof has a row with what the cell is answered with."""
    return any(tries(proof, paper.exhibits[proof.exhibit], cell) for proof in paper.proofs)


def tries(proof: Proof, exhibit: Exhibit, cell: Cell) -> bool:
    """Whether a proof has a row with what a cell is answered with, or that hangs on it."""
    part = proof.part(cell)
    if part is None or proof.parts:
        return part in proof.parts
    return any(c.matches(proof.more) and proof.part(c) == part for c in exhibit.cells())


def parts(cell: Cell) -> list[str]:
    """What of a cell was trained, but for the readers that the gate tries."""
    condition = cell.condition
    over = cell.keys.get("reader", condition.reader)
    named = [condition.reader] if over != condition.reader else []
    named += [known.scorer_name(name)[0] for name in condition.configured.needs]
    return [name for name in named if name not in (None, over) and known.trained_for(name)]


def proven(
    paper: Paper, proof: Proof, contrast: Contrast, cell: Cell, results: Results
) -> Verdict | None:
    """What keeps a cell from counting because of what it is answered with, or nothing.

    On `HELD_OUT` examples like the cell's own, of kinds that decide the contrast, the part must
    gain something over its untrained self for certain, by each metric that any of them has.
    `not run` where that is not tried yet, `not judged` where it was and failed: more records would
    tell nothing.
    """
    name, dataset = proof.part(cell), cell.keys["dataset"]
    tried = trials(paper, proof, cell)
    if not tried:
        return verdicts.not_judged(f"{name} is tried on no held-out questions like {dataset}'s")
    alike: dict[tuple, list[tuple[Cell, Cell]]] = {}
    for row, less in tried:
        key = tuple((k, v) for k, v in row.keys.items() if k != "dataset")
        alike.setdefault((key, less.keys.get("seed")), []).append((row, less))
    told = (_gained(paper, proof, contrast, name, pairs, results) for pairs in alike.values())
    return next((verdict for verdict in told if verdict is not None), None)


def trials(paper: Paper, proof: Proof, cell: Cell) -> list[tuple[Cell, Cell]]:
    """A proof's pairs of cells, with a cell's part and without, on questions like its own."""
    exhibit, part, dataset = paper.exhibits[proof.exhibit], proof.part(cell), cell.keys["dataset"]
    rows = [c for c in exhibit.cells(cell.tier) if c.matches(proof.more)]
    rows = rows if proof.parts else [c for c in rows if proof.part(c) == part]
    if proof.serves:
        rows = [c for c in rows if dataset in proof.serves.get(c.keys["dataset"], ())]
    return [(row, less) for row in rows for less in _untrained(proof, exhibit, row)]


def _untrained(proof: Proof, exhibit: Exhibit, row: Cell) -> list[Cell]:
    """The cells that a proof's row must beat: of what was trained several times each."""
    if not proof.less:
        return [row]
    wanted = {"dataset": row.keys["dataset"], **proof.less}
    first, *more = (c for c in exhibit.cells(row.tier) if c.matches(wanted))
    alike = place(first.tier, first.keys)
    return [first, *(c for c in more if place(c.tier, c.keys) == alike)]


def _gained(
    paper: Paper,
    proof: Proof,
    contrast: Contrast,
    name: str,
    pairs: Sequence[tuple[Cell, Cell]],
    results: Results,
) -> Verdict | None:
    """What one row's gain says, over data sets of like questions, all of one weight."""
    exhibit = paper.exhibits[proof.exhibit].name
    where = f"{exhibit}, {' and '.join(more.keys['dataset'] for more, _ in pairs)}"
    kinds = [Only(outcomes.deciding(paper, more.keys["dataset"], contrast)) for more, _ in pairs]
    held_out = sum(min(len(results.lines(side) or ()) for side in pair) for pair in pairs)
    if held_out < HELD_OUT:
        return verdicts.not_run(
            f"whether {name} does its work is tried on {held_out} of {HELD_OUT} held-out "
            f"questions: rag-repro run {exhibit}"
        )
    for metric in proof.metrics:
        read = (metric,) if proof.level is not None else (metric, proof.against or metric)
        each = [
            [results.scores(c, n, keep) for c, n in zip(pair, read, strict=False)]
            for pair, keep in zip(pairs, kinds, strict=True)
        ]
        drawn = [paired([tuple(s)], metric) for s in each if None not in s]
        if not (drawn := [one for one in drawn if one is not None]):
            if metric == proof.metrics[0]:
                return verdicts.not_judged(
                    f"{where}: no question of a kind that decides tells {metric} of {name}"
                )
            continue
        interval = combine(drawn).interval().shifted(-(proof.level or 0))
        of = proof.examples or "questions"
        if (n := _examples(proof, pairs, each, results) or interval.n) < HELD_OUT:
            return verdicts.not_judged(
                f"whether {name} does its work is not known: {where}, {metric} is told by {n} "
                f"held-out {of} of kinds that decide, fewer than {HELD_OUT}"
            )
        if interval.lo <= 0:
            above = proof.against or (proof.level and f"{proof.level:g}") or "that without it"
            if proof.parts:  # cells of others show it
                more, less = (
                    paper.exhibits[proof.exhibit].methods[c.keys["method"]] for c in pairs[0]
                )
                metric, above = f"{metric} of {more.label}", less.label
            return verdicts.not_judged(
                f"{name} is not seen to do its work: {where}, {metric} above "
                f"{above}: {interval.estimate:.1f} "
                f"[{interval.lo:.1f}, {interval.hi:.1f}] on {interval.n} held-out questions"
            )
    return None


def _examples(
    proof: Proof,
    pairs: Sequence[tuple[Cell, Cell]],
    each: Sequence[Sequence[Scores | None]],
    results: Results,
) -> int:
    """How many things the part judged in the questions that have the metric; 0: questions count."""
    asked = ((more, set(s[0].ids)) for (more, _), s in zip(pairs, each, strict=True) if s[0])
    return sum(
        len(line.get(proof.examples, ()))
        for more, ids in asked
        for line in results.lines(more)
        if line["id"] in ids
    )


def tried(paper: Paper, cell: Cell, results: Results, gated: bool = True) -> Verdict | None:
    """What keeps the cell's answers from counting: `reader too weak`, `not run`, or nothing.

    By questions of the kinds that decide (`outcomes.deciding`). A cell without a reader is not held
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
    paper: Paper,
    cell: Cell,
    results: Results,
    metric: str | None = None,
    contrast: Contrast | None = None,
) -> tuple[str, Scores | None, Scores | None] | None:
    """The reader that is tried, its scores with the gold passages and with none, of the kinds that
    decide; None where neither the cell's own nor the one it was trained over has records.

    metric: the gate's by default. contrast: of the kinds that decide it, and not the gate. None in
    place of scores where no question is of such a kind.
    """
    gate, exhibit = paper.gate, paper.exhibits[paper.gate.exhibit]
    of_kind = outcomes.deciding(paper, cell.keys["dataset"], contrast)
    for reader in dict.fromkeys([cell.condition.reader, cell.keys.get("reader")]):
        both: list[Scores | None] = []
        for wanted in (gate.given, gate.bare):
            keys = {**wanted, "dataset": cell.keys["dataset"], "reader": reader}
            found = next((c for c in exhibit.cells(cell.tier) if c.matches(keys)), None)
            if found is None or results.lines(found) is None:
                break
            scores = results.scores(found, metric or gate.metric, Only(of_kind))
            both.append(scores and scores.at(scores.ids[: gate.n]))
        else:
            return reader, both[0], both[1]
    return None


def room(
    paper: Paper, contrast: Contrast, cell: Cell, scored: Sequence[Scores], results: Results
) -> tuple[float, float] | None:
    """What could be reached and what the baseline has, in percent: with the gold passages by the
    gate's records of the kinds that decide here, or everything, and the side below; None where no
    gate is possible.
    """
    bare = float(scored[1].values.mean())
    if not outcomes.of_answers(contrast):
        return 100.0, bare
    found = sides(paper, cell, results, contrast.metric, contrast) if paper.gate else None
    if found is None or None in found:
        return None
    return float(found[1].values.mean()), bare
