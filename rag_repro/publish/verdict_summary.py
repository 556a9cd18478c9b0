"""The claims by what was found of them, for the front page: a figure, lists, and how sure we are.

A claim stands once: where its tiers disagree, among those of which it depends on where. The words
are those of the page's templates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_repro.data.public.registry import registry
from rag_repro.data.titles import DATASETS, word
from rag_repro.evaluation import verdicts
from rag_repro.evaluation.verdicts import INCONCLUSIVE, NOT_RUN, UNSAID
from rag_repro.evaluation.verdicts import OPEN as UNDECIDED
from rag_repro.show.picture import SLIM, Picture, legend_of_labels, plots
from rag_repro.study.conditions import TIERS
from rag_repro.study.judge import EXPLORATORY
from rag_repro.study.papers import Cell

# Group -> its verdicts and its look: place in the palette, hatch. Hatches tell groups apart
# without colours; what has no records has neither.
GROUPS: Mapping[str, tuple[tuple[str, ...], int | None, str]] = {
    "holds": ((verdicts.REPRODUCED, verdicts.HOLDS), 0, ""),
    "holds in direction only": ((verdicts.DIRECTION_ONLY,), 8, "//"),
    "inconclusive": ((verdicts.INCONCLUSIVE,), 7, ".."),
    "undecidable here": ((verdicts.UNDECIDABLE,), 6, "oo"),
    "does not hold": ((verdicts.NOT_REPRODUCED, verdicts.FAILS), 1, "\\\\"),
    "reader too weak": ((verdicts.READER_TOO_WEAK,), 5, "xx"),
    "not run": ((verdicts.NOT_RUN,), None, ""),
    "not judged": ((verdicts.NOT_JUDGED,), None, "--"),
    "mixed devices": ((verdicts.MIXED,), None, "++"),
}
Row = Mapping[str, Any]
"""A row of the ledger."""
GROUP_OF = {word: name for name, (words, *_) in GROUPS.items() for word in words}
"""Which of GROUPS a verdict's word belongs to."""


def counts(claims: Sequence[Row]) -> dict[tuple[str, str], Counter]:
    """(paper, tier) -> how many claims are in which group."""
    held: dict[tuple[str, str], Counter] = {}
    for row in claims:
        held.setdefault((row["paper"], row["tier"]), Counter())[GROUP_OF[row["verdict"]]] += 1
    return held


def figure(claims: Sequence[Row], name: str = "fig-verdicts") -> Picture:
    """The claims by tier, a bar each, as told by these rows."""
    plt, colours = plots()
    held = counts(claims)
    papers = list(dict.fromkeys(paper for paper, _ in held))
    drawn, axis = plt.subplots(figsize=(SLIM, 1.2 + 0.42 * len(held)), layout="constrained")
    places, labels = [], []
    for i, (paper, tier) in enumerate((p, t) for p in papers for t in TIERS if (p, t) in held):
        # Papers stand apart by half a bar.
        places.append(-(i + 0.6 * papers.index(paper)))
        labels.append(f"{paper}, {tier}")
        left = 0
        for said, (_, colour, hatch) in GROUPS.items():
            number = held[paper, tier][said]
            look = {"facecolor": "white", "edgecolor": "0.6", "ls": ":"}
            if colour is not None:
                look = {"color": colours[colour % len(colours)], "edgecolor": "white"}
            label = said if said not in axis.get_legend_handles_labels()[1] else None
            axis.barh(places[-1], number, left=left, hatch=hatch, height=0.8, label=label, **look)
            if number:
                # As narrow as the bar: else the numbers of two neighbours read as one.
                pad = 1.0 if number > 2 else 0.0
                ground = {"facecolor": "white", "edgecolor": "none", "pad": pad}
                middle = left + number / 2
                axis.text(middle, places[-1], number, ha="center", va="center", size=8, bbox=ground)
            left += number
    axis.set_yticks(places, labels)
    axis.set_xlabel("claims")
    axis.grid(axis="y", visible=False)
    legend_of_labels(drawn)
    return Picture(drawn, f"Claims by verdict. {spoken(held)}", CAPTION, name)


CAPTION = (
    "Every claim of the papers by its verdict at each tier. A dotted outline says nothing for or "
    "against: not run, or of a kind that no record could judge at this tier"
)


def spoken(held: Mapping[tuple[str, str], Counter]) -> str:
    """The figure in words."""
    return " ".join(
        f"{paper}, {tier}: "
        + ", ".join(f"{n} {named_claim}" for named_claim in GROUPS if (n := found[named_claim]))
        + "."
        for (paper, tier), found in held.items()
    )


