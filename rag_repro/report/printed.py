"""Arithmetic on what a paper prints: means, and what follows from them. Nothing is re-run."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from ..study.papers import Paper, StudyError
from .arithmetic import gains, pick


def values(paper: Paper, key: str, **wanted: Any) -> dict[tuple[str, ...], float]:
    """The printed numbers of an exhibit that have the wanted keys, by their other keys.

    wanted: one value or a list of them, as method="cfs", k=[4, 6]. Raises
    StudyError where there is none.
    """
    asked = {
        name: [str(one) for one in (value if isinstance(value, list) else [value])]
        for name, value in wanted.items()
    }
    found = {
        tuple(v for k, v in entry.items() if k not in ("value", "note")): float(entry["value"])
        for entry in pick(paper.printed(key), **asked)
    }
    if not found:
        raise StudyError(f"{paper.name}.{key} prints nothing with {wanted}")
    return found


def mean(paper: Paper, key: str, **wanted: Any) -> float:
    """The mean of the printed numbers that have the wanted keys."""
    return fmean(values(paper, key, **wanted).values())


def gain(paper: Paper, key: str, more: str, less: str, **wanted: Any) -> float:
    """The mean of what one method's numbers are above another's, in the cells that have both."""
    return float(fmean(gains(paper, key, more, less, **wanted).values()))


def useless(paper: Paper, key: str, gold: Mapping[str, float]) -> dict[tuple[str, str, str], float]:
    """Share of passages fed that are not gold, in %, by (method, k, data set).

    Follows from the printed recall (of gold passages, %) and the number of passages
    fed: 100 (1 - recall / 100 * gold / passages). gold: gold passages a question, by
    data set; where their number varies it is the mean, so the share is approximate.
    """
    made = {}
    for entry in paper.printed(key):
        if entry["metric"] == "recall" and entry["dataset"] in gold:
            place = {name: entry[name] for name in ("method", "k", "dataset")}
            [fed] = values(paper, key, metric="passages", **place).values()
            found = float(entry["value"]) / 100 * gold[entry["dataset"]]
            made[tuple(place.values())] = 100 * (1 - found / fed)
    return made
