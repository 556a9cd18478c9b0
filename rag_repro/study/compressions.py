"""What a record keeps of a compressor's trace: how much is left, of gold, and of the answer."""

from __future__ import annotations

from typing import Any

from ..evaluation.answer_metrics import CLOSED
from ..evaluation.metric import accepted
from ..evaluation.normalise import answer as normalise_answer
from ..evaluation.normalise import holds
from ..plain import shortened
from ..schema import Answer, Question

DECISIONS = ("correct", "ambiguous", "incorrect")


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
    answer, tokens, gold = entry.get("answer"), entry.get("tokens"), entry["gold"]
    return (
        set(entry) <= needed | {"answer", "decision", "tokens"}
        and all(_is_count(entry[name]) for name in ("before", "after"))
        and isinstance(gold, list)
        and len(gold) == n_gold
        and all(pair is None or _is_pair(pair) for pair in gold)
        and (answer is None or (_is_two(answer) and all(type(a) is bool for a in answer)))
        and (tokens is None or _is_pair(tokens))
        and entry.get("decision") in (None, *DECISIONS)
    )


def _is_two(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2


def _is_pair(entry: Any) -> bool:
    return _is_two(entry) and all(map(_is_count, entry))


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
