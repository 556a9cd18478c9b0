"""Recall against the number of passages, from one deep retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..evaluation.statistics import Interval, percent_interval
from ..study.papers import Exhibit
from ..study.scores import Results
from .exhibits import Row


def recall_at(
    lines: Sequence[Mapping[str, Any]], k: int, *, whole: bool = False, role: str | None = None
) -> Interval | None:
    """Mean share of gold passages within the first k hits, in points, over recorded answers.

    whole: share of questions with *all* their gold within k. role: only gold of
    that role. None where no question has such gold. Read off the stored ranks.
    """
    shares, clusters = [], []
    for line in lines:
        ranks = [rank for r, _, rank in line["gold"] if role in (None, r)]
        if ranks:
            found = [rank is not None and rank <= k for rank in ranks]
            shares.append(float(all(found)) if whole else np.mean(found))
            clusters.append(line["cluster"])
    if not shares:
        return None
    rng = np.random.default_rng(k)
    return percent_interval(shares, rng=rng, clusters=clusters)


def rows(
    exhibit: Exhibit, results: Results, tier: str, ks: Sequence[int], roles: Sequence[str] = ()
) -> list[Row]:
    """Rows of recall, and of recall by role, at every k up to the depth that was retrieved."""
    made = []
    for cell in exhibit.cells(tier):
        lines = results.lines(cell)
        if lines is None:
            continue
        for k in (k for k in ks if k <= cell.keys["k"]):
            keys = {**cell.keys, "k": k}
            wanted = [
                ("recall", recall_at(lines, k)),
                ("all_gold", recall_at(lines, k, whole=True)),
            ]
            wanted += [(f"recall_{role}", recall_at(lines, k, role=role)) for role in roles]
            made += [
                Row(exhibit.name, tier, cell.role, keys, metric, ours=value)
                for metric, value in wanted
                if value is not None
            ]
    return made
