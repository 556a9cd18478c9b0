"""What a record keeps of a compressor's trace: how much is left, of gold, and of the answer."""

from __future__ import annotations

from typing import Any

from ..evaluation.answer_metrics import CLOSED
from ..evaluation.metric import accepted
from ..evaluation.normalise import answer as normalise_answer
from ..evaluation.normalise import holds
from ..plain import shortened
from ..schema import Answer, Question
from .shapes import every, is_count, is_flag, maybe, row

DECISIONS = ("correct", "ambiguous", "incorrect")

_is_pair = row(is_count, is_count)
_is_answer = row(is_flag, is_flag)


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


def fault(line: dict[str, Any]) -> str:
    """What of this field is not as it must be; "" where all is, or it is not there."""
    entry = line.get("compressed")
    if entry is None or _is_entry(entry, len(line.get("gold", ()))):
        return ""
    return f"what is compressed is {shortened(repr(entry))}"


def _is_entry(entry: Any, n_gold: int) -> bool:
    needed = {"before", "after", "gold"}
    if not isinstance(entry, dict) or not needed <= set(entry):
        return False
    return (
        set(entry) <= needed | {"answer", "decision", "tokens"}
        and _is_pair([entry["before"], entry["after"]])
        and every(maybe(_is_pair), n_gold)(entry["gold"])
        and maybe(_is_answer)(entry.get("answer"))
        and maybe(_is_pair)(entry.get("tokens"))
        and entry.get("decision") in (None, *DECISIONS)
    )
