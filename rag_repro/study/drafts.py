"""What a record keeps of dynamic retrieval's trace: its alarms, and what its searches found."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NotRequired

from typing_extensions import TypedDict

from ..methods.dragin.settings import FACTORS
from ..schema import Answer, Question
from .shapes import EXACT, Amount, Count, Flag

_OWN = {"decide", "retrieve", "write", "ask_again"}
_OF_OTHERS = {"beside", "popularity"}  # in a search of DR-RAG's or ERM4's


class Dynamic(TypedDict):
    """A line's `dynamic`, as `of` says."""

    __pydantic_config__ = EXACT
    drafts: Count
    alarms: Count
    again: Flag
    found: list[list[Count]]
    judged: NotRequired[Count]
    blank: NotRequired[Count]
    unmeant: NotRequired[Count]
    taken: NotRequired[list[tuple[Amount, Amount]]]
    signals: NotRequired[list[tuple[(Amount,) * len(FACTORS)]]]


class DraftFields(TypedDict, total=False):
    """What `of` gives."""

    dynamic: Dynamic


def of(
    question: Question, answer: Answer, threshold: float | None = None, signals: bool = False
) -> dict[str, Any]:
    """The line's field `dynamic`, where the trace judges drafts; no text of the data.

    drafts: how many the timing rule judged (none that is empty: the reader ended at once).
    alarms: of how many it made a search.
    judged: words (tokens, where these are the units) that RIND scored up to the one that
    gave the alarm, or to the draft's end. unmeant: alarms with no word above the threshold that
    bears meaning by RIND's own rule (older records have "blank": whose first such word bears
    none). Both only where RIND judged. signals: where asked for, of each
    word that could give an alarm, up to the one that did, what `FACTORS` says of it. again:
    whether the answer was asked for once more. found: for each search, in order, which
    of the line's `gold` (by place, from 0) its passages are. taken: of QFS's queries, in
    order, [words taken, words up to the alarm's with it].
    """
    # Of what is composed with it the events lie between a decision and its search.
    events = [e for e in answer.trace if e.get("stage") in _OWN and not _OF_OTHERS & e.keys()]
    judged = [(i, e) for i, e in enumerate(events) if _is_draft(e)]
    if not judged:
        return {}
    stages = [e.get("stage") for e in events]
    alarms = [e for i, e in judged if stages[i + 1 : i + 2] == ["retrieve"]]
    gold = [g.passage_id for g in question.gold]
    made: dict[str, Any] = {
        "drafts": sum(bool(e["text"]) for _, e in judged),
        "alarms": len(alarms),
        "again": "ask_again" in stages,
        "found": [
            [place for place, name in enumerate(gold) if name in e["found"]]
            for e in events
            if e.get("stage") == "retrieve"
        ],
    }
    chosen = [[len(e["taken"]), len(e["context"])] for e in events if "taken" in e]
    if chosen:
        made["taken"] = chosen
    scores = [e["score"] for _, e in judged if "score" in e]
    if threshold is not None and scores:
        firsts = [(e, _first_over(e, threshold)) for e in alarms]
        unread = sum(len(e["score"]) - i - 1 for e, i in firsts if i is not None)
        made["judged"] = sum(map(len, scores)) - unread
        # Where meaning removes words behind the alarm, none may be left.
        made["unmeant"] = sum(not e["hits"] for e in alarms)
    if signals and scores:
        made["signals"] = [
            [e[name][i] for name in FACTORS]
            for place, e in judged
            if "score" in e
            for i in _could_alarm(e, _behind_a_search(stages[:place]))
        ]
    return {"dynamic": made}


def _is_draft(event: Any) -> bool:
    """Adaptive methods decide as well, once and without a draft."""
    return event.get("stage") == "decide" and "keep" in event


def _first_over(event: Any, threshold: float) -> int | None:
    """The word that gave a draft's alarm: the first above the threshold that was cut off.

    One that stays was settled: passages had just been fetched for it.
    """
    kept = _letters(event["kept"])
    ends = accumulate(map(_letters, event["words"]))
    over = [
        (end <= kept, i)
        for i, (score, end) in enumerate(zip(event["score"], ends, strict=True))
        if score > threshold
    ]
    return min(over)[1] if over else None


def _could_alarm(event: Any, fresh: bool) -> range:
    """A draft's words, by number, up to the alarm; without the first, where it is settled."""
    last = event["alarm"][0] + 1 if event["alarm"] else len(event["score"])
    return range(int(fresh), last)


def _behind_a_search(stages: list[Any]) -> bool:
    """Whether a draft was written for passages that an alarm had fetched."""
    told = [stage for stage in stages if stage in ("decide", "retrieve")]
    return told[-2:] == ["decide", "retrieve"]


def _letters(text: str) -> int:
    """How many characters of it are no white space, which a trace's words have lost."""
    return len("".join(text.split()))
