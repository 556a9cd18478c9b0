"""Recall against the number of passages, from one deep retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_repro.evaluation.intervals import Interval
from rag_repro.evaluation.ratios import percent_interval


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
