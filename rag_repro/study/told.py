"""What a record keeps of a method's trace: decisions, judged passages, moments of search."""

from __future__ import annotations

import hashlib
from typing import Any

from ..methods.dragin.replay import VARIANTS
from ..methods.dragin.timing_check import SIGNALS
from ..plain import shortened
from ..schema import Answer, Question
from .shapes import (
    every,
    is_amount,
    is_count,
    is_flag,
    is_mark,
    is_name,
    is_number,
    is_share,
    is_text,
    maybe,
    row,
)

_is_decision = row(
    lambda went_by: went_by is None or is_text(went_by) or is_number(went_by), is_flag
)
_is_critique = row(is_name, is_share, maybe(is_mark))
_is_hop = row(is_mark, *[is_number] * len(SIGNALS))
_is_influence = row(*[is_amount] * 4, is_mark)
_are_variants = every(row(is_mark, is_count, is_text), len(VARIANTS))


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


def fault(line: dict[str, Any]) -> str:
    """What of these fields is not as it must be; "" where all is, or they are not there."""
    decided = line.get("decided")
    if decided is not None and not _is_decision(decided):
        return f"the decision is {shortened(repr(decided), 60)}"
    for entry in line.get("critique", ()):
        if not _is_critique(entry):
            return f"a passage's critique is {shortened(repr(entry), 60)}"
    for entry in line.get("timing", ()):
        if not _is_hop(entry):
            return f"a hop's timing is {shortened(repr(entry), 60)}"
    for entry in line.get("influence", ()):
        if not _is_influence(entry):
            return f"a pair's influence is {shortened(repr(entry), 60)}"
    likelihood = line.get("likelihood", [0.0])
    if not (likelihood and all(is_number(x) and x <= 0 for x in likelihood)):
        return f"the answers' likelihood is {shortened(repr(likelihood), 60)}"
    variants = line.get("variants")
    if variants is not None and not _are_variants(variants):
        return f"its variants are {shortened(repr(variants), 60)}"
    return ""


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