HELD, DIRECTION, OPEN, HOPELESS, FAILED, WEAK, NEVER, UNKNOWABLE, DEVICES = GROUPS
MIXED = "mixed"
ORDER = (HELD, DIRECTION, FAILED, MIXED, OPEN, UNKNOWABLE, NEVER)
"""The groups that the page has, in its order; of the last two no record decides a claim."""


def sort(claims: Sequence[Row]) -> dict[str, list[list[Row]]]:
    """Group -> its claims, each as its rows of the ledger, in their order."""
    sorted_: dict[str, list[list[Row]]] = {name: [] for name in ORDER}
    for rows in _by_claim(claims):
        sorted_[_of(rows)].append(rows)
    return sorted_


def _by_claim(rows: Iterable[Row]) -> list[list[Row]]:
    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(row["id"], []).append(row)
    return list(by.values())


def _of(rows: Sequence[Row]) -> str:
    found = {GROUP_OF[row["verdict"]] for row in rows}
    if found <= {NEVER, UNKNOWABLE, DEVICES}:
        return UNKNOWABLE if found == {UNKNOWABLE} else NEVER
    decided = found & {HELD, DIRECTION, FAILED}
    if not decided:
        return OPEN
    if FAILED in decided:
        return FAILED if decided == {FAILED} else MIXED
    return DIRECTION if DIRECTION in decided else HELD


def distinct(held: Sequence[Sequence[Row]]) -> int:
    """How many results these claims are: those that share a contrast are one."""
    results: list[set[str]] = []
    for rows in held:
        own = {key for row in rows for key in row.get("contrasts") or [row["id"]]}
        shared = [result for result in results if result & own]
        results = [result for result in results if not result & own] + [own.union(*shared)]
    return len(results)


def main(claims: Sequence[Row]) -> list[list[Row]]:
    """The claims that the papers are known for; none before any of them is judged."""
    known = [row for row in claims if row["main"]]
    return _by_claim(known) if any(row["verdict"] not in UNSAID for row in known) else []


def unborne(claims: Sequence[Row]) -> list[list[Row]]:
    """Claims that their paper's own numbers speak against, a row each.

    What only a summary of the paper says is not the paper's.
    """
    said = (r for r in claims if r["support"] == "no" and not of_summary(r))
    return [[row] for row in {row["id"]: row for row in said}.values()]


def of_summary(row: Row) -> bool:
    """Whether it is a summary's claim, which the paper itself does not make."""
    return row["place"].startswith("summary")


def by_tier(held: Sequence[Sequence[Row]], brief: bool = False) -> tuple[list[str], list[list]]:
    """Head and body of a table: a line a claim, a column a tier with a verdict.

    A cell has a line each for verdict, effect, and δ with n; brief: with the state instead.
    """
    judged = {row["tier"] for rows in held for row in rows if row["verdict"] not in UNSAID}
    tiers = [tier for tier in TIERS if tier in judged]
    body = []
    for rows in held:
        at = {row["tier"]: _found(row, brief) for row in rows}
        body.append([named_claim(rows[0]), *(at.get(tier, "–") for tier in tiers)])
    return ["claim", *tiers], body


def named_claim(row: Row) -> str:
    """The claim with its name."""
    return f"{row['id']}: {row['claim']}"


def reason(rows: Sequence[Row]) -> str:
    """Why nothing is recorded, with the tier, the public one before others; else its reason."""
    row = min(rows, key=lambda row: (row["verdict"] != NOT_RUN, row["tier"] != "public"))
    return f"{row['tier']}: {row['reason']}" if row["verdict"] == NOT_RUN else row["reason"]


def _found(row: Row, brief: bool) -> tuple[str, ...]:
    if brief:
        return tuple(filter(None, (row["verdict"], row["told"], row["state"])))
    if row["verdict"] in UNSAID:
        return (row["verdict"],)
    parts = f"{row['parts']} parts" if row["parts"] > 1 else ""
    state = "" if row["state"] == EXPLORATORY else row["state"]
    small = "below δ" if row["small"] and GROUP_OF[row["verdict"]] == HELD else ""
    beside = _joined(state, parts, small)
    # As "δ 2", or "no loss 5", which says itself what it is.
    delta = f"δ {row['smallest']}" if row["smallest"][:1].isdigit() else row["smallest"]
    if row["verdict"] in UNDECIDED and row["mde"] and not parts:
        delta += f" (detectable: {row['mde']})"
    verdict = f"{row['verdict']} ({beside})" if beside else row["verdict"]
    sizes = _joined(delta, f"n {row['n']:,}" if row["n"] != "" else "")
    return tuple(filter(None, (verdict, row["told"], sizes)))


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


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
