"""From records to verdicts: each claim's contrasts, computed and judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_repro.data.splits import CHOSEN_ON
from rag_repro.data.titles import word
from rag_repro.evaluation import verdicts
from rag_repro.evaluation.intervals import Interval, Resampled
from rag_repro.evaluation.resampling import combine
from rag_repro.evaluation.verdicts import Verdict
from rag_repro.study import exhibits, gate, outcomes, trainings
from rag_repro.study.conditions import TIERS
from rag_repro.study.outcomes import MEAN, Drawn
from rag_repro.study.papers import Cell, Claim, Contrast, Exhibit, Paper
from rag_repro.study.scores import (
    Only,
    Results,
    Scores,
    hangs_on_one,
    on_one,
    paired,
    ratio,
    shared_seeds,
)

OF = {"all": verdicts.of_parts, "most": verdicts.of_most, "some": verdicts.of_some}
ONE_TRAINING = (
    "one training, and of this metric no row of several tells how far another would lie from it"
)
EXPLORATORY = "exploratory"
FEWEST = 10  # questions of a data set that has a say, where it is only some that are asked for


@dataclass(frozen=True)
class Part:
    """One contrast's outcome at one tier."""

    contrast: Contrast
    verdict: Verdict

    @property
    def interval(self) -> Interval | None:
        return self.verdict.interval


@dataclass(frozen=True)
class Judged:
    """A claim's verdict at one tier, with what led to it.

    state, history: what `standing.judged` says of its test.
    """

    claim: Claim
    tier: str
    verdict: Verdict
    parts: tuple[Part, ...]
    state: str = EXPLORATORY
    history: tuple[str, ...] = ()

    @property
    def headline(self) -> Part | None:
        """The part whose numbers, pooled over its cells, stand for the claim: the first primary
        contrast with the claim's verdict, which of several is one that made it; else the first."""
        primary = [p for p in self.parts if p.contrast.role == "primary"]
        same = [p for p in primary if p.verdict.word == self.verdict.word]
        return next(iter(same or primary), None)


def judge(
    paper: Paper, tier: str, results: Results, registered: Collection[str] = (), cut: bool = False
) -> list[Judged]:
    """Every claim of the paper at one tier, in the order of its file.

    Primary contrasts and controls keep their 95 % intervals; the other secondary ones of each
    exhibit are corrected together (Holm). registered: ids of the claims whose tests were fixed
    before their records: these use exactly the first n questions that each grid names, and are not
    run until all are there. All others are exploratory and use every recorded question that both
    sides have; cut: no more than the grids name there either.
    """
    every = results if cut else results.uncut
    drawn = {
        (claim.id, i): _draw(paper, contrast, claim, tier, results, True)
        if claim.id in registered
        else _draw(paper, contrast, claim, tier, every)
        for claim in paper.claims
        for i, contrast in enumerate(claim.contrasts)
    }
    widened = outcomes.widened(paper, drawn)
    for claim in paper.claims:
        drawn |= outcomes.corrected(claim, drawn, tier)
    return [_judge_claim(claim, tier, drawn, widened) for claim in paper.claims]


