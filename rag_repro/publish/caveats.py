"""How sure we are: sizes, models, tiers and failures, read from the records.

The words are those of the front page's template `how_sure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_repro.data.public.registry import registry
from rag_repro.data.titles import DATASETS, word
from rag_repro.evaluation.verdicts import INCONCLUSIVE, UNSAID
from rag_repro.study.conditions import TIERS
from rag_repro.study.papers import Cell


@dataclass(frozen=True)
class Recorded:
    """One condition with its recorded answers (at most its n), None where nobody ran it."""

    cell: Cell
    lines: Sequence[Mapping[str, Any]] | None


def facts(claims: Sequence[Mapping[str, Any]], recorded: Sequence[Recorded]) -> dict[str, Any]:
    """What the verdicts of these rows of the ledger rest on, by the names that the template has.

    parts: data sets of which not all questions were asked. trained: rows of exhibits that are
    trained, of which single have one training.
    """
    judged = [row for row in claims if row["verdict"] not in UNSAID]
    cells = [r.cell for r in recorded if r.lines]
    seeds: dict[tuple[str, str], set[int]] = {}
    for cell in cells:
        if "seed" in cell.keys:  # a row of its exhibit, since another may train it otherwise
            seeds.setdefault((cell.exhibit, cell.keys["method"]), set()).add(cell.keys["seed"])
    sizes = _sizes(recorded)
    return {
        "judged": judged,
        "sizes": sorted(row["n"] for row in judged if row["n"] != ""),
        "unclear": sum(row["verdict"] == INCONCLUSIVE for row in judged),
        "parts": [DATASETS.get(name, name) for (tier, name), n in sizes.items() if _part(name, n)],
        "cells": cells,
        "retrievers": sorted({c.condition.retriever for c in cells if c.condition.retriever}),
        "readers": sorted({word(c.condition.reader) for c in cells if c.condition.reader}),
        "trained": len(seeds),
        "single": sum(len(held) == 1 for held in seeds.values()),
        "tiers": {tier: any(row["tier"] == tier for row in judged) for tier in TIERS},
        "answers": sum(len(r.lines or ()) for r in recorded),
        "failed": sum("error" in line for r in recorded for line in r.lines or ()),
        "asked": [
            [tier, DATASETS.get(name, name), f"{n:,}", _whole(name)]
            for (tier, name), n in sizes.items()
        ],
    }


def _part(dataset: str, asked: int) -> bool:
    """Whether fewer were asked than the set is known to have; worlds are as large as wanted."""
    return dataset in registry() and asked < (registry()[dataset].full_size or 0)


def _sizes(recorded: Sequence[Recorded]) -> dict[tuple[str, str], int]:
    """(tier, data set) -> different questions that have a record."""
    asked: dict[tuple[str, str], set[str]] = {}
    for r in recorded:
        if r.lines:
            ids = asked.setdefault((r.cell.tier, r.cell.condition.dataset), set())
            ids.update(line["id"] for line in r.lines)
    return {place: len(ids) for place, ids in asked.items()}


def _whole(dataset: str) -> str:
    if dataset.startswith("world-"):
        return "invented; any number can be made"
    source = registry().get(dataset)
    if source is None or source.full_size is None:
        return "not known"
    return f"{source.full_size:,} ({source.split.strip('()')})"
