"""Which corpus a paper searched, where it does not say: its levels beside ours over two of them.

Recall of plain retrieval depends on how many passages there are to be confused with, and
on little else, so that its level tells a pooled corpus from a question's own candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ..study.papers import Paper
from .exhibits import Row
from .picture import Note
from .table import Table

POOLED, OWN = "pooled", "own candidates"
CORPORA = {POOLED: False, OWN: True}  # by the key `own_candidates` of a row


def table(
    paper: Paper,
    key: str,
    rows: Sequence[Row],
    methods: Sequence[str],
    metric: str = "recall",
    name: str = "",
) -> Table | Note:
    """One line a method: its printed mean, ours over each corpus, and which lies nearer.

    Means are over the data sets and k that all three have; "apart" is the mean distance, cell
    by cell, in points. rows: of the exhibit, over both corpora.
    """
    labels = paper.exhibit(key).methods
    body = []
    for method in methods:
        printed = {
            (entry["dataset"], entry["k"]): float(entry["value"])
            for entry in paper.printed(key)
            if (entry["metric"], entry["method"]) == (metric, method)
        }
        ours = {
            corpus: {
                (row.keys["dataset"], str(row.keys["k"])): row.ours.estimate
                for row in rows
                if row.ours and row.metric == metric
                if (row.keys["method"], row.keys.get("own_candidates")) == (method, own)
            }
            for corpus, own in CORPORA.items()
        }
        shared = [place for place in printed if all(place in held for held in ours.values())]
        if not shared:
            continue
        line = [labels[method].label, len(shared), f"{fmean(printed[p] for p in shared):.1f}"]
        apart = {}
        for corpus, held in ours.items():
            apart[corpus] = fmean(abs(held[p] - printed[p]) for p in shared)
            line += [f"{fmean(held[p] for p in shared):.1f}", f"{apart[corpus]:.1f}"]
        body.append([*line, min(apart, key=apart.get)])
    if not body:
        return Note("Neither corpus has records beside what the paper prints.")
    head = ["method", "cells", "printed", *(w for c in CORPORA for w in (c, "apart")), "nearer"]
    return Table(head, body, "Mean levels, printed and over two corpora", name)
