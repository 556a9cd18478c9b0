"""What one interval of a contrast says, and which bounds it must leave to say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation import verdicts
from ..evaluation.intervals import Interval
from ..evaluation.verdicts import Verdict
from .papers import Contrast, Paper


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
