"""What a record keeps of dynamic retrieval's trace: its alarms, and what its searches found."""

from __future__ import annotations

from typing import Any

from ..plain import shortened
from ..schema import Answer, Question

_COUNTS = ("drafts", "alarms", "judged", "blank")


def of(question: Question, answer: Answer, threshold: float | None = None) -> dict[str, Any]:
    """The line's field `dynamic`, where the trace judges drafts; no text of the data.

    drafts: how many the timing rule judged. alarms: of how many it made a search.
    judged: words (tokens, where these are the units) that RIND scored up to the first
    above the threshold, or to the draft's end. blank: alarms whose first word above the
    threshold bears no meaning by RIND's own rule. Both only where RIND judged. again:
    whether the answer was asked for once more. found: for each search, in order, which
    of the line's `gold` (by place, from 0) its passages are.
    """
    events = answer.trace
    judged = [(i, e) for i, e in enumerate(events) if _is_draft(e)]
    if not judged:
        return {}
    stages = [e.get("stage") for e in events]
    alarms = [e for i, e in judged if stages[i + 1 : i + 2] == ["retrieve"]]
    gold = [g.passage_id for g in question.gold]
    made: dict[str, Any] = {
        "drafts": len(judged),
        "alarms": len(alarms),
        "again": "ask_again" in stages,
        "found": [
            [place for place, name in enumerate(gold) if name in e["found"]]
            for e in events
            if e.get("stage") == "retrieve"
        ],
    }
    if threshold is not None and all("score" in e for _, e in judged):
        over = {id(e): _first_over(e["score"], threshold) for _, e in judged}
        units = [len(e["score"]) for _, e in judged]
        made["judged"] = sum(
            n if over[id(e)] is None else over[id(e)] + 1
            for n, (_, e) in zip(units, judged, strict=True)
        )
        firsts = [(e, over[id(e)]) for e in alarms]
        made["blank"] = sum(i is not None and not e["meaning"][i] for e, i in firsts)
    return {"dynamic": made}


def fault(line: dict[str, Any]) -> str:
    """What of this field is not as it must be; "" where all is, or it is not there."""
    entry = line.get("dynamic")
    return "" if entry is None or _is_entry(entry) else f"its drafts are {shortened(repr(entry))}"


def _is_draft(event: Any) -> bool:
    """Adaptive methods decide as well, once and without a draft."""
    return event.get("stage") == "decide" and "keep" in event


def _first_over(scores: list[float], threshold: float) -> int | None:
    return next((i for i, score in enumerate(scores) if score > threshold), None)


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not {"drafts", "alarms", "again", "found"} <= set(entry):
        return False
    counts = [entry[name] for name in _COUNTS if name in entry]
    return (
        set(entry) <= {*_COUNTS, "again", "found"}
        and all(type(n) is int and n >= 0 for n in counts)
        and type(entry["again"]) is bool
        and isinstance(entry["found"], list)
        and all(map(_is_found, entry["found"]))
    )


def _is_found(places: Any) -> bool:
    return isinstance(places, list) and all(type(place) is int and place >= 0 for place in places)
