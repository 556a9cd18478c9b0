"""Every claim with its verdict, as rows."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rag_repro.bars import Bar
from rag_repro.evaluation import metrics
from rag_repro.show import worked
from rag_repro.show.picture import csv_text
from rag_repro.show.table import github
from rag_repro.show.values import number, within
from rag_repro.study import audits, papers, standing
from rag_repro.study.audits import Finding
from rag_repro.study.conditions import TIERS
from rag_repro.study.judge import Judged, Part
from rag_repro.study.papers import Contrast, Paper
from rag_repro.study.scores import Results

COLUMNS = (
    "id",
    "paper",
    "exhibit",
    "claim",
    "tier",
    "verdict",
    "state",
    "effect",
    "lo",
    "hi",
    "n",
    "delta",
    "mde",
    "support",
    "place",
    "reason",
    "numbers",
    "working",
    "changed",
    "unit",
)
"""Of which `numbers` are those that the paper prints, `working` why they bear the claim out or do
not, `changed` what was changed of the test after records had been seen, `unit` what the effect is
counted in. `state`: exploratory, registered or confirmed, as `study.standing` tells."""


def rows(
    results: Results, only: Sequence[str] | None = None, tiers: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """One row a claim and tier; numbers of the contrast that decides, in points."""
    made = []
    found: dict[str, dict[str, list[Finding]]] = {}
    every = itertools.product(dict.fromkeys(only or papers.names()), dict.fromkeys(tiers or TIERS))
    for name, tier in Bar(list(every), desc="judging claims", unit="tier of a paper"):
        paper = papers.load(name)
        findings = found.get(name) or found.setdefault(name, audits.claim_findings(paper))
        made += [
            of_judged(paper, judged, findings.get(judged.claim.id, ()))
            for judged in standing.judged(paper, tier, results)
        ]
    return made


def of_judged(paper: Paper, judged: Judged, findings: Iterable[Finding] = ()) -> dict[str, Any]:
    """The row of one claim at one tier.

    In no table: "main", of the claim; "small", it holds below delta; "parts", of how many
    verdicts it is one; "contrasts", what those that decide compare; "told" and "smallest", effect
    and delta in words.
    """
    claim, verdict, headline = judged.claim, judged.verdict, judged.headline
    interval = headline.interval if headline else None
    return {
        "id": claim.id,
        "paper": paper.short,
        "exhibit": claim.exhibit or "",
        "claim": claim.claim,
        "tier": judged.tier,
        "verdict": verdict.word,
        "state": judged.state,
        "effect": number(interval and interval.estimate),
        "lo": number(interval and interval.lo),
        "hi": number(interval and interval.hi),
        "n": interval.n if interval else "",
        "delta": number(headline and headline.verdict.delta),
        "mde": number(headline and headline.verdict.mde),
        "support": claim.support,
        "place": claim.place,
        "reason": verdict.reason,
        "numbers": claim.paper_numbers,
        "working": worked.working(paper, claim, findings),
        "changed": " ".join(claim.changed),
        "unit": unit(headline.contrast) if interval else "",
        "main": claim.main,
        "small": verdict.small,
        "parts": verdict.parts,
        "contrasts": [_compared(judged, p) for p in judged.parts if p.contrast.role == "primary"],
        "told": told(headline) if headline else "",
        "smallest": smallest(headline) if headline else "",
    }


def _compared(judged: Judged, part: Part) -> str:
    """What a contrast compares, whatever is asked of it: the same in claims that share it."""
    one, exhibit = part.contrast, judged.claim.exhibit_of(part.contrast)
    sides = one.more, one.less, one.minus, one.where, one.among, one.kinds, one.ratio
    return json.dumps([exhibit, one.metric, *sides], sort_keys=True)


def smallest(part: Part) -> str:
    """Its smallest effect of interest, as "5", "no loss 5" or "margin 10 around 25.8"."""
    contrast, delta = part.contrast, part.verdict.delta
    if delta is None or contrast.margin is None:
        return "" if delta is None else f"{delta:g}"
    if contrast.no_loss:
        return f"no loss {delta:g}"
    around = "" if contrast.target is None else f" around {contrast.target:g}"
    return f"margin {delta:g}{around}"


def unit(contrast: Contrast) -> str:
    """What the contrast's effect is counted in.

    Of a level that is to lie away from its target (a target with a delta) the effect is how far.
    """
    counted = metrics.get(contrast.metric).unit
    percent = counted == "percent" or contrast.ratio
    if contrast.target is None:
        return "points" if percent else counted
    if contrast.delta is None and percent and not contrast.ratio:
        return "%" if contrast.less is None else "points"
    if contrast.delta is None:
        return "% of the other" if contrast.ratio else counted
    if contrast.ratio and contrast.target == 100:
        return f"% {'more' if contrast.above else 'less'} than the other"
    where = f"{'above' if contrast.above else 'below'} {contrast.target:g}"
    if contrast.ratio:
        return f"points {where} % of the other"
    return f"points {where} %" if percent else f"{counted} {where}"


def told(part: Part) -> str:
    """The effect of a contrast with its interval and unit; empty where it has no interval."""
    if part.interval is None:
        return ""
    contrast, interval, side = part.contrast, part.interval, ""
    if contrast.target is not None and contrast.delta is not None and interval.hi < 0:
        # Wholly on the other side of what is claimed: said so, and not by a sign.
        contrast, interval = replace(contrast, above=not contrast.above), interval.flipped()
        side = ", against the claim"
    # A level has no sign; how far from a target, or more than another, has.
    counted_in = unit(contrast)
    level = contrast.less is None or counted_in in {"%", "% of the other"}
    clear = part.verdict.clear
    cells = f", clear in {clear[0]} of {clear[1]} cells" if clear else ""
    return f"{within(interval, sign='' if level else '+')} {counted_in}{side}{cells}"


def counted(part: Part) -> str:
    """The same with n."""
    return f"{told(part)}, n {part.interval.n}" if part.interval else ""


def text(made: Sequence[dict[str, Any]], form: str) -> str:
    """The rows as "csv", "json" or "md"."""
    if form == "json":
        return json.dumps(list(made), ensure_ascii=False, indent=1) + "\n"
    if form == "csv":
        return csv_text(COLUMNS, ([row[name] for name in COLUMNS] for row in made))
    shown = [c for c in COLUMNS if c not in ("paper", "numbers", "working", "changed", "unit")]
    return github(shown, [[row[c] for c in shown] for row in made]) + "\n"
