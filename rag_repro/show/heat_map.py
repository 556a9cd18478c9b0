"""The token heat map of dynamic retrieval: each draft shaded, its alarm, its query, what came.

HTML without a script: what a colour says stands as well in the word's `title`, and in a
table below. One colour a quantity, mixed with the page's ground, so that the words can be
read in light and in dark mode; alarms, cuts and words left out have signs of their own. A trace
is shown round by round: a draft, where it breaks off and why, the query, what was found, the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_repro.data import is_made_here
from rag_repro.evaluation import metrics
from rag_repro.methods.dragin.dynamic_settings import MASKING, DynamicSettings
from rag_repro.schema import Answer, Question
from rag_repro.show import missing
from rag_repro.show.chapter import Chapter
from rag_repro.show.escape import html, one_line
from rag_repro.show.picture import Note
from rag_repro.show.table import Table
from rag_repro.study import again
from rag_repro.study.papers import Cell

DARKEST = 0.5
"""The part of the colour where a value is the highest; a test holds words readable on it."""
STEPS = (0, 0.25, 0.5, 0.75, 1)
ALARM, CUT = "▸", "│"
NOTHING = "(nothing)"
BLANK = "·"  # in place of a unit that is nothing but white space


@dataclass(frozen=True)
class Quantity:
    """What words are shaded by. colour: red, green, blue, after Okabe and Ito's palette.

    falls: 1 is the lightest, 0 the darkest; else 0 is the lightest, the highest the darkest.
    """

    key: str
    meaning: str
    colour: tuple[int, int, int]
    falls: bool = False

    def level(self, value: float, top: float) -> float:
        """How dark, from 0 to 1."""
        share = 1 - value if self.falls else value / top if top else 0.0
        return min(1.0, max(0.0, share))

    def style(self, level: float) -> str:
        return f"background:rgba({','.join(map(str, self.colour))},{DARKEST * level:.3f})"

    def value(self, step: float, top: float) -> float:
        """What is as dark as that step of the scale."""
        return 1 - step if self.falls else step * top


QUANTITIES = (
    Quantity("entropy", "entropy H, in nats", (213, 94, 0)),
    Quantity("attention", "attention a, what later words give it", (0, 114, 178)),
    Quantity("score", "score S, their product where a word has meaning", (0, 158, 115)),
    Quantity("probability", "probability p of the token", (170, 68, 153), True),
)


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


def decision_words(event: Mapping[str, Any], settings: DynamicSettings) -> list[Word]:
    """A decision's units, in the order of the draft."""
    alarms, left_out = _marked(event, settings)
    keys = [q.key for q in QUANTITIES if q.key in event]
    made, at, text = [], 0, event["text"]
    for i, word in enumerate(event["words"]):
        start = max(at, text.find(word, at))
        values, dropped = {key: event[key][i] for key in keys}, start >= len(event["kept"])
        made.append(Word(word or BLANK, start > at, dropped, i in alarms, i in left_out, values))
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


def heat_map(
    chapter: Chapter, cells: Mapping[str, Cell], caption: str = "", name: str = ""
) -> HeatMap | Note:
    """One question by methods of dynamic retrieval, each under its label; the first is shown.

    Of the questions that all have recorded the first that shows most of what there is to
    see: the first method searches at an alarm, its answer is right, those of the others are
    wrong, and it writes as few tokens as any such: a reader that is lost repeats itself. So it
    illustrates and proves nothing. Traces are in no record: the question is
    asked again now, of readers and indexes that must be here. Texts of public data sets
    are not shown.
    """
    conditions = [cell.condition for cell in cells.values()]
    if not all(is_made_here(condition.dataset) for condition in conditions):
        return Note("Texts of public data sets are not shown here.")
    recorded = [chapter.results.lines(cell) for cell in cells.values()]
    if not cells or None in recorded:
        return missing.note(list(cells.values()), chapter.results, caption)
    chosen = choose(recorded)
    if chosen is None:
        return Note("No question has been answered by all of these methods.")
    if unready := [cell for cell in cells.values() if chapter.workshop.lacks(cell.condition)]:
        return missing.of_cells(unready).note
    dataset = chapter.workshop.dataset(conditions[0].dataset, conditions[0].split)
    question = dataset.by_id[chosen]
    answers = again.answered([(condition, question) for condition in conditions], chapter.workshop)
    shown = [
        Shown(label, answer, condition.configured)
        for label, answer, condition in zip(cells, answers, conditions, strict=True)
    ]
    titles = {name: passage.title for name, passage in dataset.corpus.by_id.items()}
    return HeatMap(question, shown, titles, caption, name)


