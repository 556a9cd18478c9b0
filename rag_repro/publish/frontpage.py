"""The front page: what was tested, the verdicts so far, how sure we are, what comes next.

A MyST page made from the records alone. No number in it is written by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_repro.publish import verdict_summary
from rag_repro.publish.templating import count, render
from rag_repro.publish.verdict_summary import Recorded, facts
from rag_repro.show import ledger
from rag_repro.show.missing import run_command
from rag_repro.study import campaign, papers, registration
from rag_repro.study.judge import EXPLORATORY
from rag_repro.study.scores import Results

# The papers of this book, by their keys of the bibliography.
BOOK = {
    "DR-RAG": "hei2024drrag",
    "ERM4": "shi2024erm4",
    "DRAGIN": "su2024dragin",
    "R²AG": "ye2024r2ag",
}

LEDGER = "chapters/90_claims"


def text(
    results: Results,
    root: Path,
    claims: Sequence[Mapping[str, Any]] | None = None,
    *,
    figure: str = "",
) -> str:
    """The page, from the records and from the chapters under `root`.

    claims: the ledger's rows, where they are made already. figure: the picture of all
    verdicts, below the book's folder.
    """
    claims = ledger.rows(results) if claims is None else claims
    exhibits = [e for name in papers.names() for e in papers.load(name).exhibits.values()]
    # Once, though two papers may ask for the same condition.
    asked_for = campaign.once(cell for exhibit in exhibits for cell in exhibit.cells())
    recorded = [Recorded(cell, results.lines(cell)) for cell in asked_for]
    known = facts(claims, recorded)
    groups = verdict_summary.sort(claims)
    tally = verdict_summary.counts(claims)
    verdicts = [g for g in verdict_summary.GROUPS if any(one[g] for one in tally.values())]
    exploratory = [row for row in known["judged"] if row["state"] == EXPLORATORY]
    ran = [r for r in recorded if r.lines is not None]
    return render(
        "front",
        **known,
        book=[f"{short} {{cite}}`{cite}`" for short, cite in BOOK.items()],
        groups=groups,
        every=counted([rows for group in groups.values() for rows in group]),
        effects_shown=any(groups[g] for g in verdict_summary.ORDER[:-2]),
        others=len({row["id"] for row in claims if verdict_summary.of_summary(row)}),
        states=sorted(Counter(row["state"] for row in known["judged"]).items()),
        changed=sum(bool(row["changed"]) for row in exploratory),
        main=verdict_summary.main(claims),
        registered=len(registration.read(results.folder.parent)),
        refused=[key.partition("/")[0] for key in registration.refusals(results.folder.parent)],
        unborne=verdict_summary.unborne(claims),
        counted=counted,
        spread=_spread,
        by_tier=verdict_summary.by_tier,
        whys=lambda held: [
            [verdict_summary.named_claim(r[0]), verdict_summary.reason(r)] for r in held
        ],
        workings=lambda held: [
            [verdict_summary.named_claim(row), row["numbers"], row["working"]] for [row] in held
        ],
        figure=figure,
        spoken=figure and verdict_summary.spoken(tally),
        figure_caption=verdict_summary.CAPTION,
        ran=len(ran),
        exhibits=len({r.cell.exhibit for r in ran}),
        # Paper and tier in one column, as in the figure, so that all columns fit a page's width.
        verdicts=verdicts,
        counts=[[", ".join(at), *(one[g] or "" for g in verdicts)] for at, one in tally.items()],
        ledger=LEDGER if (root / "book" / f"{LEDGER}.ipynb").is_file() else "",
        lacking=_lacking(recorded),
        waiting={
            exhibit.name: dict.fromkeys(m.waits for m in exhibit.methods.values() if m.waits)
            for exhibit in exhibits
            if not exhibit.grids
        },
        chapters=_chapters(root),
    )


def counted(held: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """As "9 claims", or "9 claims (7 distinct results)" where some share a contrast."""
    different = verdict_summary.distinct(held)
    told = f" ({count(different, 'distinct result')})" if different < len(held) else ""
    return count(len(held), "claim") + told


def _spread(held: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """How many of which paper: "DR-RAG 9, ERM4 2"."""
    shorts = Counter(rows[0]["paper"] for rows in held)
    return ", ".join(f"{short} {n}" for short, n in shorts.items())


def _lacking(recorded: Sequence[Recorded]) -> dict[str, list[dict[str, Any]]]:
    """Paper -> its exhibits and tiers that lack records, each with the command that makes them."""
    places: dict[tuple[str, str, str], list[bool]] = {}
    for r in recorded:
        verb = "time" if r.cell.timed else "run"
        places.setdefault((r.cell.exhibit, r.cell.tier, verb), []).append(r.lines is None)
    lacking: dict[str, list[dict[str, Any]]] = {}
    for (exhibit, tier, verb), missing in places.items():
        if any(missing):
            one = {"exhibit": exhibit, "tier": tier, "command": run_command(exhibit, tier, verb)}
            one |= {"missing": sum(missing), "of": len(missing)}
            lacking.setdefault(papers.load(exhibit.split(".")[0]).short, []).append(one)
    return lacking


def _chapters(root: Path) -> list[str]:
    """The executed chapters that the book's contents name."""
    contents = root / "_toc.yml"
    told = contents.read_text(encoding="utf-8") if contents.is_file() else ""
    listed = re.findall(r"\bfile: *(chapters/\w+)", told)
    return [name for name in listed if (root / "book" / f"{name}.ipynb").is_file()]
