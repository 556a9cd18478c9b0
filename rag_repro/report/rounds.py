"""An answer of dynamic retrieval, round by round, out of its trace.

a draft -> where it breaks off, and why -> the query -> what was found -> the text so far
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_repro.methods.dragin.settings import MASKING, DynamicSettings

from ..schema import Answer

VALUES = ("entropy", "attention", "score", "probability")
BLANK = "·"  # in place of a unit that is nothing but white space


@dataclass(frozen=True)
class Shown:
    """One method's answer, under a label, with the settings that made it."""

    label: str
    answer: Answer
    settings: DynamicSettings


@dataclass
class Round:
    """A decision with what led to it and what came of it. Without `decided`: a first search.

    before, after: the answer's text.
    """

    before: str
    decided: Mapping[str, Any] | None = None
    search: Mapping[str, Any] | None = None
    after: str = ""


@dataclass(frozen=True)
class Word:
    """A unit of a draft. parted: white space stands before it. dropped: it was cut off.

    alarm: it called for the search. left_out: of the query, for FLARE doubts it.
    """

    text: str
    parted: bool
    dropped: bool
    alarm: bool
    left_out: bool
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def marks(self) -> str:
        said = {"alarm": self.alarm, "left out": self.left_out, "cut off": self.dropped}
        return ", ".join(name for name, holds in said.items() if holds)


def rounds(answer: Answer) -> list[Round]:
    """The answer's trace, a round a decision."""
    made: list[Round] = []
    text = ""
    for event in answer.trace:
        stage = event.get("stage")
        if stage == "decide" or (stage == "retrieve" and not made):
            made.append(Round(text, after=text))
        if stage == "decide":
            made[-1].decided = event
        elif stage == "retrieve":
            made[-1].search = event
        elif stage == "write":
            text += event["text"]
            made[-1].after = text
    return made


def words(event: Mapping[str, Any], settings: DynamicSettings) -> list[Word]:
    """A decision's units, in the order of the draft."""
    alarms, left_out = _marked(event, settings)
    keys = [key for key in VALUES if key in event]
    made, at, text = [], 0, event["text"]
    for i, word in enumerate(event["words"]):
        start = max(at, text.find(word, at))
        made.append(
            Word(
                word or BLANK,
                start > at,
                start >= len(event["kept"]),
                i in alarms,
                i in left_out,
                {key: event[key][i] for key in keys},
            )
        )
        at = start + len(word)
    return made


def _marked(event: Mapping[str, Any], settings: DynamicSettings) -> tuple[set[int], set[int]]:
    """The units that gave the alarm, and those that its query leaves out.

    FLARE has two thresholds: any token of the sentence up to one calls for a search, and
    those up to the other leave the query.
    """
    hits = set(event["alarm"])
    if settings.timing != "flare" or not event["sentence"]:
        return hits, set()
    least = min(event["probability"][slice(*event["sentence"])])
    up_to = settings.doubt if settings.doubt_of == "token" else least
    doubted = {i for i in range(*event["sentence"]) if event["probability"][i] <= up_to}
    return doubted, hits if settings.query in MASKING else set()


def decision(one: Round, units: Sequence[Word]) -> str:
    """What was decided on a draft, and why; units: its words."""
    if one.search is None:
        return "no alarm: the draft stands"
    alarms = ", ".join(word.text for word in units if word.alarm)
    kept = sum(not word.dropped for word in units)
    if alarms:
        why = f"alarm at {alarms}"
    elif "score" in one.decided:  # RIND's, whose released code clears such words away (D6)
        why = "alarm at a word without meaning"
    else:
        why = "a search is due"
    if not one.search["query"].strip():
        why += ", its query is blank: nothing is searched for"
    return f"{why}; {kept} of {len(units)} stay"


def rule(settings: DynamicSettings) -> str:
    """When a word gives the alarm."""
    if settings.timing == "rind":
        return f"S above {settings.threshold:g}, gives the alarm"
    if settings.timing == "flare":
        if settings.doubt_of == "token":
            return f"p up to {settings.doubt:g}, gives the alarm"
        return f"lowest p of a sentence whose mean p is up to {settings.doubt:g}: the alarm"
    return "gives the alarm"
