"""The token heat map of dynamic retrieval: each draft shaded, its alarm, its query, what came.

HTML without a script: what a colour says stands as well in the word's `title`, and in a
table below. One colour a quantity, mixed with the page's ground, so that the words can be
read in light and in dark mode; alarms, cuts and words left out have signs of their own. A trace
is shown round by round: a draft, where it breaks off and why, the query, what was found, the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_repro.data import is_made_here
from rag_repro.evaluation import metrics
from rag_repro.methods.dragin.settings import MASKING, DynamicSettings
from rag_repro.schema import Answer, Question
from rag_repro.show import missing
from rag_repro.show.chapter import Chapter
from rag_repro.show.escape import NO_FORMULAS, as_html, one_line
from rag_repro.show.picture import Note, id_of
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

    def scale(self, top: float) -> str:
        """HTML: five patches from the lightest to the darkest, each with its value."""
        values = [1 - step if self.falls else step * top for step in STEPS]
        patches = (
            f'<span style="{self.style(step)}">{value:.3f}</span>'
            for step, value in zip(STEPS, values, strict=True)
        )
        return f'<span class="rr-heat-scale">{"".join(patches)}</span>'


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


def words(event: Mapping[str, Any], settings: DynamicSettings) -> list[Word]:
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
        return missing.note_of_cells(unready, caption)
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
        accepted = " or ".join(self.question.answers)
        head = _list([("question", as_html(self.question.text)), ("accepted", as_html(accepted))])
        parts = "".join(map(self._part, self.shown))
        caption = f"<figcaption>{as_html(self.caption)}</figcaption>" if self.caption else ""
        return (
            f'<figure class="rr-figure"{id_of(self.name)}><div class="rr-heat {NO_FORMULAS}">{head}'
            f'<div class="rr-heat-parts">{parts}</div>{self._numbers()}</div>{caption}</figure>'
        )

    def _part(self, shown: Shown) -> str:
        tops = {  # the highest value of each quantity in all drafts of the answer
            q.key: max(
                [0.0, *(value for event in _drafts(shown) for value in event.get(q.key, ()))]
            )
            for q in QUANTITIES
        }
        made = [f'<p class="rr-heat-label">{as_html(shown.label)}</p>{_legend(shown, tops)}']
        number = 0
        for one in rounds(shown.answer):
            number += one.decided is not None
            label = f"round {number}" if one.decided else "before anything is written"
            made.append(f'<p class="rr-heat-round">{label}</p>')
            made.append(_list(self._rows(one, shown, tops)))
        asked = [e["text"] for e in shown.answer.trace if e.get("stage") == "ask_again"]
        rows = [("asked again", _text(text)) for text in asked]
        rows.append(("answer", _text(shown.answer.prediction or "")))
        return f'<div class="rr-heat-part">{"".join(made)}{_list(rows)}</div>'

    def _rows(
        self, one: Round, shown: Shown, tops: Mapping[str, float]
    ) -> Iterator[tuple[str, str]]:
        """What a round shows: (label, HTML)."""
        if one.decided is not None:
            yield "text before", _text(one.before)
            units = words(one.decided, shown.settings)
            for quantity in QUANTITIES:
                if quantity.key in one.decided:
                    yield quantity.key, _line(units, quantity, tops[quantity.key])
            yield "decision", as_html(decision(one, units))
        if one.search is not None:
            if "context" in one.search:
                yield "QFS takes", _taken(one.search)
            yield "query", _text(one.search["query"])
            found = "".join(f"<li>{self._title(name)}</li>" for name in one.search["found"])
            yield "found", f"<ol>{found}</ol>" if found else NOTHING
        if one.decided is not None:
            yield "text after", _text(one.after)

    def _title(self, name: str) -> str:
        gold = " <strong>(gold)</strong>" if name in self.question.gold_ids else ""
        return as_html(self.titles.get(name, name)) + gold

    def _numbers(self) -> str:
        """The figure's values as a table a method, folded."""
        made = []
        for shown in self.shown:
            drafts = _drafts(shown)
            keys = [q.key for q in QUANTITIES if any(q.key in event for event in drafts)]
            body = [
                [number, word.text, *(f"{word.values[key]:.3f}" for key in keys), word.marks]
                for number, event in enumerate(drafts, start=1)
                for word in words(event, shown.settings)
            ]
            if body:  # no caption of its own: the book numbers captions, and this is the figure's
                label = f'<p class="rr-heat-label">{as_html(shown.label)}</p>'
                made.append(label + Table(["round", "word", *keys, "mark"], body)._repr_html_())
        told = f"<summary>The same values as a table</summary>{''.join(made)}"
        return f"<details>{told}</details>" if made else ""


def _text(text: str) -> str:
    return as_html(text.strip() or NOTHING)


def _drafts(shown: Shown) -> list[Mapping[str, Any]]:
    return [one.decided for one in rounds(shown.answer) if one.decided is not None]


def _line(units: Sequence[Word], quantity: Quantity, top: float) -> str:
    """The draft's words, shaded by one quantity."""
    made, cut = [], False
    for word in units:
        made.append(" " if word.parted else "")
        if word.dropped and not cut:
            made.append(f'<span class="rr-heat-cut" title="cut here">{CUT}</span>')
            cut = True
        value = word.values[quantity.key]
        text = as_html(word.text)
        if word.left_out:
            text = f"<s>{text}</s>"
        if word.alarm:
            text = f"<strong>{ALARM}{text}</strong>"
        gone = ' class="rr-heat-gone"' if word.dropped else ""
        made.append(
            f'<span{gone} style="{quantity.style(quantity.level(value, top))}" '
            f'title="{quantity.key} {value:.3f}">{text}</span>'
        )
    return "".join(made).strip()


def _taken(search: Mapping[str, Any]) -> str:
    """All words that the query was chosen from; those that it took are marked."""
    taken = set(search["taken"])
    return " ".join(
        f"<mark>{as_html(word)}</mark>" if i in taken else as_html(word)
        for i, word in enumerate(search["context"])
    )


def _legend(shown: Shown, tops: Mapping[str, float]) -> str:
    """What the colours and signs of this answer mean."""
    keys = {key for event in _drafts(shown) for key in event}
    rows = [(q.key, as_html(q.meaning) + q.scale(tops[q.key])) for q in QUANTITIES if q.key in keys]
    signs = [f"<strong>{ALARM}word</strong> {as_html(rule(shown.settings))}"]
    signs.append(f'{CUT} <span class="rr-heat-gone">words</span> cut off')
    if shown.settings.timing == "flare" and shown.settings.query in MASKING:
        signs.append(f"<s>word</s> p up to {shown.settings.mask:g}, left out of the query")
    rows.append(("signs", "; ".join(signs)))
    return f'<div class="rr-heat-legend">{_list(rows)}</div>'


def _list(rows: Iterable[tuple[str, str]]) -> str:
    """Labels (plain text) and what belongs to them (HTML)."""
    made = "".join(f"<dt>{as_html(label)}</dt><dd>{held}</dd>" for label, held in rows)
    return f"<dl>{made}</dl>"
