"""A contrast: which questions it is about, what an interval of it says, and at what level."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from rag_repro.evaluation import metrics, verdicts
from rag_repro.evaluation.heuristics import GUESSED
from rag_repro.evaluation.intervals import Interval, Resampled
from rag_repro.evaluation.significance import holm_intervals
from rag_repro.evaluation.verdicts import Verdict
from rag_repro.study.papers import Cell, Claim, Contrast, Paper
from rag_repro.study.scores import Keep, Only, Results

MEAN = "the mean"


@dataclass(frozen=True)
class Drawn:
    """A contrast's draws: the mean over its cells, and each cell's own.

    deltas: by cell, and of the mean, what follows from what the paper prints, with the working.
    corrected: by cell, and of the mean as `MEAN`, the interval by which it has to decide alone
    (`corrected`).
    ungated: data sets that name no gold passages, so that no gate was possible.
    aside: cells of whose questions none is of a kind that decides: they have no say.
    weak: cells that are in neither, since their reader cannot read, with their verdict; of an
    everywhere-claim also those without records.
    """

    mean: Resampled
    each: Mapping[str, Resampled]
    weak: Mapping[str, Verdict]
    ungated: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    corrected: Mapping[str, Interval] = field(default_factory=dict)
    deltas: Mapping[str, tuple[float, str]] = field(default_factory=dict)

    def sized(self, contrast: Contrast, name: str) -> Contrast:
        """The contrast with its smallest effect in a cell, or of the mean."""
        if name not in self.deltas:
            return contrast
        return replace(contrast, delta=self.deltas[name][0], printed=None)


def of_interval(contrast: Contrast, interval: Interval, tier: str) -> Verdict:
    """The verdict on the contrast by that interval alone."""
    if contrast.target is not None and contrast.delta is not None:
        beyond = interval.shifted(-contrast.target)
        beyond = beyond if contrast.above else beyond.flipped()
        return verdicts.of_difference(beyond, contrast.delta, tier=tier)
    if contrast.target is not None:
        return verdicts.of_level(interval, contrast.target, contrast.margin, tier=tier)
    if contrast.no_loss:
        return verdicts.of_no_loss(interval, contrast.margin, tier=tier)
    if contrast.margin is not None:
        return verdicts.of_equivalence(interval, contrast.margin, tier=tier)
    return verdicts.of_difference(interval, contrast.delta, tier=tier)


def bounds(contrast: Contrast) -> tuple[float, ...]:
    """What an interval of it must not hold to decide, as `of_interval` judges it."""
    centre, margin = contrast.target or 0.0, contrast.margin
    if margin is None or contrast.delta is not None:
        return (centre,)
    return (-margin,) if contrast.no_loss else (centre - margin, centre + margin)


def refuting(contrast: Contrast) -> tuple[float, ...]:
    """What an interval of it must not hold to fail, as `of_interval` judges it."""
    if contrast.margin is not None:
        return bounds(contrast)
    against = contrast.delta if contrast.above or contrast.target is None else -contrast.delta
    return ((contrast.target or 0.0) + against,)


def delta(
    paper: Paper,
    contrast: Contrast,
    rooms: Sequence[tuple[float, float] | None],
    keys: Mapping[str, Any] | None = None,
) -> tuple[float, str]:
    """The smallest effect of interest in points, with its working: half of what the paper gains,
    in proportion to what it had to win and what there is to win here.

    rooms: of each cell what could be reached and what the baseline has; None where that is not
    known. Without any it is half of the gain itself. keys: of the one cell that it is for, whose
    own printed gain counts, where there is one.
    """
    gain, below = contrast.printed.amounts(paper, keys)
    known = [room for room in rooms if room is not None and room[0] > room[1]]
    if not known:
        return max(round(gain / 2, 2), 0.01), f"δ = ½ · {gain:.2f}, no gold passages to measure by"
    top, bare = (sum(side) / len(known) for side in zip(*known, strict=True))
    made = max(round(gain / 2 / (100 - below) * (top - bare), 2), 0.01)
    return made, f"δ {made:g} = ½ · {gain:.2f} / (100 − {below:.2f}) · ({top:.1f} − {bare:.1f})"


def widened(paper: Paper, drawn: Mapping[tuple[str, int], Drawn | Verdict | str]) -> dict:
    """Interval of every mean contrast: Holm's where secondary, 95 % where primary or a control, for
    of these all have to hold."""
    groups: dict[str, dict[tuple[str, int], Resampled]] = defaultdict(dict)
    intervals, limits = {}, {}
    for claim in paper.claims:
        for i, contrast in enumerate(claim.contrasts):
            outcome = drawn[claim.id, i]
            if not isinstance(outcome, Drawn):
                continue
            if contrast.role == "primary" or contrast.control:
                intervals[claim.id, i] = outcome.mean.interval()
            else:
                groups[claim.exhibit_of(contrast)][claim.id, i] = outcome.mean
                limits[claim.id, i] = bounds(contrast)
    for group in groups.values():
        intervals |= holm_intervals(group, bounds=limits)
    return intervals


def corrected(claim: Claim, drawn: Mapping, tier: str) -> dict[tuple[str, int], Drawn]:
    """Of a claim its draws with the intervals by which a part or cell has to decide alone.

    An everywhere-claim holds where all of them do, which needs no correction; but it would fail by
    any one of them. Where some are enough it is the reverse. So those are corrected together
    (Holm), over the cells of all parts where the claim names all of them or some, else over the
    cells of each.
    """
    families: dict[tuple[str, int], dict[tuple[int, str], Resampled]] = defaultdict(dict)
    for i, contrast in enumerate(claim.contrasts):
        outcome = drawn[claim.id, i]
        if contrast.role != "primary" or contrast.premise or not isinstance(outcome, Drawn):
            continue
        leaves = {MEAN: outcome.mean} if contrast.rule == "mean" else outcome.each
        side = "holds" if "some" in (claim.holds, contrast.rule) else "fails"
        over_parts = claim.holds == ("some" if side == "holds" else "all")
        family = families[side, -1 if over_parts else i]
        family |= {(i, name): one for name, one in leaves.items()}
    made: dict[int, dict[str, Interval]] = defaultdict(dict)

    def sized(i: int, name: str) -> Contrast:
        return drawn[claim.id, i].sized(claim.contrasts[i], name)

    for (side, _), family in families.items():
        deciding = {
            leaf: one
            for leaf, one in family.items()
            if getattr(of_interval(sized(*leaf), one.interval(), tier), side)
        }
        of = refuting if side == "fails" else bounds
        limits = {leaf: of(sized(*leaf)) for leaf in deciding}
        stern = holm_intervals(deciding, bounds=limits, size=len(family))
        for (i, name), interval in stern.items():
            made[i][name] = interval
    return {(claim.id, i): replace(drawn[claim.id, i], corrected=one) for i, one in made.items()}


OfKind = Callable[[str | None], bool]


def deciding(paper: Paper, dataset: str, contrast: Contrast | None = None) -> OfKind:
    """Whether questions of a kind decide: of one that the paper's data have, and where answers
    are compared of none that can be guessed from the question.

    contrast: its own `kinds` stand in place of the paper's; but no primary contrast of answers is
    decided by guesses. None: those of the gate, which is about answers.
    """
    own = contrast.kinds if contrast else ()
    named = own or next((k for name, k in paper.kinds.items() if fnmatchcase(dataset, name)), ())
    aside = own and contrast.role == "secondary"
    out = GUESSED if not aside and (contrast is None or of_answers(contrast)) else ()
    return lambda kind: (not named or kind in named) and kind not in out


def read(contrast: Contrast) -> set[str]:
    """The metrics that it reads of its sides."""
    return {s.get("metric", contrast.metric) for s in (contrast.more, contrast.less or {})}


def of_answers(contrast: Contrast) -> bool:
    """Whether one of its metrics tells of answers."""
    return any(metrics.get(name).of_answers for name in read(contrast))


def keep(
    contrast: Contrast,
    more: Cell,
    less: Cell | None,
    results: Results,
    of_kind: OfKind = lambda kind: True,
) -> Keep:
    """A filter of the two cells' lines, by kind (`deciding`) and `among`."""
    moved = _moved(contrast.among, more, less, results) if contrast.among and less else None
    return Only(of_kind, moved)


def describe_questions(contrast: Contrast) -> str:
    """What the questions must be, as "of the kinds comparison, with recall higher"."""
    parts = [f"of the kinds {', '.join(contrast.kinds)}"] if contrast.kinds else []
    changes = [f"{metric} {change}" for metric, change in contrast.among.items()]
    return ", ".join(parts + ([f"with {' and '.join(changes)}"] if changes else []))


def _moved(wanted: Mapping[str, str], more: Cell, less: Cell, results: Results) -> frozenset[str]:
    """Ids of the questions whose metrics stand to each other as wanted."""
    held = []
    for metric, change in wanted.items():
        ours, theirs = (results.values(cell, metric) for cell in (more, less))
        common = ours.keys() & theirs.keys()
        held.append({name for name in common if _holds(change, ours[name], theirs[name])})
    return frozenset.intersection(*map(frozenset, held))


def _holds(change: str, ours: float, theirs: float) -> bool:
    if change == "found":
        return ours > 0 and theirs > 0
    return change == ("higher" if ours > theirs else "lower" if ours < theirs else "same")
