"""The claims by what was found of them, for the front page: what held, what did not, what is open.

A claim stands once: where its tiers disagree, among those of which it depends on where. The words
are those of the page's templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_repro.evaluation.verdicts import NOT_RUN, UNSAID
from rag_repro.evaluation.verdicts import OPEN as UNDECIDED
from rag_repro.publish.verdict_figure import GROUPS, group
from rag_repro.study.conditions import TIERS
from rag_repro.study.judge import EXPLORATORY

Row = Mapping[str, Any]
"""A row of the ledger."""

HELD, DIRECTION, OPEN, HOPELESS, FAILED, WEAK, NEVER, UNKNOWABLE, DEVICES = GROUPS
MIXED = "mixed"
ORDER = (HELD, DIRECTION, FAILED, MIXED, OPEN, UNKNOWABLE, NEVER)
"""The groups that the page has, in its order; of the last two no record decides a claim."""


def sort(claims: Sequence[Row]) -> dict[str, list[list[Row]]]:
    """Group -> its claims, each as its rows of the ledger, in their order."""
    by: dict[str, list[Row]] = {}
    for row in claims:
        by.setdefault(row["id"], []).append(row)
    sorted_: dict[str, list[list[Row]]] = {name: [] for name in ORDER}
    for rows in by.values():
        sorted_[_of(rows)].append(rows)
    return sorted_


def _of(rows: Sequence[Row]) -> str:
    found = {group(row["verdict"]) for row in rows}
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
    held: dict[str, list[Row]] = {}
    for row in claims:
        if row["main"]:
            held.setdefault(row["id"], []).append(row)
    judged = any(row["verdict"] not in UNSAID for rows in held.values() for row in rows)
    return list(held.values()) if judged else []


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
        at = {row["tier"]: _briefly(row) if brief else _found(row) for row in rows}
        body.append([said(rows[0]), *(at.get(tier, "–") for tier in tiers)])
    return ["claim", *tiers], body


def said(row: Row) -> str:
    """The claim with its name."""
    return f"{row['id']}: {row['claim']}"


def reason(rows: Sequence[Row]) -> str:
    """Why nothing is recorded, with the tier, the public one before others; else its reason."""
    row = min(rows, key=lambda row: (row["verdict"] != NOT_RUN, row["tier"] != "public"))
    return f"{row['tier']}: {row['reason']}" if row["verdict"] == NOT_RUN else row["reason"]


def _briefly(row: Row) -> tuple[str, ...]:
    return tuple(filter(None, (row["verdict"], row["told"], row["state"])))


def _found(row: Row) -> tuple[str, ...]:
    if row["verdict"] in UNSAID:
        return (row["verdict"],)
    parts = f"{row['parts']} parts" if row["parts"] > 1 else ""
    state = "" if row["state"] == EXPLORATORY else row["state"]
    small = "below δ" if row["small"] and group(row["verdict"]) == HELD else ""
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
