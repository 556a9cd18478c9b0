"""What a record keeps of an adaptive method's trace: its decision, and its view of each passage."""

from __future__ import annotations

from typing import Any

from ..plain import shortened
from ..schema import Answer, Question


def of(question: Question, answer: Answer) -> dict[str, Any]:
    """Fields of the question's line, where the trace tells them.

    decided: [what it went by, whether passages were fetched]: a popularity, the share of
    [Retrieval] (None: the reader ended at once, or was not asked), or a class's letter.
    critique: [passage, probability that it is relevant, 1 where it is gold, None where the
    question names no gold] of each passage that a reader judged, in the order of retrieval.
    """
    told: dict[str, Any] = {}
    gold = set(question.gold_ids)
    for event in answer.trace:
        match event.get("stage"):
            case "decide":
                went_by = event["value"] if "value" in event else event["probability"]
                told.setdefault("decided", [_rounded(went_by), event["retrieve"]])
            case "classify":
                told.setdefault("decided", [event["class"], event["class"] != "A"])
            case "segment":
                name = event["passage"]
                told.setdefault("critique", []).append(
                    [name, round(event["relevant"], 4), int(name in gold) if gold else None]
                )
    return told


def fault(line: dict[str, Any]) -> str:
    """What of these fields is not as it must be; "" where all is, or they are not there."""
    decided = line.get("decided")
    if decided is not None and not _is_decision(decided):
        return f"the decision is {shortened(repr(decided), 60)}"
    for entry in line.get("critique", ()):
        if not _is_critique(entry):
            return f"a passage's critique is {shortened(repr(entry), 60)}"
    return ""


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _is_decision(entry: Any) -> bool:
    if not isinstance(entry, list) or len(entry) != 2:
        return False
    went_by, fetched = entry
    known = went_by is None or isinstance(went_by, str) or _is_number(went_by)
    return known and type(fetched) is bool


def _is_critique(entry: Any) -> bool:
    if not isinstance(entry, list) or len(entry) != 3:
        return False
    name, relevant, gold = entry
    return (
        isinstance(name, str)
        and _is_number(relevant)
        and 0 <= relevant <= 1
        and (gold is None or (type(gold) is int and gold in (0, 1)))
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e300
