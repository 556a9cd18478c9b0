"""Two folders of records, condition by condition: a re-run against the book's own."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from rag_repro.evaluation import metrics
from rag_repro.evaluation.resampling import resample_difference
from rag_repro.study import records
from rag_repro.study.lines import difference
from rag_repro.study.records import Record, RecordError


def rows(a: Path, b: Path) -> list[dict[str, Any]]:
    """One row a condition and metric that both folders hold.

    same: share of common questions with equal hits and prediction. diff: B's
    mean minus A's on the common questions, in the metric's unit, with lo, hi.
    """
    held = {side: _records(side) for side in (a, b)}
    common = sorted(held[a].keys() & held[b].keys())
    if not common:
        raise RecordError(f"{a} and {b} have no condition in common; are both folders of records?")
    return [row for path in common for row in _compare(path, held[a][path], held[b][path])]


def _records(folder: Path) -> dict[str, Record]:
    if not folder.is_dir():
        raise RecordError(
            f"there is no folder {folder}; name two folders of records, as results/records"
        )
    found = ((path, records.at(folder, path)) for path in records.paths(folder))
    return {path: record for path, record in found if record is not None}


def _compare(path: str, a: Record, b: Record) -> list[dict[str, Any]]:
    left, right = a.by_question, b.by_question
    ids = [name for name in left if name in right]
    same = [_outcome(left[name]) == _outcome(right[name]) for name in ids]
    made = []
    for metric in metrics.METRICS.values():
        both = {i: [metrics.of_line(metric.name, side[i]) for side in (left, right)] for i in ids}
        held = {i: values for i, values in both.items() if None not in values}
        if not held:
            continue
        ours, theirs = np.array([*held.values()], float).T * metric.scale
        interval = resample_difference(
            theirs, ours, rng=np.random.default_rng(0), clusters=[left[i]["cluster"] for i in held]
        ).interval()
        told = {"condition": path, "n": len(held), "same": float(np.mean(same))}
        told |= {"metric": metric.name, "a": ours.mean(), "b": theirs.mean()}
        made.append({**told, "diff": interval.estimate, "lo": interval.lo, "hi": interval.hi})
    return made


def _outcome(line: Mapping[str, Any]) -> tuple:
    return tuple(line["hits"]), line.get("prediction"), line.get("error")


def text(a: Path, b: Path) -> str:
    """The rows as text; metrics on which the two agree exactly are left out.

    What the two were made with is compared as well: other data or weights under the same name
    are named.
    """
    lines, found = [], {side: _records(side) for side in (a, b)}
    held = {path: [*of] for path, of in groupby(rows(a, b), lambda row: row["condition"])}
    for path in sorted(found[a].keys() & found[b].keys()):
        made = held.get(path, [])
        same = f"{made[0]['same']:.1%} of the answers are the same" if made else ""
        lines.append(f"{path}: {same or 'no question in common'}")
        for part in ("identity", "fingerprint"):
            sides = (found[side][path].header[part] for side in (a, b))
            if told := difference(*sides, ("a", "b")):
                lines.append(f"  made otherwise, {part}: {told}")
        for row in made:
            if row["a"] != row["b"] or row["lo"] != 0 or row["hi"] != 0:
                lines.append(
                    f"  {row['metric']}: {row['a']:.2f} -> {row['b']:.2f}, difference "
                    f"{row['diff']:+.2f} [{row['lo']:+.2f}, {row['hi']:+.2f}], n {row['n']}"
                )
    return "\n".join(lines)