def choose(recorded: Sequence[Sequence[Mapping[str, Any]]]) -> str | None:
    """The id of the question to show, from the methods' lines; None: none in common."""
    first, *others = recorded
    by_id = [{line["id"]: line for line in lines} for lines in others]
    common = [line for line in first if all(line["id"] in lines for lines in by_id)]

    def shows(line: Mapping[str, Any]) -> tuple[bool, bool, bool, float]:
        alarms = bool(metrics.of_line("alarms", line))
        right = bool(metrics.of_line("em", line))
        alone = not any(metrics.of_line("em", lines[line["id"]]) for lines in by_id)
        return alarms, alarms and right, alone, -(metrics.of_line("new_tokens", line) or 0)

    # Of equals `max` takes the first.
    return max(common, key=shows)["id"] if common else None


@dataclass(frozen=True, repr=False)
class HeatMap:
    """What a page shows of one question's answers, side by side where there is room.

    titles: of passages by id; those of `question.gold_ids` are marked.
    """

    question: Question
    shown: Sequence[Shown]
    titles: Mapping[str, str]
    caption: str = ""
    name: str = ""

    def __repr__(self) -> str:
        counts = ", ".join(f"{s.label}: {len(_drafts(s))} drafts" for s in self.shown)
        return f"HeatMap: {one_line(self.question.text)} ({counts})"

    def _repr_html_(self) -> str:
        parts, shared = map(self._part, self.shown), {"decision": decision, "steps": STEPS}
        signs = {"alarm": ALARM, "cut": CUT, "nothing": NOTHING}
        return html("heat_map", heat=self, parts=list(parts), **shared, **signs)

    def _part(self, shown: Shown) -> dict[str, Any]:
        """What the page shows of one method's answer; table: its figure's values."""
        drafts, number, made = _drafts(shown), 0, []
        for one in rounds(shown.answer):
            number += one.decided is not None
            made.append(
                (number, one, decision_words(one.decided, shown.settings) if one.decided else [])
            )
        held = [q for q in QUANTITIES if any(q.key in event for event in drafts)]
        body = [
            [number, word.text, *(f"{word.values[q.key]:.3f}" for q in held), word.marks]
            for number, one, units in made
            if one.decided is not None
            for word in units
        ]
        masks = shown.settings.timing == "flare" and shown.settings.query in MASKING
        return {
            "label": shown.label,
            "quantities": held,
            # The highest value of each in all drafts of the answer.
            "tops": {
                q.key: max([0.0, *(v for e in drafts for v in e.get(q.key, ()))]) for q in held
            },
            "rule": rule(shown.settings),
            "mask": shown.settings.mask if masks else None,
            "rounds": made,
            "asked_again": [e["text"] for e in shown.answer.trace if e.get("stage") == "ask_again"],
            "answer": shown.answer.prediction or "",
            # No caption of its own: the book numbers captions, and this is the figure's.
            "table": Table(["round", "word", *(q.key for q in held), "mark"], body)
            if body
            else None,
        }


def _drafts(shown: Shown) -> list[Mapping[str, Any]]:
    return [one.decided for one in rounds(shown.answer) if one.decided is not None]