def _draw(
    paper: Paper, contrast: Contrast, claim: Claim, tier: str, results: Results, whole: bool = False
) -> Drawn | Verdict | str:
    """The contrast's draws, or why there are none. whole: each side has all of its n questions."""
    exhibit = paper.exhibits[claim.exhibit_of(contrast).split(".", 1)[1]]
    _, means = trainings.merged(exhibit, results, paper.exhibits.values())
    pairs = list(pair_cells(exhibit, contrast, tier))
    if not pairs:
        where = [t for t in TIERS if any(True for _ in pair_cells(exhibit, contrast, t))]
        only = f", only at {' and '.join(where)}" if where else ""
        return _waits(exhibit, contrast) or verdicts.not_judged(
            f"no condition for it at tier {tier}{only}"
        )
    by_dataset: dict[str, list[tuple[Scores, ...]]] = defaultdict(list)
    each: dict[str, Resampled] = {}
    weak: dict[str, Verdict] = {}
    aside: list[str] = []
    rooms: dict[str, tuple[float, float] | None] = {}
    keys: dict[str, Mapping[str, Any]] = {}
    chosen = False  # of several devices one
    names = exhibits.short_names(exhibit, [more for more, _ in pairs])
    for name, (more, less) in zip(names, pairs, strict=True):
        compared = [(more, contrast.more)] + ([(less, contrast.less)] if less else [])
        compared += _subtracted(exhibit, contrast, more)
        if any(cell is None for cell, _ in compared):
            return f"no condition beside {exhibits.full_name(exhibit, more)} for what is subtracted"
        of_kind = outcomes.deciding(paper, more.keys["dataset"], contrast)
        if (lines := means.lines(more)) and not Only(of_kind).mask(lines).any():
            aside.append(name)
            continue
        held_back = _held_back(paper, exhibit, contrast, more, less, results)
        weak_here = held_back is not None and held_back.word != verdicts.NOT_RUN
        if lacking := next((cell for cell, _ in compared if means.lines(cell) is None), None):
            if weak_here:  # what would not count need not be run
                weak[name] = held_back
                continue
            how = f": rag-repro time {exhibit.name}" if lacking.timed else ""
            missing = f"no records of {exhibits.full_name(exhibit, lacking)}{how}"
            if contrast.rule == "mean":
                return missing
            weak[name] = verdicts.not_run(missing)  # another part may fail
            continue
        held = [(len(means.lines(cell)), cell) for cell, _ in compared]
        if whole and (short := next(((n, c) for n, c in held if n != c.asked), None)):
            n, cell = short
            wanted = cell.asked or "no fixed number of"
            return f"{n} of {wanted} questions of {exhibits.full_name(exhibit, cell)}"
        if (at := on_one([cell for cell, _ in compared], means)) is None:
            sources = sorted({one for c, _ in compared for of in means.platforms(c) for one in of})
            told = (
                f"{exhibits.full_name(exhibit, more)}: its sides are from {' and '.join(sources)}"
            )
            if contrast.rule == "mean":
                return verdicts.mixed(told)
            weak[name] = verdicts.mixed(told)
            continue
        chosen = chosen or at is not means
        keep = outcomes.keep(contrast, more, less, at, of_kind)
        sides = tuple(
            at.scores(cell, wanted.get("metric", contrast.metric), keep)
            for cell, wanted in compared
        )
        if None in sides:
            if outcomes.describe_questions(contrast):
                continue  # a data set without such questions has no say
            without = exhibits.full_name(exhibit, compared[sides.index(None)][0])
            return f"{without}: no question has the metric"
        if weak_here:
            weak[name] = held_back
            continue
        if held_back is not None:
            return held_back.reason
        if hangs_on_one(sides) and not more.timed:  # weights are as fast, whatever they hold
            return verdicts.not_judged(ONE_TRAINING)
        drawn = _drawn_of([sides], contrast)
        if drawn is None:
            zero = ", or the one below is zero" if contrast.ratio else ""
            nothing = f"the two sides share no question or training{zero}"
            told = f"{exhibits.full_name(exhibit, more)}: {nothing}"
            return verdicts.mixed(f"{told} from one device") if at is not means else told
        each[name] = drawn
        if contrast.printed:
            rooms[name] = gate.room(paper, contrast, more, sides, results)
            keys[name] = more.keys
        by_dataset[more.keys["dataset"]].append(sides)
    if weak and not by_dataset:
        if unrun := _unrun(weak):
            return unrun.reason
        return verdicts.of_parts(weak) if len(weak) > 1 else next(iter(weak.values()))
    if not by_dataset:
        asked = outcomes.describe_questions(contrast)
        return verdicts.not_judged(f"no question is {asked}" if asked else gate.NO_KIND)
    if contrast.among:
        by_dataset = _large(by_dataset)
    # The mean is one recipe's: of the trainings that all data sets have.
    seeds = shared_seeds(side for held in by_dataset.values() for sides in held for side in sides)
    drawn = [seeds is not None and _drawn_of(s, contrast, seeds) for s in by_dataset.values()]
    if not all(drawn):
        told = f"its cells share no {'training' if seeds is None else 'question'}"
        return verdicts.mixed(f"{told} from one device each") if chosen else told
    families = _families([held[0][0].ids for held in by_dataset.values()])
    ungated = paper.gate.without if paper.gate and outcomes.of_answers(contrast) else ()
    ungated = tuple(word(name) for name in by_dataset if name in ungated)
    deltas = {}
    if contrast.printed:
        deltas = {
            name: outcomes.delta(paper, contrast, [room], keys[name])
            for name, room in rooms.items()
        }
        deltas[MEAN] = outcomes.delta(paper, contrast, [*rooms.values()])
    mean = combine(drawn, families=families)
    return Drawn(mean, each, weak, ungated, tuple(aside), deltas=deltas)


def _families(ids: Sequence[Sequence[str]]) -> list[int]:
    """A number for each data set, the same for those that share a question."""
    labels = list(range(len(ids)))
    for i, of in enumerate(map(set, ids)):
        for j in range(i):
            if of.intersection(ids[j]):
                labels = [labels[j] if label == labels[i] else label for label in labels]
    return labels


