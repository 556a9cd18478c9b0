"""Every claim with its verdict, as rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from ..study import papers
from ..study.conditions import TIERS
from ..study.judge import Judged, judge
from ..study.papers import Paper
from ..study.scores import Results
from .escape import as_cell

COLUMNS = (
    "id",
    "paper",
    "exhibit",
    "claim",
    "tier",
    "verdict",
    "effect",
    "lo",
    "hi",
    "n",
    "delta",
    "mde",
    "support",
    "place",
    "reason",
)


def rows(
    results: Results, only: Sequence[str] | None = None, tiers: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """One row a claim and tier; numbers of its first primary contrast, in points."""
    made = []
    for name in only or papers.names():
        paper = papers.load(name)
        for tier in tiers or TIERS:
            made += [_row(paper, judged) for judged in judge(paper, tier, results)]
    return made


def _row(paper: Paper, judged: Judged) -> dict[str, Any]:
    claim, verdict, headline = judged.claim, judged.verdict, judged.headline
    interval = headline.interval if headline else None
    return {
        "id": claim.id,
        "paper": paper.short,
        "exhibit": claim.exhibit or "",
        "claim": claim.claim,
        "tier": judged.tier,
        "verdict": verdict.word,
        "effect": _number(interval and interval.estimate),
        "lo": _number(interval and interval.lo),
        "hi": _number(interval and interval.hi),
        "n": interval.n if interval else "",
        "delta": _number(headline and headline.verdict.delta),
        "mde": _number(headline and headline.verdict.mde),
        "support": claim.support,
        "place": claim.place,
        "reason": verdict.reason,
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def text(made: Sequence[dict[str, Any]], form: str) -> str:
    """The rows as "csv", "json" or "md"."""
    if form == "json":
        return json.dumps(list(made), ensure_ascii=False, indent=1) + "\n"
    if form == "csv":
        out = io.StringIO()
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(made)
        return out.getvalue()
    shown = [c for c in COLUMNS if c not in ("place", "paper")]
    lines = [shown, ["---"] * len(shown)]
    lines += [[as_cell(row[c]) for c in shown] for row in made]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
