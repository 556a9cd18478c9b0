"""A paper's sentences against its own printed values, as its `audit.yaml` says.

For each sentence: the cells that it speaks of, the printed values that are read in each, and when
it is true of a cell. Expressions and texts are Jinja's, so every number of a finding is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from itertools import chain, product
from statistics import mean
from typing import Any

from jinja2 import Environment, StrictUndefined, TemplateError

from rag_repro.data.titles import word
from rag_repro.study.papers import Paper
from rag_repro.study.printed import has, sizes
from rag_repro.study.yaml_files import StudyError, build, content

AGREES = "agrees"
IN_PART = "agrees in part"
DIFFERS = "differs"
COINCIDES = "coincides"
OPEN = "cannot be told"
OUTCOMES = (AGREES, IN_PART, DIFFERS, COINCIDES, OPEN)


@dataclass(frozen=True)
class Sentence:
    """One sentence of a paper, or one oddity of its tables, and how it is computed.

    claims: ids of those that it bears on. settles: what would tell, where the paper cannot.
    cells: blocks of keys and their values, each the product of its own; with `from`, the rows of
    that printed table. over: keys by which all blocks are repeated. where: which cells count.
    values: name -> expression over the cell's keys and the values before it. holds: whether the
    sentence is true of a cell. item: a cell in words. text: the working; it sees `rows`, `odd`
    (those that do not hold), `right` (how many do), `n`, and each value as the list of all cells'
    or, where there are no cells, by itself. outcome: an expression; left out, by `right` and `n`.
    """

    place: str
    said: str
    text: str
    claims: tuple[str, ...] = ()
    settles: str = ""
    over: Mapping[str, Any] = field(default_factory=dict)
    cells: tuple[Mapping[str, Any], ...] = ()
    where: str = "true"
    values: Mapping[str, str] = field(default_factory=dict)
    holds: str = "true"
    item: str = ""
    outcome: str = "outcome(right, n)"


@dataclass(frozen=True)
class Finding:
    """What a paper's numbers give of a sentence, in words; outcome: one of OUTCOMES."""

    sentence: Sentence
    working: str
    outcome: str

    def __post_init__(self):
        if self.outcome not in OUTCOMES:
            raise StudyError(f"the outcome {self.outcome!r} is none of {OUTCOMES}")


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
    """The file. findings: the sentences by key, in their order. names: what keys' values are
    called, of those that have a name of their own here."""

    findings: Mapping[str, Sentence] = field(default_factory=dict)
    readings: tuple[Reading, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


def load(paper: Paper) -> Audit:
    """The paper's file, empty where there is none; StudyError names the place of what is wrong."""
    path, where = paper.folder / "audit.yaml", f"{paper.name}/audit.yaml"
    if not path.is_file():
        return Audit()
    audit = build(Audit, content(path), where)
    places = {f"finding {key}": one for key, one in audit.findings.items()}
    places |= {f"reading {number}": one for number, one in enumerate(audit.readings, start=1)}
    for place, name in ((place, name) for place, one in places.items() for name in one.claims):
        try:
            paper.claim(name)
        except StudyError as error:
            raise StudyError(f"{where}, {place}: {error}") from error
    return audit


def findings(paper: Paper) -> list[Finding]:
    """All of a paper, in the order of its file; StudyError tells which cannot be computed."""
    audit, computed = load(paper), []
    for key, sentence in audit.findings.items():
        try:
            computed.append(Finding(sentence, *_work(paper, sentence, audit.names)))
        except (StudyError, TemplateError, TypeError, ArithmeticError) as error:
            raise StudyError(f"{paper.name}/audit.yaml, finding {key}: {error}") from error
    return computed


def claim_findings(paper: Paper) -> dict[str, list[Finding]]:
    """Claim -> the findings that bear on it, whose working the ledger shows."""
    by_claim: dict[str, list[Finding]] = {}
    for finding in findings(paper):
        for claim in finding.sentence.claims:
            by_claim.setdefault(claim, []).append(finding)
    return by_claim


# ------------------------------------------------------------------ computing a finding


def _work(paper: Paper, one: Sentence, names: Mapping[str, str]) -> tuple[str, str]:
    """The working in words, and its outcome."""
    rows = list(_rows(paper, one, names))
    odd = [row for row in rows if not row["holds"]]
    scope = _readers(paper, {}, names)
    scope |= {"rows": rows, "odd": odd, "n": len(rows), "right": len(rows) - len(odd)}
    for name in one.values:
        scope[name] = [row[name] for row in rows] if one.cells else rows[0][name]
    return _template(one.text).render(scope), _expression(one.outcome)(**scope)


def _rows(paper: Paper, one: Sentence, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Each cell that counts: its keys, its values by name, `holds` and `item`."""
    blocks = [_block(paper, block) for block in one.cells or ({},)]
    for outer, inner in product(_product(one.over), chain(*blocks)):
        row = outer | inner
        scope = _readers(paper, dict(row), names)
        if _expression(one.where)(**scope, **row):
            for name, expression in one.values.items():
                row[name] = _expression(expression)(**scope, **row)
            row["holds"] = bool(_expression(one.holds)(**scope, **row))
            yield row | {"item": _template(one.item).render(**scope, **row)}


def _block(paper: Paper, block: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    if "from" not in block:
        return _product(block)
    keys = {k: v for k, v in block.items() if k != "from"}
    return [
        {k: v for k, v in row.items() if k not in ("value", "note")}
        for row in paper.printed(block["from"])
        if has(row, keys)
    ]


def _product(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    values = [one if isinstance(one, list | tuple) else [one] for one in block.values()]
    return (dict(zip(block, each, strict=True)) for each in product(*values))


def _readers(paper: Paper, cell: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """What reads printed numbers in a cell; shares in percent.

    Each takes a table and keys. A key of the cell that the table has counts as given, unless it is
    named; a key may have several values.
    """

    def picked(table: str, **keys: Any) -> list[Mapping[str, str]]:
        rows = paper.printed(table)
        wanted = {k: v for k, v in cell.items() if rows and k in rows[0]} | keys
        return [row for row in rows if has(row, wanted)]

    def values(table: str, **keys: Any) -> list[Decimal]:
        if not (rows := picked(table, **keys)):
            raise StudyError(f"{table} prints nothing with {cell | keys}")
        return [Decimal(row["value"]) for row in rows]

    def value(table: str, **keys: Any) -> Decimal:
        if len(found := values(table, **keys)) > 1:
            raise StudyError(f"{table} prints {len(found)} values with {cell | keys}")
        return found[0]

    return {
        "value": value,
        "values": values,
        "has": lambda table, **keys: bool(picked(table, **keys)),
        "highest": lambda *at, **keys: max(picked(*at, **keys), key=lambda r: Decimal(r["value"])),
        "name": lambda key: names.get(key, word(key)),
    }


# ------------------------------------------------------------------ what expressions may use


def near(value: Decimal | Sequence[Decimal], other: Decimal | str, digits: int = 2) -> bool:
    """Whether the value, or one of several, is the other, rounded to so many digits."""
    several = [value] if isinstance(value, Decimal) else value
    return any(abs(one - Decimal(other)) <= Decimal(1).scaleb(-digits) / 2 for one in several)


def points(value: Decimal | Iterable[Decimal], digits: int = 2, sign: bool = False) -> str:
    """A number, or several behind commas."""
    several = [value] if isinstance(value, Decimal) else value
    return ", ".join(f"{one:{'+' if sign else ''}.{digits}f}" for one in several)


def items(rows: Iterable[Mapping[str, Any]], between: str = "; ", none: str = "none") -> str:
    """Cells in words."""
    return between.join(row["item"] for row in rows) or none


def outcome(right: int, n: int) -> str:
    """How a sentence over n cells fares that is true of `right` of them."""
    return AGREES if right == n else DIFFERS if right == 0 else IN_PART


_ENVIRONMENT = Environment(undefined=StrictUndefined, autoescape=False)
_ENVIRONMENT.filters.update(mean=mean, points=points, items=items)
_OUTCOMES = zip(("agrees", "in_part", "differs", "coincides", "open"), OUTCOMES, strict=True)
_ENVIRONMENT.globals.update(_OUTCOMES, near=near, outcome=outcome, sizes=sizes)
_template = cache(_ENVIRONMENT.from_string)


@cache
def _expression(text: str) -> Any:
    return _ENVIRONMENT.compile_expression(text, undefined_to_none=False)