def _large(held: Mapping[str, list[tuple[Scores, ...]]]) -> Mapping[str, list[tuple[Scores, ...]]]:
    """The data sets with `FEWEST` questions or more of those that are asked for; if none, all.

    All data sets have one weight, and of a handful of questions no mean is known.
    """
    large = {name: sides for name, sides in held.items() if min(map(len, sides[0])) >= FEWEST}
    return large or held


def _subtracted(
    exhibit: Exhibit, contrast: Contrast, cell: Cell
) -> list[tuple[Cell | None, Mapping[str, Any]]]:
    """The two sides of `minus` beside this cell, [] without; None for one that is not there."""
    sides = [contrast.minus["more"], contrast.minus["less"]] if contrast.minus else []
    cells = exhibit.whole.cells(cell.tier)
    wanted = [{**cell.keys, **side} for side in sides]
    for keys in wanted:
        keys.pop("metric", None)  # what is read of the cell, and none of its keys
    found = (next((c for c in cells if c.matches(keys)), None) for keys in wanted)
    return list(zip(found, sides, strict=True))


def _held_back(
    paper: Paper,
    exhibit: Exhibit,
    contrast: Contrast,
    more: Cell,
    less: Cell | None,
    results: Results,
) -> Verdict | None:
    """What the gate says of the reader, and proofs of what else is trained.

    Where readers are compared it is the first side's, with `both_read` either's. Of the other side
    also what another method was trained, since a baseline that does not do its work is beaten by
    anything; and of either each training that a proof tries, for controls have to learn as well.
    What failed comes before what nobody tried yet.
    """
    cells = [more, less] if contrast.both_read else [more]
    names = outcomes.read(contrast)
    told = [gate.of_answers(paper, names, cell, results, contrast.gated) for cell in cells]
    if less is not None and less.condition.method != more.condition.method:
        cells = [more, less]
    places = [trainings.place(side.tier, side.keys) for side in (more, less) if side is not None]
    cells += [
        cell
        for cell in exhibit.cells(more.tier)
        if trainings.place(cell.tier, cell.keys) in places and gate.is_tried(paper, cell)
    ]
    told += [gate.of_training(paper, contrast, cell, results) for cell in cells]
    held = [verdict for verdict in told if verdict is not None]
    return min(held, key=lambda verdict: verdict.word == verdicts.NOT_RUN, default=None)


def _drawn_of(
    sides: Sequence[tuple[Scores, ...]], contrast: Contrast, seeds: Sequence[int] | None = None
) -> Resampled | None:
    return (ratio if contrast.ratio else paired)(sides, contrast.metric, seeds)


def pair_cells(
    exhibit: Exhibit, contrast: Contrast, tier: str
) -> Iterable[tuple[Cell, Cell | None]]:
    """The cells that a contrast compares: alike in every key that it does not name.

    (cell, None) where the contrast is about a level. A claim is about what a recipe makes: all
    trainings of a row are one cell.
    """
    more_keys, less_keys = (
        {k: v for k, v in (side or {}).items() if k != "metric"}
        for side in (contrast.more, contrast.less)
    )
    free = {*more_keys, *less_keys}

    def rest(cell: Cell) -> tuple:
        return tuple(sorted((k, v) for k, v in cell.keys.items() if k not in free))

    cells = [c for c in exhibit.whole.cells(tier) if c.matches(contrast.where)]
    if "split" not in {*contrast.where, *free}:  # what is chosen by is reported where it is named
        cells = [c for c in cells if c.condition.split not in CHOSEN_ON] or cells
    if contrast.less is None:
        yield from ((c, None) for c in cells if c.matches(more_keys))
        return
    less = {rest(c): c for c in cells if c.matches(less_keys)}
    for cell in cells:
        if cell.matches(more_keys) and rest(cell) in less:
            yield cell, less[rest(cell)]


def _waits(exhibit: Exhibit, contrast: Contrast) -> str | None:
    for side in (contrast.more, contrast.less or {}, *(contrast.minus or {}).values()):
        row = exhibit.methods.get(side.get("method", ""))
        if row is not None and row.waits:
            return row.waits
    return None


def _judge_claim(claim: Claim, tier: str, drawn, widened) -> Judged:
    parts = tuple(
        Part(contrast, _judge_contrast(contrast, tier, drawn[claim.id, i], widened, (claim.id, i)))
        for i, contrast in enumerate(claim.contrasts)
    )
    deciding = [p for p in parts if p.contrast.role == "primary"] or list(parts)
    unmet = next((p for p in deciding if p.contrast.premise and p.verdict.fails), None)
    if not deciding:
        waiting = "no contrast is defined yet: its chapter is not written"
        verdict = verdicts.not_judged(claim.no_contrast or waiting)
    elif unmet:
        verdict = verdicts.not_judged(
            f"its test presumes what is not so here: {unmet.contrast.label}"
        )
    elif len(deciding) == 1:
        verdict = deciding[0].verdict
    else:
        if claim.holds != "all":  # what they presume is none of them
            deciding = [p for p in deciding if not p.contrast.premise]
        labels = {p.contrast.label or f"part {i}": p for i, p in enumerate(deciding, start=1)}
        verdict = OF[claim.holds]({name: p.verdict for name, p in labels.items()})
    return Judged(claim, tier, _controlled(verdict, parts), parts)


