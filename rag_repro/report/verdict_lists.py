"""The claims by what was found of them, for the front page: what held, what did not, what is open.

A claim stands once: where its tiers disagree, among those of which it depends on where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation.verdicts import NOT_RUN, UNSAID
from ..evaluation.verdicts import OPEN as UNDECIDED
from ..study.conditions import TIERS
from ..study.judge import EXPLORATORY
from .caveats import count, table, with_verdict
from .verdict_figure import GROUPS, group

HELD, DIRECTION, OPEN, HOPELESS, FAILED, WEAK, NEVER, UNKNOWABLE, DEVICES = GROUPS
MIXED = "mixed"

# Group -> its heading, and what it means in a sentence; {n} is its number of claims.
TITLES = {
    HELD: ("What held", "{n} held wherever records decide."),
    DIRECTION: (
        "What held only in direction",
        "{n} went the way that is claimed, by less than the smallest effect of interest.",
    ),
    FAILED: (
        "What did not hold",
        "{n} failed wherever records decide: a difference of the claimed size, or a level or an "
        "absence of difference as claimed, can be ruled out here, with these readers and corpora.",
    ),
    MIXED: (
        "What depends on where it is tried",
        "{n} held at one tier and failed at another.",
    ),
    OPEN: (
        "What is open",
        "{n} have records that do not decide: too few questions, or a reader that cannot read.",
    ),
    UNKNOWABLE: (
        "What nobody can know from here",
        "{n} are of a kind that no record of ours can decide, each for its own reason.",
    ),
    NEVER: (
        "What has not been run",
        "{n} have no records yet that could decide them, or these are from several devices.",
    ),
}


def sort(claims: Sequence[Mapping[str, Any]]) -> dict[str, list[list[Mapping[str, Any]]]]:
    """Group -> its claims, each as its rows of the ledger, in their order."""
    by: dict[str, list[Mapping[str, Any]]] = {}
    for row in claims:
        by.setdefault(row["id"], []).append(row)
    sorted_: dict[str, list[list[Mapping[str, Any]]]] = {name: [] for name in TITLES}
    for rows in by.values():
        sorted_[_of(rows)].append(rows)
    return sorted_


def _of(rows: Sequence[Mapping[str, Any]]) -> str:
    found = {group(row["verdict"]) for row in rows}
    if found <= {NEVER, UNKNOWABLE, DEVICES}:
        return UNKNOWABLE if found == {UNKNOWABLE} else NEVER
    decided = found & {HELD, DIRECTION, FAILED}
    if not decided:
        return OPEN
    if FAILED in decided:
        return FAILED if decided == {FAILED} else MIXED
    return DIRECTION if DIRECTION in decided else HELD


def distinct(held: Sequence[Sequence[Mapping[str, Any]]]) -> int:
    """How many results these claims are: those that share a contrast are one."""
    results: list[set[str]] = []
    for rows in held:
        own = {key for row in rows for key in row.get("contrasts") or [row["id"]]}
        shared = [result for result in results if result & own]
        results = [result for result in results if not result & own] + [own.union(*shared)]
    return len(results)


def counted(held: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """As "9 claims", or "9 claims (7 distinct results)" where some share a contrast."""
    different = distinct(held)
    told = f" ({count(different, 'distinct result')})" if different < len(held) else ""
    return count(len(held), "claim") + told


def text(claims: Sequence[Mapping[str, Any]]) -> str:
    """A section a group that has claims, its table folded away."""
    parts, groups = [], sort(claims)
    for name, held in groups.items():
        if held:
            title, said = TITLES[name]
            made = _reasons(held) if name in (UNKNOWABLE, NEVER) else _table(name, held)
            if len(held) == 1:
                said = said.replace("{n} have", "{n} has").replace("{n} are", "{n} is")
            parts.append(f"### {title}\n\n{said.replace('{n}', counted(held))}")
            parts.append(f"````{{dropdown}} {_spread(held)}\n{made}\n````")
    if any(groups[name] for name in TITLES if name not in (UNKNOWABLE, NEVER)):
        parts.append(NOTE)
    return "\n\n".join(parts)


def main(claims: Sequence[Mapping[str, Any]]) -> str:
    """What the papers are known for, and what became of it; empty before any of it is judged."""
    held: dict[str, list[Mapping[str, Any]]] = {}
    for row in claims:
        if row["main"]:
            held.setdefault(row["id"], []).append(row)
    if not any(with_verdict(rows) for rows in held.values()):
        return ""
    caption = (
        "What the papers are known for: the verdict, and the effect in the direction that is "
        "claimed, or the level or ratio, with its interval, of the first part that decides it"
    )
    return _lines(list(held.values()), caption, "tab-main", _briefly)


def unborne(claims: Sequence[Mapping[str, Any]]) -> str:
    """Claims that their paper's own numbers speak against, with the working; empty without one.

    What only a summary of the paper says is not the paper's.
    """
    said = (r for r in claims if r["support"] == "no" and not of_summary(r))
    held = list({row["id"]: [row] for row in said}.values())
    if not held:
        return ""
    body = [[_said(row), row["numbers"], row["working"]] for [row] in held]
    made = table(["claim", "the paper's numbers", "what they say of it"], body)
    return (
        f"### What a paper's own numbers speak against\n\n{count(len(held), 'claim')}, whatever is "
        f"found here.\n\n````{{dropdown}} {_spread(held)}\n{made}\n````"
    )


def of_summary(row: Mapping[str, Any]) -> bool:
    """Whether it is a summary's claim, which the paper itself does not make."""
    return row["place"].startswith("summary")


