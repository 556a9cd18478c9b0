"""What records say of a claim: the design's table, one function a kind of claim.

All of them take intervals in the claimed direction (a claim "less time" hands
in theirs - ours, or `Interval.flipped`) and scores of one unit throughout.

| claim | function | holds | fails |
| --- | --- | --- | --- |
| A beats B | `of_difference` | lo > 0 | lo <= 0 and hi < delta |
| no difference | `of_equivalence` | inside the margin | wholly outside |
| no loss | `of_no_loss` | lo > -margin | hi < -margin |
| the level is x | `of_level` | inside x ± margin | wholly outside |
| everywhere | `of_parts` | each part holds | any part fails |

What is neither is inconclusive, and the minimum detectable effect stands
beside it. A claim that holds is `reproduced`, one that fails `not
reproduced`; on the testbed the words are `mechanism holds` and `mechanism
fails`, whatever its size, since invented data reproduce no paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Literal

from rag_repro.evaluation.intervals import Interval
from rag_repro.evaluation.power import mde_of, needed

REPRODUCED = "reproduced"
DIRECTION_ONLY = "direction only"
NOT_REPRODUCED = "not reproduced"
INCONCLUSIVE = "inconclusive"
NOT_RUN = "not run"
NOT_JUDGED = "not judged"
READER_TOO_WEAK = "reader too weak"
UNDECIDABLE = "undecidable here"
MIXED = "mixed"
HOLDS = "mechanism holds"
FAILS = "mechanism fails"

WORDS = (
    REPRODUCED,
    DIRECTION_ONLY,
    NOT_REPRODUCED,
    INCONCLUSIVE,
    NOT_RUN,
    NOT_JUDGED,
    READER_TOO_WEAK,
    UNDECIDABLE,
    MIXED,
    HOLDS,
    FAILS,
)
# Said without an interval: records are missing or from several devices, or none could decide the
# claim at this tier.
UNSAID = frozenset({NOT_RUN, NOT_JUDGED, MIXED})
# With an interval that decides nothing.
OPEN = frozenset({INCONCLUSIVE, UNDECIDABLE})
MOST = 10_000  # questions, beyond which nobody here will ask
# Points (of 100) that gold passages must add to a reader's accuracy before its
# answers count, and what the interval must lie above.
READER_GAIN, READER_LOW = 15.0, 5.0
NO_GATE = "no gate possible"  # said beside a verdict where no gold passages are known
SMALL = "smaller than the effect of interest"

Tier = Literal["testbed", "public", "paper"]
_ON_TESTBED = {REPRODUCED: HOLDS, DIRECTION_ONLY: HOLDS, NOT_REPRODUCED: FAILS}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word of `WORDS` with what led to it.

    delta: the smallest effect of interest, or the margin. mde: the minimum
    detectable effect at this n. Both in the interval's unit. small: it holds, but all that the
    interval allows is below delta (on the testbed no word tells that apart). parts: of how many
    verdicts it is one; makers: the names of those that made the word, where not all had to.
    clear: of a mean over cells, in how many of how many it holds by itself. working: how delta was
    reckoned, where it was.
    """

    word: str
    reason: str
    interval: Interval | None = None
    delta: float | None = None
    mde: float | None = None
    small: bool = False
    parts: int = 1
    makers: tuple[str, ...] = ()
    clear: tuple[int, int] | None = None
    working: str = ""

    @property
    def holds(self) -> bool:
        return self.word in (REPRODUCED, DIRECTION_ONLY, HOLDS)

    @property
    def fails(self) -> bool:
        return self.word in (NOT_REPRODUCED, FAILS)


def _check(margin: float, name: str, tier: str) -> None:
    if not margin > 0 or not math.isfinite(margin):
        raise ValueError(f"{name} is {margin!r}; it must be a positive number")
    if tier not in ("testbed", "public", "paper"):
        raise ValueError(f"tier {tier!r} is none of testbed, public, paper")


def _verdict(word, reason, interval, delta, tier) -> Verdict:
    small = word == DIRECTION_ONLY
    if word == INCONCLUSIVE and MOST < (n := needed(interval, delta)) < math.inf:
        word, reason = UNDECIDABLE, f"{reason}; {delta:.3g} would need {n:,.0f} questions"
    if tier == "testbed":
        word = _ON_TESTBED.get(word, word)
    return Verdict(word, reason, interval, delta, mde_of(interval), small)


