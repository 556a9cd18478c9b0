"""What a compressor left, out of a record's line: how much, of what, and whether it told.

A line's `compressed` is what `study.line_fields` keeps of the trace; answers of other
methods have none, and none of these metrics.
"""

from __future__ import annotations

from collections.abc import Callable

from rag_repro.evaluation.metric import Line, described


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

    def decision(line: Line) -> float | None:
        decision = line.get("compressed", {}).get("decision")
        return None if decision is None else float(decision in decisions)

    return decision


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
    described("compression", compression),
    described("answer_kept", answer_kept),
    described("gold_kept", gold_kept()),
    described("gold_kept_static", gold_kept("static")),
    described("gold_kept_dynamic", gold_kept("dynamic")),
    described("answer_added", answer_added),
    described("empty_context", empty_context),
    described("doubted", decided("ambiguous", "incorrect")),
    described("rejected", decided("incorrect")),
)
