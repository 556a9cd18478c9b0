"""What has been run, what is missing: one line for each exhibit and tier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rag_repro.bars import Bar
from rag_repro.study import costs, papers, sealed
from rag_repro.study.conditions import TIERS
from rag_repro.study.scores import Results


def rows(results: Path) -> list[dict[str, Any]]:
    """exhibit, tier, conditions, run, complete, answers, failed: counted from the records.

    run: with an answer; complete: with all that are asked.
    """
    records = Results(results)
    made = []
    exhibits = [one for name in papers.names() for one in papers.load(name).exhibits.values()]
    for exhibit in Bar(exhibits, desc="reading records", unit="exhibit"):
        for tier in TIERS:
            cells = exhibit.cells(tier)
            lines = ((cell, records.lines(cell)) for cell in cells)
            held = [(cell, found) for cell, found in lines if found is not None]
            if cells:
                made.append(
                    {
                        "exhibit": exhibit.name,
                        "tier": tier,
                        "conditions": len(cells),
                        "run": len(held),
                        "complete": sum(not costs.short(c, len(x)) for c, x in held),
                        "answers": sum(len(x) for _, x in held),
                        "failed": sum(sealed.failed(x) for _, x in held),
                    }
                )
    return made


def text(results: Path) -> str:
    """The rows as an aligned text."""
    made = rows(results)
    head = list(made[0])
    cells = [head, *([str(v) for v in row.values()] for row in made)]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, width, strict=True)) for r in cells)