def of_difference(interval: Interval, delta: float, *, tier: Tier = "public") -> Verdict:
    """Verdict on a paired difference in the claimed direction.

    delta: smallest effect of interest (by default half the paper's effect).
    Errors: ValueError for a delta that is not positive.
    """
    _check(delta, "delta", tier)
    if interval.lo > 0 and interval.hi >= delta:
        word, reason = REPRODUCED, "the interval lies above 0 and reaches δ"
    elif interval.lo > 0:
        word, reason = DIRECTION_ONLY, f"the interval lies between 0 and δ: {SMALL}"
    elif interval.hi < 0:
        word, reason = NOT_REPRODUCED, "the interval lies wholly against the claim"
    elif interval.hi < delta:
        word, reason = NOT_REPRODUCED, "the interval holds 0 and ends below δ"
    else:
        word, reason = INCONCLUSIVE, "the interval holds both 0 and δ"
    return _verdict(word, reason, interval, delta, tier)


def of_equivalence(interval: Interval, margin: float, *, tier: Tier = "public") -> Verdict:
    """Verdict on "no difference": the difference lies within ± margin."""
    _check(margin, "margin", tier)
    if -margin < interval.lo and interval.hi < margin:
        word, reason = REPRODUCED, "the interval lies inside the margin"
    elif interval.lo > margin or interval.hi < -margin:
        word, reason = NOT_REPRODUCED, "the interval lies wholly outside the margin"
    else:
        word, reason = INCONCLUSIVE, "the interval crosses the margin"
    return _verdict(word, reason, interval, margin, tier)


def of_no_loss(interval: Interval, margin: float, *, tier: Tier = "public") -> Verdict:
    """Verdict on "without loss": the difference is above -margin (any gain is fine)."""
    _check(margin, "margin", tier)
    if interval.lo > -margin:
        word, reason = REPRODUCED, "a loss of the margin is ruled out"
    elif interval.hi < -margin:
        word, reason = NOT_REPRODUCED, "a loss beyond the margin"
    else:
        word, reason = INCONCLUSIVE, "losses within and beyond the margin are possible"
    return _verdict(word, reason, interval, margin, tier)


def of_level(interval: Interval, target: float, margin: float, *, tier: Tier = "public") -> Verdict:
    """Verdict on "the value is `target`", give or take the margin."""
    verdict = of_equivalence(interval.shifted(-target), margin, tier=tier)
    reason = f"{verdict.reason} around {target:g}"
    return Verdict(verdict.word, reason, interval, margin, verdict.mde)


def _counted(of: Callable[[Mapping[str, Verdict]], Verdict]):
    @wraps(of)
    def counted(parts: Mapping[str, Verdict]) -> Verdict:
        return replace(of(parts), parts=len(parts))

    return counted


def _named(parts: Mapping[str, Verdict]) -> str:
    """Their names, each with what made it where it is itself one of several, or is undecided."""
    return "; ".join(f"{name}{_behind(verdict)}" for name, verdict in parts.items())


def _behind(verdict: Verdict) -> str:
    if verdict.word in {READER_TOO_WEAK, *UNSAID}:
        return f" ({verdict.word})"
    if verdict.parts == 1 or not verdict.makers:
        return ""
    every = len(verdict.makers) == verdict.parts
    return f" (all {verdict.parts})" if every else f" ({'; '.join(verdict.makers)})"


@_counted
def of_parts(parts: Mapping[str, Verdict]) -> Verdict:
    """Verdict on "everywhere": holds when each part holds, fails when any fails.

    Needs no correction to hold: all parts must. A part that was not run or not
    judged, or whose reader is too weak, keeps the whole from holding, not from failing.
    """
    if not parts:
        raise ValueError("an everywhere-claim needs at least one part")

    words = {v.word for v in parts.values()}
    if words & {HOLDS, FAILS} and words & {REPRODUCED, DIRECTION_ONLY, NOT_REPRODUCED}:
        raise ValueError("parts of the testbed and of real data have no verdict in common")
    all_m = {1: "its one part", 2: "both parts"}.get(len(parts), f"all {len(parts)} parts")
    of_m = f"(of {len(parts)} {'parts' if len(parts) > 1 else 'part'})"
    failing = words & {NOT_REPRODUCED, FAILS}
    if failing:
        failed = {name: v for name, v in parts.items() if v.fails}
        return Verdict(failing.pop(), f"fails: {_named(failed)} {of_m}", makers=tuple(failed))
    if words <= {*UNSAID, READER_TOO_WEAK}:
        # No part is decided. What can be run comes before what cannot be judged.
        word = next(w for w in (NOT_RUN, MIXED, READER_TOO_WEAK, NOT_JUDGED) if w in words)
        reason = next(v.reason for v in parts.values() if v.word == word)
        return Verdict(word, f"{all_m}: {reason}" if words == {word} else reason)
    # A part that no record decides says why; of the others the interval does.
    undecided = {*OPEN, READER_TOO_WEAK, *UNSAID}
    if still_open := {name: v for name, v in parts.items() if v.word in undecided}:
        reason = f"no part fails, but open: {_named(still_open)} {of_m}"
        never = all(v.word == UNDECIDABLE for v in still_open.values())
        return Verdict(UNDECIDABLE if never else INCONCLUSIVE, reason, makers=tuple(still_open))
    if DIRECTION_ONLY in words:
        below = {name: v for name, v in parts.items() if v.word == DIRECTION_ONLY}
        reason = f"each holds, below δ: {'; '.join(below)} {of_m}"
        return Verdict(DIRECTION_ONLY, reason, small=True)
    if small := "; ".join(name for name, v in parts.items() if v.small):
        reason = f"{all_m} hold, but the effect is {SMALL}: {small}"
        return Verdict(words.pop(), reason, small=True)
    return Verdict(words.pop(), f"{all_m} hold" if len(parts) > 1 else f"{all_m} holds")


