"""What has been run, what is missing: one line for each exhibit and tier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..study import papers
from ..study.conditions import TIERS
from ..study.scores import Results


def rows(results: Path) -> list[dict[str, Any]]:
    """exhibit, tier, conditions, run, answers, failed: counted from the records."""
    records = Results(results)
    made = []
    for name in papers.names():
        for exhibit in papers.load(name).exhibits.values():
            for tier in TIERS:
                cells = exhibit.cells(tier)
                lines = [records.lines(cell) for cell in cells]
                held = [line for line in lines if line is not None]
                if cells:
                    made.append(
                        {
                            "exhibit": exhibit.name,
                            "tier": tier,
                            "conditions": len(cells),
                            "run": len(held),
                            "answers": sum(map(len, held)),
                            "failed": sum("error" in x for line in held for x in line),
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
