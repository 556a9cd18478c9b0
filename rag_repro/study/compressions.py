"""What a record keeps of a compressor's trace: how much is left, of gold, and of the answer."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from ..evaluation.answer_metrics import CLOSED
from ..evaluation.metric import accepted
from ..evaluation.normalise import answer as normalise_answer
from ..evaluation.normalise import holds
from ..schema import Answer, Question
from .shapes import EXACT, Count, Flag


class Compressed(TypedDict):
    """A line's `compressed`, as `of` says."""

    __pydantic_config__ = EXACT
    before: Count
    after: Count
    gold: list[tuple[Count, Count] | None]
    answer: NotRequired[tuple[Flag, Flag]]
    decision: NotRequired[Literal["correct", "ambiguous", "incorrect"]]
    tokens: NotRequired[tuple[Count, Count]]


class CompressionFields(TypedDict, total=False):
    """What `of` gives."""

    compressed: Compressed


def of(question: Question, answer: Answer) -> dict[str, Any]:
    """The line's field `compressed`, where the trace has such an event; no text of the data.

    before, after: characters of the passages and of what is left, white space aside.
    gold: of each of the line's `gold`, in order, [before, after]; None where it was not
    among the passages, or nobody knows what is left of it (a summary).
    answer: [whether an accepted answer stands in a passage, whether it stands in what is
    left], in whole words; not there where no answer is known or the answers are yes and no.
    decision: CRAG's. tokens: [before, after] of the compressor's own, where it has any.
    """
    event = next((e for e in answer.trace if e.get("stage") == "compress"), None)
    if event is None:
        return {}
    given, kept = event["before"], event["kept"]
    made: dict[str, Any] = {
        "before": sum(given.values()),
        "after": event["after"],
        "gold": [
            [given[name], kept[name]] if kept is not None and name in given else None
            for name in question.gold_ids
        ],
    }
    wanted = accepted(question)
    if not all(normalise_answer(a) in CLOSED for a in wanted):
        passages = [hit.passage.text for hit in answer.hits]
        made["answer"] = [
            any(holds(text, a) for text in texts for a in wanted)
            for texts in (passages, event["texts"])
        ]
    return {"compressed": made | {k: event[k] for k in ("decision", "tokens") if k in event}}
