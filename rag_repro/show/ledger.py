"""Claims as rows and as tables: what is claimed, and what records say of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rag_repro.bars import Bar
from rag_repro.data.titles import word
from rag_repro.evaluation import metrics
from rag_repro.evaluation.heuristics import GUESSED
from rag_repro.evaluation.verdicts import OPEN
from rag_repro.show import arithmetic
from rag_repro.show.picture import csv_text
from rag_repro.show.table import Table, github
from rag_repro.show.values import number, within
from rag_repro.study import audits, papers, standing
from rag_repro.study.audits import Finding
from rag_repro.study.conditions import TIERS
from rag_repro.study.judge import Judged, Part
from rag_repro.study.outcomes import of_answers
from rag_repro.study.papers import Contrast, Paper
from rag_repro.study.scores import Results, resampled

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
        "working": arithmetic.working(paper, claim, findings),
        "changed": " ".join(claim.changed),
        "unit": unit(headline.contrast) if interval else "",
        "main": claim.main,
        "small": verdict.small,
        "parts": verdict.parts,
        "contrasts": [_compared(judged, p) for p in judged.parts if p.contrast.role == "primary"],
        "told": format_effect(headline) if headline else "",
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


def format_effect(part: Part) -> str:
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
    return f"{format_effect(part)}, n {part.interval.n}" if part.interval else ""


def text(made: Sequence[dict[str, Any]], form: str) -> str:
    """The rows as "csv", "json" or "md"."""
    if form == "json":
        return json.dumps(list(made), ensure_ascii=False, indent=1) + "\n"
    if form == "csv":
        return csv_text(COLUMNS, ([row[name] for name in COLUMNS] for row in made))
    shown = [c for c in COLUMNS if c not in ("paper", "numbers", "working", "changed", "unit")]
    return github(shown, [[row[c] for c in shown] for row in made]) + "\n"


GUESSES = "drrag.guessable"  # where answers are guessed by rules without a reader


def statements(paper: Paper, ids: Sequence[str]) -> Table:
    """What the paper claims, and whether its own printed numbers bear it out."""
    head = ["claim", "the paper's numbers", "do they support it?"]
    body = []
    for name in ids:
        claim = paper.claim(name)
        support = f"{claim.support}: {arithmetic.working(paper, claim)}".rstrip(": ")
        said = f"{claim.id} ({claim.place}): {claim.claim}"
        body.append([said, claim.paper_numbers, support])
    caption = f"Claims of {paper.short}, and its own numbers"
    if paper.legend:
        caption += f" ({paper.legend})"
    return Table(head, body, caption, "tab-claims", stacked=True)


def changed(paper: Paper, ids: Sequence[str], name: str = "") -> Table | None:
    """Claims whose test is another than at first, since records were seen; None where none is."""
    told: dict[str, list[str]] = {}  # reason -> claims, since several share one
    for claim in map(paper.claim, ids):
        for reason in claim.changed:
            told.setdefault(reason, []).append(claim.id)
    body = [[", ".join(claims), reason] for reason, claims in told.items()]
    caption = "Tests that were changed after records had been seen, and so are weaker"
    head = ["claim", "what was changed, and why"]
    return Table(head, body, caption, name, stacked=True) if body else None


def verdicts(paper: Paper, judgements: Iterable[Judged]) -> Table:
    """One line a claim and tier; of one claim below one another, its words once."""
    head = ["claim", "tier", "verdict", "state", "effect [95 %], n", "smallest effect", "why"]
    caption = f"Verdicts on claims of {paper.short}; effects in the direction that is claimed"
    by: dict[str, list[Judged]] = {}
    for judged in judgements:
        by.setdefault(judged.claim.id, []).append(judged)
    body = []
    for held in by.values():
        claim = held[0].claim
        said = [f"{claim.id}: {claim.claim}", *[""] * (len(held) - 1)]
        body += [[words, *_verdict_line(one)] for words, one in zip(said, held, strict=True)]
    return Table(head, body, caption, "tab-verdicts", stacked=True)


def contrasts(
    judgements: Iterable[Judged],
    roles: Sequence[str],
    caption: str,
    name: str = "",
    beside: Sequence[list[str]] = (),
) -> Table | None:
    """One line a contrast of these roles that has records; None where none has. beside: further
    lines, behind them.
    """
    body = [
        [judged.claim.id, judged.tier, _label(part.contrast), part.verdict.word, counted(part)]
        for judged in judgements
        for part in judged.parts
        if part.contrast.role in roles and part.interval
    ]
    head = ["claim", "tier", "contrast", "verdict of it alone", "effect [95 % or more], n"]
    return Table(head, [*body, *beside], caption, name) if body else None


def _label(contrast: Contrast) -> str:
    return f"control: {contrast.label}" if contrast.control else contrast.label


def guessable(paper: Paper, ids: Sequence[str]) -> Paper:
    """The paper with these claims' contrasts of answers alone, over what can be guessed."""
    over = {"role": "secondary", "rule": "mean", "premise": False, "kinds": tuple(sorted(GUESSED))}
    made = []
    for claim in map(paper.claim, ids):
        asked = [c for c in claim.contrasts if c.role == "primary" and of_answers(c)]
        labels = [f"{c.label or c.metric}, where it can be guessed" for c in asked]
        parts = (replace(c, **over, label=label) for c, label in zip(asked, labels, strict=True))
        made.append(replace(claim, contrasts=tuple(parts)))
    return replace(paper, claims=tuple(made))


def guesses(results: Results, tier: str) -> list[list[str]]:
    """What guessing gets right of these questions: a line a data set and rule with records."""
    exhibit, lines = papers.exhibit(GUESSES)[1], []
    for cell in (c for c in exhibit.cells(tier) if c.condition.method == "guess"):
        scores = results.scores(cell, "acc", lambda line: line.get("kind") in GUESSED)
        if scores is not None:
            label = f"{word(cell.keys['dataset'])}: {exhibit.methods[cell.keys['method']].label}"
            level = within(resampled(scores, "acc").interval(), n=True)
            lines.append(["", tier, label, "", f"{level} % right"])
    return lines


def _verdict_line(judged: Judged) -> list[str]:
    part = judged.headline
    verdict = part.verdict if part else judged.verdict
    effect = counted(part) if part else ""
    small = smallest(part) if part else ""
    if judged.verdict.word in OPEN and verdict.mde is not None:
        small += f" (detectable: {verdict.mde:.1f})"
    word, reason = judged.verdict.word, judged.verdict.reason
    state = judged.state + (", test changed" if judged.claim.changed else "")
    if verdict.working:
        reason += f"; {verdict.working}"
    return [judged.tier, word, state, effect, small, reason]