NOTE = """\
An effect in points is a difference of two percentages, in the direction that the paper claims.
Where a level or a ratio is judged, it is that itself, or how far it lies from what would refute
the claim; one in percent that lies wholly on the other side is told from there, *against the
claim*. δ is the smallest effect of interest; *margin* stands for a claim of no difference, *no
loss* for one that a difference in the other direction alone refutes. *Below δ* stands where a
mechanism holds and all that the interval allows is smaller than that. A claim of several parts, as
one of every data set, holds where each part holds and fails where one fails; one that
says *sometimes* holds where it does on some data set. The effect is that of the first part whose
verdict is that of the whole, pooled over its cells, with the number of cells in which it is clear
by itself; where what is open is a part that was not run, it is that of a decided one."""


def _spread(held: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """How many of which paper: "DR-RAG 9, ERM4 2"."""
    shorts = [rows[0]["paper"] for rows in held]
    return ", ".join(f"{short} {shorts.count(short)}" for short in dict.fromkeys(shorts))


def _table(name: str, held: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    return _lines(held, TITLES[name][0], f"tab-{name.replace(' ', '-')}", _found)


def _lines(held: Sequence[Sequence[Mapping[str, Any]]], caption: str, label: str, cell) -> str:
    """A line a claim, a column a tier that has a verdict of any of these."""
    tiers = [t for t in TIERS if any(r["tier"] == t for rows in held for r in with_verdict(rows))]
    body = []
    for rows in held:
        at = {row["tier"]: cell(row) for row in rows}
        body.append([_said(rows[0]), *(at.get(tier, "–") for tier in tiers)])
    return table(["claim", *tiers], body, caption, label, "rr-claims")


def _found(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines of a cell: verdict, effect, δ with n."""
    if row["verdict"] in UNSAID:
        return (row["verdict"],)
    beside = [_delta(row), f"n {row['n']:,}" if row["n"] != "" else ""]
    return tuple(filter(None, (_word(row), row["told"], ", ".join(filter(None, beside)))))


def _briefly(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(filter(None, (row["verdict"], row["told"], row["state"])))


def _reasons(held: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    body = [[_said(rows[0]), _reason(rows)] for rows in held]
    return table(["claim", "why"], body)


def _reason(rows: Sequence[Mapping[str, Any]]) -> str:
    """Why nothing is recorded, with the tier, the public one before others; else its reason."""
    by_tier = sorted(rows, key=lambda row: row["tier"] != "public")
    if unrun := next((row for row in by_tier if row["verdict"] == NOT_RUN), None):
        return f"{unrun['tier']}: {unrun['reason']}"
    return by_tier[0]["reason"]


def _said(row: Mapping[str, Any]) -> str:
    return f"{row['id']}: {row['claim']}"


def _parts(row: Mapping[str, Any]) -> str:
    """How many parts the verdict is made of, as "9 parts"; empty where it is one."""
    return f"{row['parts']} parts" if row["parts"] > 1 else ""


def _word(row: Mapping[str, Any]) -> str:
    state = "" if row["state"] == EXPLORATORY else row["state"]
    beside = [
        state,
        _parts(row),
        "below δ" if row["small"] and group(row["verdict"]) == HELD else "",
    ]
    told = ", ".join(filter(None, beside))
    return f"{row['verdict']} ({told})" if told else row["verdict"]


def _delta(row: Mapping[str, Any]) -> str:
    """As "δ 2", or "no loss 5", which says itself what it is."""
    delta = f"δ {row['smallest']}" if row["smallest"][:1].isdigit() else row["smallest"]
    seen = row["verdict"] in UNDECIDED and row["mde"] and not _parts(row)
    return f"{delta} (detectable: {row['mde']})" if seen else delta
