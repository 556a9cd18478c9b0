"""What a compressor left, out of a record's line: how much, of what, and whether it told.

A line's `compressed` is what `study.line_fields` keeps of the trace; answers of other
methods have none, and none of these metrics.
"""

from __future__ import annotations

from collections.abc import Callable

from .metric import Line, Metric, percent


def compression(line: Line) -> float | None:
    """Characters left, as a share of those given; above 1 where something was added."""
    told = line.get("compressed", {})
    return told["after"] / told["before"] if told.get("before") else None


def answer_kept(line: Line) -> float | None:
    """1 where an accepted answer that was given is still there; None where none was given."""
    given, kept = line.get("compressed", {}).get("answer", (False, False))
    return float(kept) if given else None


def answer_added(line: Line) -> float | None:
    """1 where an accepted answer stands in what is left though none was given; None where one was.

    What a summary says from memory, or makes up and hits.
    """
    told = line.get("compressed", {}).get("answer")
    return float(told[1]) if told and not told[0] else None


def empty_context(line: Line) -> float | None:
    """1 where nothing is left, so that the reader is asked without passages."""
    told = line.get("compressed")
    return float(told["after"] == 0) if told else None


def decided(*decisions: str) -> Callable[[Line], float | None]:
    """1 where CRAG's decision is one of these; None where none was made."""

    def made(line: Line) -> float | None:
        decision = line.get("compressed", {}).get("decision")
        return None if decision is None else float(decision in decisions)

    return made


def gold_kept(role: str | None = None) -> Callable[[Line], float | None]:
    """The mean share left of the gold passages that were given, or of those of a role."""

    def kept(line: Line) -> float | None:
        told = line.get("compressed", {}).get("gold", ())
        shares = [
            pair[1] / pair[0]
            for pair, (of, *_) in zip(told, line.get("gold", ()), strict=False)
            if pair is not None and pair[0] and role in (None, of)
        ]
        return sum(shares) / len(shares) if shares else None

    return kept


TABLE = (
    Metric(
        "compression",
        "Left",
        "times",
        "line",
        None,
        compression,
        "size that a compressor left, as a share of the size given",
    ),
    percent(
        "answer_kept",
        "Answer kept",
        "line",
        answer_kept,
        "an accepted answer that stood in the passages stands in what is left of them",
    ),
    percent(
        "gold_kept",
        "Gold kept",
        "line",
        gold_kept(),
        "share of the gold passages' characters that a compressor left",
    ),
    percent(
        "gold_kept_static",
        "Gold kept (static)",
        "line",
        gold_kept("static"),
        "the same of the static-relevant gold passages",
    ),
    percent(
        "gold_kept_dynamic",
        "Gold kept (dynamic)",
        "line",
        gold_kept("dynamic"),
        "the same of the dynamic-relevant gold passages: the last of a chain",
    ),
    percent(
        "answer_added",
        "Answer added",
        "line",
        answer_added,
        "an accepted answer stands in what is left, and stood in no passage",
        higher=None,
    ),
    percent(
        "empty_context",
        "Empty",
        "line",
        empty_context,
        "a compressor left nothing",
        higher=False,
    ),
    percent(
        "doubted",
        "Doubted",
        "line",
        decided("ambiguous", "incorrect"),
        "CRAG's evaluator finds no passage that reaches the upper threshold",
        higher=None,
    ),
    percent(
        "rejected",
        "Rejected",
        "line",
        decided("incorrect"),
        "CRAG's evaluator finds no passage that reaches the lower threshold",
        higher=None,
    ),
)
