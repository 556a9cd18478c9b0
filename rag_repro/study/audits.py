"""A paper's `audit.yaml`: its sentences that its own printed values speak to, by key.

What the values say of each is computed, under the same key, by `report.audit`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..words import nearest
from .papers import Paper
from .strict import StudyError, content, listed, strict, table, tuples


@dataclass(frozen=True)
class Sentence:
    """One sentence of a paper, or one oddity of its tables.

    claims: ids of those that it bears on. settles: what would tell, where the paper cannot.
    """

    place: str
    said: str
    claims: tuple[str, ...] = ()
    settles: str = ""


@dataclass(frozen=True)
class Reading:
    """Two places of one paper that do not go together; nothing in it can be computed."""

    place: str
    said: str
    beside: str
    told: str
    claims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Audit:
    """The file: findings are the sentences by key, in the order of their table."""

    findings: Mapping[str, Sentence] = field(default_factory=dict)
    readings: tuple[Reading, ...] = ()


def load(paper: Paper, computed: Collection[str]) -> Audit:
    """The paper's file. Raises StudyError unless its findings are those that are computed."""
    where = f"{paper.name}/audit.yaml"
    given = table(content(paper.folder / "audit.yaml"), where)
    findings = {
        key: _entry(Sentence, one, paper, f"{where}, finding {key}")
        for key, one in table(given.get("findings"), f"{where}, findings").items()
    }
    for key in findings:
        if key not in computed:
            raise StudyError(f"{where}: nothing computes {key!r}{nearest(key, computed)}")
    for key in computed:
        if key not in findings:
            raise StudyError(f"{where}: the finding {key!r}, which is computed, is missing")
    readings = tuple(
        _entry(Reading, one, paper, f"{where}, reading {number}")
        for number, one in enumerate(listed(given.get("readings"), f"{where}, readings"), start=1)
    )
    return strict(Audit, {**given, "findings": findings, "readings": readings}, where)


def _entry(cls: type, given: Any, paper: Paper, where: str) -> Any:
    made = strict(cls, tuples(given, where), where)
    for name in made.claims:
        try:
            paper.claim(name)
        except StudyError as error:
            raise StudyError(f"{where}: {error}") from error
    return made
