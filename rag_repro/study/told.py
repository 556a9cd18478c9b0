"""What a record keeps of a method's trace: decisions, judged passages, moments of search."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from annotated_types import Le, Len, MinLen
from typing_extensions import TypedDict

from ..methods.dragin.replay import VARIANTS
from ..methods.dragin.timing_check import SIGNALS
from ..schema import Answer, Question
from .shapes import Amount, Count, Flag, Mark, Name, Number, Share, Text

Variants = Annotated[list[tuple[Mark, Count, Text]], Len(len(VARIANTS), len(VARIANTS))]


# Sphinx reads no star in an annotation.
_HOP = (Mark, *(Number,) * len(SIGNALS))


class TraceFields(TypedDict, total=False):
    """What `of` gives."""

    decided: tuple[Number | Text | None, Flag]
    critique: list[tuple[Name, Share, Mark | None]]
    timing: list[tuple[_HOP]]
    influence: list[tuple[Amount, Amount, Amount, Amount, Mark]]
    likelihood: Annotated[list[Annotated[Number, Le(0)]], MinLen(1)]
    variants: Variants


def of(question: Question, answer: Answer) -> dict[str, Any]:
    """Fields of the question's line, where the trace tells them.

    decided: [what it went by, whether passages were fetched]: a popularity, the share of
    [Retrieval] (None: the reader ended at once, or was not asked), or a class's letter.
    critique: [passage, probability that it is relevant, 1 where it is gold, None where the
    question names no gold] of each passage that a reader, or CRAG's evaluator, judged, in the
    order of retrieval.
    timing: of each hop at which timing rules were checked, [1 where the reader's own next
    answer is wrong, then its signals, as `methods.dragin.timing_check.SIGNALS` has them].
    influence: of each pair of words that was masked [a_max of the one with more, of the other, how
    far what stands behind moved without each, 1 where the one with more stands first].
    likelihood: log p of each accepted answer that was put behind the prompt, in nats.
    variants: of each of `methods.dragin.replay.VARIANTS` [1 where it triggered, tokens that
    stay, the first letters of its query's hash, "" without one], to be compared.
    """
    told: dict[str, Any] = {}
    gold = set(question.gold_ids)
    for event in answer.trace:
        match event.get("stage"):
            case "decide" if "retrieve" in event:  # one of a draft has no such decision
                went_by = event["value"] if "value" in event else event["probability"]
                told.setdefault("decided", [_rounded(went_by), event["retrieve"]])
            case "classify":
                told.setdefault("decided", [event["class"], event["class"] != "A"])
            case "segment" | "evaluate":
                name = event["passage"]
                told.setdefault("critique", []).append(
                    [name, round(event["relevant"], 4), int(name in gold) if gold else None]
                )
            case "hop":
                told.setdefault("timing", []).append(
                    [int(event["wrong"]), *(event["signals"][name] for name in SIGNALS)]
                )
            case "influence":
                told.setdefault("influence", []).append(
                    [*event["a_max"], *event["moved"], int(event["first"])]
                )
            case "likelihood":
                told["likelihood"] = [round(nats, 4) for nats in event["nats"]]
            case "variant":
                query = hashlib.sha256(event["query"].encode()).hexdigest()[:8]
                told.setdefault("variants", []).append(
                    [int(event["triggered"]), event["keep"], query if event["query"] else ""]
                )
    return told


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
