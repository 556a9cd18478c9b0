"""What a record keeps of a check of query rules: what each would have found, and no words."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from ..methods.dragin.query_check import RULES
from ..schema import Answer, Question
from .shapes import Count

# Sphinx reads no star in an annotation.
_MOMENT = (Count, Count, Count, *(list[Count],) * len(RULES))


class QueryFields(TypedDict, total=False):
    """What `of` gives."""

    queries: list[tuple[_MOMENT]]


def of(question: Question, answer: Answer) -> dict[str, Any]:
    """The line's field `queries`, where the trace is of such a check.

    Of each moment, in order: [words that QFS takes, of how many up to the alarm's with it, in
    which of the draft's sentences that is, then of each of `methods.dragin.query_check.RULES`
    which of the line's `gold` (by place, from 0) its search finds]. Not there without an alarm.
    """
    gold = [g.passage_id for g in question.gold]
    told = [
        [
            event["taken"],
            event["among"],
            event["sentence"],
            *([i for i, name in enumerate(gold) if name in event["found"][rule]] for rule in RULES),
        ]
        for event in answer.trace
        if event.get("stage") == "queries"
    ]
    return {"queries": told} if told else {}
