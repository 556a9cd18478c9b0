"""The papers' own numbers against their own sentences: every figure in it is computed.

What a sentence says stands with its place in the paper's `audit.yaml`; what stands against it is
computed from the printed values (`Paper.printed`), by a module for each paper. Nothing is re-run,
and no guess is made about causes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module

from ..data.titles import word
from ..study import audits
from ..study.audits import Reading, Sentence
from ..study.papers import Paper, StudyError
from .arithmetic import pick
from .table import Table

AGREES = "agrees"
IN_PART = "agrees in part"
DIFFERS = "differs"
COINCIDES = "coincides"
OPEN = "cannot be told"
OUTCOMES = (AGREES, IN_PART, DIFFERS, COINCIDES, OPEN)

AUDITED = ("drrag", "erm4", "dragin", "r2ag")
"""Papers whose numbers are audited: `audit_NAME` computes."""


@dataclass(frozen=True, kw_only=True)
class Finding(Sentence):
    """A sentence, and what the paper's numbers give; outcome: one of OUTCOMES."""

    working: str
    outcome: str

    def __post_init__(self):
        if self.outcome not in OUTCOMES:
            raise StudyError(f"the outcome {self.outcome!r} of an audit is none of {OUTCOMES}")


class Printed:
    """A paper's printed numbers by exhibit and keys; shares in percent."""

    def __init__(self, paper: Paper):
        self.paper = paper

    def rows(self, key: str, **wanted: str | Sequence[str]) -> list[Mapping[str, str]]:
        found = pick(self.paper.printed(key), **wanted)
        if not found:
            raise StudyError(f"{self.paper.name}.{key} prints nothing with {wanted}")
        return found

    def one(self, key: str, **wanted: str) -> Decimal:
        found = self.rows(key, **wanted)
        if len(found) > 1:
            raise StudyError(f"{self.paper.name}.{key} prints {len(found)} values with {wanted}")
        return Decimal(found[0]["value"])

    def mean(self, key: str, **wanted: str | Sequence[str]) -> Decimal:
        return mean(Decimal(row["value"]) for row in self.rows(key, **wanted))


Worked = tuple[str, str]
"""A working in words, and its outcome."""
Working = Callable[[Printed], Worked]


def mean(values: Iterable[Decimal]) -> Decimal:
    held = list(values)
    return sum(held, Decimal(0)) / len(held)


def near(one: Decimal, other: Decimal | str, digits: int = 2) -> bool:
    """Whether both are one number, rounded to so many digits after the point."""
    return abs(one - Decimal(other)) <= Decimal(1).scaleb(-digits) / 2


def say(value: Decimal, digits: int = 2, sign: bool = False) -> str:
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"


def many(values: Iterable[Decimal], digits: int = 2, sign: bool = True) -> str:
    return ", ".join(say(value, digits, sign) for value in values)


def data_set(name: str) -> str:
    """A data set's name in words."""
    return _SETS.get(name, word(name))


_SETS = {
    **{"iirc": "IIRC", "nq": "NQ", "nq10": "NQ-10", "nq20": "NQ-20", "nq30": "NQ-30"},
    **{"popqa": "PopQA", "ambignq": "AmbigNQ", "cambignq": "CAmbigNQ"},
}


def outcome(held: int, of: int) -> str:
    """How a sentence over `of` cells fares that is true of `held` of them."""
    return AGREES if held == of else DIFFERS if held == 0 else IN_PART


def counted(lost: Sequence[str], of: int, what: str) -> Worked:
    """A sentence over `of` cells, in words, with those of which it is not true."""
    held = of - len(lost)
    return f"{held} of {of} {what}. Not: {'; '.join(lost) or 'none'}.", outcome(held, of)


def findings(paper: Paper) -> list[Finding]:
    """All of a paper that is audited; none of another."""
    if paper.name not in AUDITED:
        return []
    workings, printed, found = _workings(paper), Printed(paper), []
    for key, sentence in audits.load(paper, workings).findings.items():
        working, outcome = workings[key](printed)
        found.append(Finding(**vars(sentence), working=working, outcome=outcome))
    return found


def readings(paper: Paper) -> list[Reading]:
    """All of a paper that is audited; none of another."""
    audited = paper.name in AUDITED
    return list(audits.load(paper, _workings(paper)).readings) if audited else []


def _workings(paper: Paper) -> Mapping[str, Working]:
    return import_module(f"{__package__}.audit_{paper.name}").WORKINGS


def of_claims(paper: Paper) -> dict[str, list[Finding]]:
    """Claim -> the findings that bear on it, whose working the ledger shows."""
    held: dict[str, list[Finding]] = {}
    for found in findings(paper):
        for claim in found.claims:
            held.setdefault(claim, []).append(found)
    return held


def table(paper: Paper) -> Table:
    """One line a finding."""
    head = ["place", "what the paper says", "from its printed values", "outcome", "claims"]
    body = []
    for found in findings(paper):
        working = f"{found.working} What would tell: {found.settles}." if found.settles else None
        body.append(
            [found.place, found.said, working or found.working, found.outcome, _ids(found.claims)]
        )
    caption = f"{paper.short}: sentences and printed values"
    return Table(head, body, caption, f"tab-{paper.name}", stacked=True)


def reading_table(paper: Paper) -> Table:
    """One line a pair of places."""
    body = [
        [one.place, one.said, one.beside, one.told, _ids(one.claims)] for one in readings(paper)
    ]
    head = ["place", "what it says", "beside", "what that says", "claims"]
    name = f"tab-{paper.name}-places"
    caption = f"{paper.short}: two places that do not go together"
    return Table(head, body, caption, name, stacked=True)


def tally(papers: Iterable[Paper]) -> Table:
    """One line a paper: how many findings of which outcome."""
    body = []
    for paper in papers:
        outcomes = [found.outcome for found in findings(paper)]
        body.append([paper.short, *(outcomes.count(word) or "" for word in OUTCOMES)])
    return Table(["paper", *OUTCOMES], body, "Findings by outcome", "tab-audit")


def _ids(claims: Sequence[str]) -> str:
    return ", ".join(claims)
