"""Does the first alarm of an answer stand where its first error does?

Out of the `timing` of records (`methods.dragin.timing_check`): of each hop in the chain's
order whether the reader goes on wrongly there by itself, and what timing rules go by.
The chain is the gold one, so an error is not carried on to the next hop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..methods.dragin.timing_check import SIGNALS
from ..study.papers import Cell
from ..study.scores import Results
from . import missing
from .picture import Download, Note
from .table import Table
from .timing_auc import EVERY, THRESHOLDS, alarms_of, rule_named
from .values import number, share_of

PLACES = ("at it", "before it", "behind it", "none")
WRONG = 0  # place in a hop's entry; the signals follow
Line = Mapping[str, Any]


def table(
    cells: Sequence[Cell],
    results: Results,
    thresholds: Mapping[str, float] = THRESHOLDS,
    caption: str = "",
    name: str = "",
) -> Table | Note:
    """One line a rule at its own threshold, in percent of the questions with an error.

    Where the first alarm stands: at the first hop in error (95 %, the testbed's clusters
    drawn), before it, behind it, nowhere. Last: of the questions without an error, those
    with an alarm all the same.
    """
    lines = [line for c in cells for line in results.lines(c) or () if line.get("timing")]
    if not lines:
        return missing.note(cells, results, caption)
    erring = [line for line in lines if first_error(line) is not None]
    right = [line for line in lines if first_error(line) is None]
    body = []
    for rule, (signal, threshold) in _rules(thresholds).items():
        places = [place(line, signal, threshold) for line in erring]
        spared = [first_alarm(line, signal, threshold) is not None for line in right]
        told = [share_of([p == PLACES[0] for p in places], erring)]
        told += [_percent([p == wanted for p in places]) for wanted in PLACES[1:]]
        body.append([rule, *told, len(erring), _percent(spared), len(right)])
    head = ["rule", "first alarm at the first error, %", "before it, %", "behind it, %"]
    head += ["no alarm, %", "questions with an error", "alarm without error, %", "questions"]
    return Table(head, body, caption, name, Download.of(name, head, body))


def first_error(line: Line) -> int | None:
    """The first hop, from 0, at which the reader goes on wrongly; None: at none."""
    return next((i for i, hop in enumerate(line["timing"]) if hop[WRONG]), None)


def first_alarm(line: Line, signal: str | None, threshold: float) -> int | None:
    """The first hop, from 0, with an alarm; signal None: every hop has one."""
    if signal is None:
        return 0
    column = 1 + list(SIGNALS).index(signal)
    alarms = alarms_of(signal, np.array([hop[column] for hop in line["timing"]]), threshold)
    return next((i for i, alarm in enumerate(alarms) if alarm), None)


def place(line: Line, signal: str | None, threshold: float) -> str:
    """Where the first alarm stands, one of `PLACES`, of a question with an error."""
    alarm, error = first_alarm(line, signal, threshold), first_error(line)
    if alarm is None:
        return "none"
    return "at it" if alarm == error else "before it" if alarm < error else "behind it"


def _rules(thresholds: Mapping[str, float]) -> dict[str, tuple[str | None, float]]:
    named = {rule_named(signal, least): (signal, least) for signal, least in thresholds.items()}
    return {**named, EVERY: (None, 0.0)}


def _percent(held: Sequence[bool]) -> str:
    return number(100 * sum(held) / len(held), 1) if held else ""