@_counted
def of_some(parts: Mapping[str, Verdict]) -> Verdict:
    """Verdict on "sometimes": holds when one part holds, fails when all of them fail.

    Parts are looked at side by side, so that the more there are, the sooner one holds by chance.
    """
    whole = of_parts(parts)
    for word in (REPRODUCED, HOLDS, DIRECTION_ONLY):
        if held := [name for name, v in parts.items() if v.word == word]:
            small = all(parts[name].small for name in held)
            reason = f"holds: {'; '.join(held)} (of {len(parts)})"
            return Verdict(word, reason, small=small, makers=tuple(held))
    failed = [name for name, v in parts.items() if v.fails]
    if whole.fails and len(failed) < len(parts):
        rest = "; ".join(name for name in parts if name not in failed)
        return Verdict(INCONCLUSIVE, f"no part holds, but open: {rest} (of {len(parts)})")
    return whole


@_counted
def of_most(parts: Mapping[str, Verdict]) -> Verdict:
    """Verdict on "mostly": holds when more than half of the parts do, fails when half fail.

    A part that is open, not run or not judged counts for neither.
    """
    everywhere = of_parts(parts)
    most = len(parts) // 2 + 1
    failed = [name for name, v in parts.items() if v.fails]
    for words in ({REPRODUCED, HOLDS}, {REPRODUCED, HOLDS, DIRECTION_ONLY}):
        held = {name: v for name, v in parts.items() if v.word in words}
        if len(held) >= most:
            word = DIRECTION_ONLY if DIRECTION_ONLY in words else next(iter(held.values())).word
            small = sum(not v.small for v in held.values()) < most
            return Verdict(word, f"{len(held)} of {len(parts)} parts hold", small=small)
    if len(failed) > len(parts) - most:
        word = next(v.word for v in parts.values() if v.fails)
        named = _named({name: parts[name] for name in failed})
        return Verdict(word, f"fails: {named} (of {len(parts)} parts)", makers=tuple(failed))
    if not held and not failed:
        return everywhere
    rest = "; ".join(name for name in parts if name not in held and name not in failed)
    counts = f"{len(held)} of {len(parts)} parts hold, {len(failed)} fail"
    return Verdict(INCONCLUSIVE, f"{counts}, open: {rest}")


def not_run(reason: str) -> Verdict:
    """No records, and why."""
    return Verdict(NOT_RUN, reason)


def mixed(reason: str) -> Verdict:
    """Its sides were answered on several devices or by several versions of torch."""
    return Verdict(MIXED, reason)


def not_judged(reason: str) -> Verdict:
    """No record could decide it at this tier, and why, or where it is answered in another way."""
    return Verdict(NOT_JUDGED, reason)


def reader_gate(gain: Interval, needed: float = READER_GAIN) -> Verdict | None:
    """`reader too weak`, or None where the reader may judge answers.

    gain: accuracy with gold passages minus accuracy without, same questions, in
    points: the estimate at least `needed`, the lower end above `READER_LOW`.
    """
    if gain.estimate >= needed and gain.lo > READER_LOW:
        return None
    return Verdict(
        READER_TOO_WEAK,
        f"gold passages add {gain.estimate:.1f} [{gain.lo:.1f}, {gain.hi:.1f}] points of "
        f"accuracy, {needed:g} are needed, and a lower end above {READER_LOW:g}",
    )


def reader_floor(accuracy: float, needed: float = READER_GAIN) -> Verdict | None:
    """`reader too weak`, or None where a claim about what passages add may be judged.

    accuracy: in percent, with the gold passages. What these add is the claim's own matter and must
    not decide; but a reader that answers next to nothing even with them gains nothing by any.
    """
    if accuracy >= needed:
        return None
    told = f"{accuracy:.1f} % of answers are right with the gold passages, {needed:g} are needed"
    return Verdict(READER_TOO_WEAK, told)