def _controlled(verdict: Verdict, parts: Iterable[Part]) -> Verdict:
    """The verdict; `inconclusive` where it holds and a control does not, which would explain it.

    One that no record could decide at this tier is named and keeps nothing back.
    """
    lacking = [p for p in parts if p.contrast.control and not p.verdict.holds]
    if not (verdict.holds and lacking):
        return verdict
    lost = [p for p in lacking if p.verdict.word != verdicts.NOT_JUDGED]
    named = "; ".join(f"{p.contrast.label} ({p.verdict.word})" for p in lost or lacking)
    told = "but not its controls" if lost else "without a control that can be tried here"
    word = verdicts.INCONCLUSIVE if lost else verdict.word
    return replace(verdict, word=word, reason=f"{verdict.reason}, {told}: {named}")


def _judge_contrast(
    contrast: Contrast, tier: str, outcome: Drawn | Verdict | str, widened: Mapping, key: tuple
) -> Verdict:
    if isinstance(outcome, str):
        return verdicts.not_run(outcome)
    if isinstance(outcome, Verdict):
        return outcome
    verdict = _by_rule(contrast, tier, outcome, widened, key)
    if outcome.aside and not contrast.kinds:
        left = f"no question that decides: {', '.join(outcome.aside)}"
        verdict = replace(verdict, reason=f"{verdict.reason}; {left}")
    if not outcome.ungated:
        return verdict
    told = f"{verdict.reason}; {verdicts.NO_GATE}: {', '.join(outcome.ungated)} (no gold passages)"
    return replace(verdict, reason=told)


def _by_rule(
    contrast: Contrast, tier: str, outcome: Drawn, widened: Mapping, key: tuple
) -> Verdict:
    level = widened[key].level  # of a secondary contrast Holm's, as the mean's
    mean = _stern(outcome.sized(contrast, MEAN), widened[key], outcome.corrected.get(MEAN), tier)
    parts = {
        name: _stern(
            outcome.sized(contrast, name), drawn.interval(level), outcome.corrected.get(name), tier
        )
        for name, drawn in outcome.each.items()
    }
    mean = replace(mean, working=outcome.deltas.get(MEAN, (0, ""))[1])
    if len(parts) > 1:
        mean = replace(mean, clear=(sum(part.holds for part in parts.values()), len(parts)))
    if contrast.rule != "mean":
        of_rule = verdicts.of_some if contrast.rule == "some" else verdicts.of_parts
        whole = of_rule({**parts, **outcome.weak})
        if contrast.rule == "each" and not whole.fails and (unrun := _unrun(outcome.weak)):
            return unrun
        told = {"word": whole.word, "reason": whole.reason, "small": whole.small}
        return replace(mean, **told, parts=whole.parts, makers=whole.makers)
    if outcome.weak:
        return replace(mean, reason=f"{mean.reason}; left out: {_list(outcome.weak)}")
    return mean


def _stern(contrast: Contrast, interval: Interval, stern: Interval | None, tier: str) -> Verdict:
    """The verdict by an interval; where it decides alone by Holm's as well, of all that could."""
    verdict = outcomes.of_interval(contrast, interval, tier)
    corrected = verdict if stern is None else outcomes.of_interval(contrast, stern, tier)
    if (verdict.holds, verdict.fails) != (corrected.holds, corrected.fails):
        told = f"{verdict.reason}, but not at {100 * stern.level:.4g} % (Holm)"
        return replace(verdict, word=verdicts.INCONCLUSIVE, reason=told)
    return verdict


def _unrun(weak: Mapping[str, Verdict]) -> Verdict | None:
    """The first that lacks records: it keeps an everywhere-claim from all but failing."""
    return next((v for v in weak.values() if v.word == verdicts.NOT_RUN), None)


def _list(weak: Mapping[str, Verdict]) -> str:
    """By reason; of readers that are too weak the gate's table has the numbers."""
    by: dict[str, list[str]] = {}
    for name, verdict in weak.items():
        told = [verdict.word, *([verdict.reason] if verdict.word == verdicts.NOT_RUN else [])]
        by.setdefault(": ".join(told), []).append(name)
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in by.items())
