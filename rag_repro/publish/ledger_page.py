"""The ledger as a page: a row a claim, to be filtered by paper, tier and verdict.

The filter is a set of radio buttons and style rules, made from the same lists as the rows: no
server and no script. A tier at which no claim has a verdict shows when it is chosen.
Where a viewer drops the style, the whole table stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_repro.evaluation.verdicts import OPEN, UNSAID, WORDS
from rag_repro.show.arithmetic import workings
from rag_repro.show.escape import html
from rag_repro.show.ledger import counted, smallest
from rag_repro.study import audits, standing
from rag_repro.study.audits import Finding
from rag_repro.study.conditions import TIERS
from rag_repro.study.judge import Judged
from rag_repro.study.papers import Claim, Paper
from rag_repro.study.scores import Results

LONG = 70  # characters of a cell's text from which it is folded away


@dataclass(frozen=True)
class Entry:
    """A claim with its verdict at each tier, and what the audit found of its numbers."""

    paper: Paper
    claim: Claim
    judged: Mapping[str, Judged]
    findings: Sequence[Finding] = ()

    def texts(self) -> dict[str, str]:
        return {tier: self.judged[tier].verdict.word for tier in self.judged}


def entries(papers: Iterable[Paper], results: Results) -> list[Entry]:
    """Every claim of these papers, in the order of their files."""
    made = []
    for paper in papers:
        by_tier = {tier: standing.judged(paper, tier, results) for tier in TIERS}
        found = audits.claim_findings(paper)
        for place, claim in enumerate(paper.claims):
            judged = {tier: held[place] for tier, held in by_tier.items()}
            made.append(Entry(paper, claim, judged, found.get(claim.id, ())))
    return made


class Ledger:
    """The filter and the table; plain text is one line a claim.

    chapters: claim -> the name of the chapter that decides it.
    """

    def __init__(self, entries: Sequence[Entry], chapters: Mapping[str, str]):
        self.entries, self.chapters = list(entries), chapters
        seen = {word for entry in self.entries for word in entry.texts().values()}
        self.words = [word for word in WORDS if word in seen]
        told = {
            tier: {entry.texts()[tier] for entry in self.entries} - set(UNSAID) for tier in TIERS
        }
        # Where no tier has a verdict there is nothing to show in place of any.
        self.idle = [tier for tier in TIERS if not told[tier]] if any(told.values()) else []

    def __repr__(self) -> str:
        lines = (
            f"{e.claim.id}: " + "; ".join(f"{tier} {word}" for tier, word in e.texts().items())
            for e in self.entries
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html(
            "ledger",
            rows=[_row(entry, self.chapters) for entry in self.entries],
            papers={entry.paper.name: entry.paper.short for entry in self.entries},
            words={word.replace(" ", "-"): word for word in self.words},
            tiers=dict(zip(TIERS, TIERS, strict=True)),
            places={tier: place for place, tier in enumerate(TIERS, start=3)},  # of its column
            idle=self.idle,
            long=LONG,
        )


def _row(entry: Entry, chapters: Mapping[str, str]) -> dict[str, Any]:
    """What the table says of one claim; same: its verdict is the same at all tiers."""
    claim, verdicts = entry.claim, {tier: _told(entry.judged[tier]) for tier in TIERS}
    why = [claim.support_note] if claim.support_note else []
    return {
        "paper": entry.paper,
        "claim": claim,
        "chapter": chapters.get(claim.id),
        "exhibit": claim.exhibit and entry.paper.exhibits[claim.exhibit.split(".", 1)[1]],
        "working": [*why, *workings(entry.paper, claim, entry.findings)],
        "verdicts": verdicts,
        "same": all(one == verdicts[TIERS[0]] for one in verdicts.values()),
    }


def _told(judged: Judged) -> dict[str, Any]:
    """The verdict's word, its effect, its smallest effect of interest, and why."""
    verdict, part = judged.verdict, judged.headline
    effect, working = [], []
    if part is not None and part.interval is not None:
        effect.append(counted(part))
        if part.verdict.delta is not None:
            small = f"{'δ ' if part.contrast.margin is None else ''}{smallest(part)}"
            if part.verdict.mde is not None:
                small += f", detectable {part.verdict.mde:.2f}"
            effect.append(small)
    if part is not None and part.verdict.working:
        working.append(part.verdict.working)
    unclear = verdict.word in {*OPEN, *UNSAID} or len(judged.parts) > 1
    return {
        "word": verdict.word,
        "effect": effect,
        "working": working,
        "why": [verdict.reason] if unclear or not (effect or working) else [],
        "state": "" if verdict.word in UNSAID else judged.state,
        "history": judged.history,
    }
