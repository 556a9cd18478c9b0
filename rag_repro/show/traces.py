"""One question, step by step: what its method asked for, what it got, decided, and its times.

`listen` wraps any method, so that all kinds of calls are heard, those of a method of one's own
too, and the services stay as they are. `evidence` puts the events of an answer's trace into words.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_repro import engine
from rag_repro.engine import Flow, Method
from rag_repro.lm.prompts import prompt_text
from rag_repro.methods.dragin.dynamic_settings import FACTORS
from rag_repro.schema import (
    Answer,
    Call,
    Cost,
    Generate,
    Question,
    Read,
    Recall,
    Remember,
    Retrieve,
    Score,
)
from rag_repro.schema.dataset import Dataset
from rag_repro.show.escape import one_line
from rag_repro.show.table import Table
from rag_repro.study.conditions import Condition
from rag_repro.study.services import Workshop

SHOWN = 160  # characters of a query or passage; the rest is an ellipsis


def question_table(question: Question, dataset: Dataset) -> Table:
    """The question, its accepted answers and its gold passages with their roles."""
    passages = dataset.corpus.by_id
    body = [["question", question.text], ["answer", " | ".join(question.answers)]]
    for gold in question.gold:
        passage = passages[gold.passage_id]
        text = f"{passage.title}: {passage.text}"
        body.append([f"gold, {gold.role}, hop {gold.hop}", text])
    return Table(["part", "text"], body, "The question, its answers and its gold passages")


def roles_of(question: Question) -> dict[str, str]:
    """Gold passage -> its role, "yes" where nobody knows it."""
    return {gold.passage_id: gold.role or "yes" for gold in question.gold}


def context_table(answer: Answer, question: Question, caption: str) -> Table:
    """The passages that the method hands on, in their order."""
    roles = roles_of(question)
    body = [
        [place, hit.passage.title, short(hit.passage.text), roles.get(hit.passage.id, "")]
        for place, hit in enumerate(answer.hits, start=1)
    ]
    head = ["place", "passage", "text", "gold"]
    return Table(head, body, caption)


def short(text: str, most: int = SHOWN) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


TAIL = 100  # characters of a prompt that are shown: its end, where the question stands
WIDE = 76  # characters of a line of text: what fits a page of the book
KINDS = {"Retrieve": "search", "Generate": "read", "Read": "weigh"}


@dataclass(frozen=True)
class Step:
    """One call with its result."""

    call: Call
    result: Any


def listen(method: Method, heard: list[Step]) -> Method:
    """The same method, which appends each step to `heard` once its result is there."""

    def run(question: Question, settings: Any) -> Flow:
        flow = method(question, settings)
        advance, value = flow.send, None
        while True:
            try:
                wish = advance(value)
            except StopIteration as stop:
                return stop.value
            try:
                value = yield wish
            except Exception as error:  # a refused call is the method's to deal with
                advance, value = flow.throw, error
                continue
            advance = flow.send
            calls, results = (wish, value) if isinstance(wish, list) else ([wish], [value])
            heard.extend(map(Step, calls, results))

    return run


def walk(condition: Condition, question: Question, workshop: Workshop, caption: str = "") -> Table:
    """Every call of the condition's method on one question, which is asked now."""
    heard: list[Step] = []
    task = engine.Task(question, listen(condition.spec.run, heard), condition.configured)
    [(_, answer)] = engine.run([task], workshop.services(condition), batch_size=1)
    return replace(table(heard, question, answer), caption=caption)


def rows(steps: Sequence[Step]) -> Iterator[tuple[str, str, list[str]]]:
    """(kind, what was asked, what came: a line each) of every step."""
    for step in steps:
        call, result = step.call, step.result
        kind = KINDS.get(type(call).__name__, type(call).__name__.lower())
        if isinstance(call, Retrieve | Recall):
            found = [f"{h.rank}. {h.score:.2f} {h.passage.id}: {h.passage.text}" for h in result]
            yield kind, call.query, found or ["nothing"]
        elif isinstance(call, Generate | Read):
            text = " ".join(prompt_text(call.prompt).split())
            end = text if len(text) <= TAIL else "…" + text[-TAIL:].lstrip()
            said = " ".join(result.text.split())
            yield kind, f"{result.prompt_tokens} tokens: {end}", [said or "(nothing)"]
        elif isinstance(call, Remember):
            yield kind, f"{len(call.passages)} passages", []
        elif isinstance(call, Score):
            yield kind, f"{len(result)} items", [", ".join(f"{p:.4f}" for p in result)]
        else:
            yield kind, f"{len(result)} texts", [" ".join(map(str, getattr(result, "shape", ())))]


def table(steps: Sequence[Step], question: Question, answer: Answer) -> Table:
    """The steps as a page shows them; passages that the question needs are marked."""
    gold = set(question.gold_ids)
    body: list[list[Any]] = []
    for number, (step, (kind, asked, came)) in enumerate(
        zip(steps, rows(steps), strict=True), start=1
    ):
        for place, line in enumerate(came or [""]):
            hits = step.result if isinstance(step.call, Retrieve | Recall) else ()
            mark = "yes" if place < len(hits) and hits[place].passage.id in gold else ""
            first = [number, kind, short(asked)] if place == 0 else ["", "", ""]
            body.append([*first, short(line), mark])
    body += [["", what, "", said, ""] for what, said in evidence(answer.trace)]
    if answer.cost.reader_calls or answer.prediction:  # else it hands on passages alone
        body.append(["", "answer", "", answer.prediction or "(none)", ""])
    head = ["no.", "step", "asked", "came", "gold"]
    drop = len(head) if gold else len(head) - 1
    return Table(head[:drop], [row[:drop] for row in body])


def text(steps: Sequence[Step], question: Question, answer: Answer) -> str:
    """The steps as a terminal shows them, then what the method decided."""
    lines = [f"question: {question.text}"]
    for number, (kind, asked, came) in enumerate(rows(steps), start=1):
        lines += [f"{number}. {kind}: {asked}", *(f"   {line}" for line in came)]
    indents = [line[: len(line) - len(line.lstrip())] for line in lines]
    lines = [
        short(indent + one_line(line), WIDE) for indent, line in zip(indents, lines, strict=True)
    ]
    if told := evidence(answer.trace):
        lines += ["decisions:", *block(told)]
    lines.append(f"cost: {cost(answer.cost)}")
    return "\n".join([*lines, f"answer: {one_line(answer.prediction or '(none)')}"])


def cost(c: Cost) -> str:
    """What an answer took, in words."""
    return (
        f"searches {c.retrievals}, reader calls {c.reader_calls}, "
        f"tokens read {c.prompt_tokens}, written {c.new_tokens}"
    )


def block(told: Iterable[tuple[str, str]], label: int = 9) -> list[str]:
    """(what, in words) as indented lines, the words in a column; long ones go on below."""
    return [
        line
        for what, said in told
        for line in textwrap.wrap(
            f"{what:<{label}} {one_line(said)}",
            WIDE,
            initial_indent="  ",
            subsequent_indent=" " * (label + 3),
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


# ------------------------------------------------------------------ what the method decided

Event = Mapping[str, Any]


def evidence(trace: Iterable[Event]) -> list[tuple[str, str]]:
    """(what, in words) of each event of a trace: DRAGIN's alarms with their scores and queries,
    DR-RAG's pairs with C's decisions, ERM4's queries, filter and memory, R²AG's features.

    An event of another kind is told by its fields.
    """
    return [row for event in trace for row in _TOLD.get(event.get("stage"), _fields)(event)]


def _decide(event: Event) -> Iterator[tuple[str, str]]:
    if "keep" not in event:  # an adaptive method's, which judges no draft
        yield from _fields(event)
        return
    yield "draft", repr(event["text"])
    name = "score" if "score" in event else "probability"
    values = event.get(name, ())

    def at(i: int) -> str:
        factors = [f"{f} {event[f][i]:.2f}" for f in FACTORS if f in event]
        told = f"at {event['words'][i].strip()!r}: {name} {values[i]:.2f}"
        return told + (f" ({', '.join(factors)})" if factors else "")

    if event["alarm"]:
        yield from (("alarm", at(i)) for i in event["alarm"])
    elif event["sentence"]:
        yield "alarm", "by the rule, which names no word"
    elif values:
        most = max if name == "score" else min
        yield "no alarm", f"the nearest is {at(most(range(len(values)), key=values.__getitem__))}"


def _retrieve(event: Event) -> Iterator[tuple[str, str]]:
    beside = event.get("beside")
    yield "query", f"the question with {beside}" if beside else repr(event["query"])
    if event.get("popularity") is not None:
        went = "searched for" if event["searched"] else "not searched for"
        recalled = _names(event["recalled"])
        yield "memory", f"{event['popularity']} titles alike, so {went}; it gives {recalled}"
    if event.get("searched", True):
        yield "finds", _names(event["found"])


def _judge(event: Event) -> Iterator[tuple[str, str]]:
    decided = {True: "both needed", False: "not both needed", None: "at the threshold"}
    said = f"{decided[event['positive']]}, {event['by']} {event['probability']:.4f}"
    yield "pair", f"{' + '.join(event['pair'])}: {said}"


def _select(event: Event) -> Iterator[tuple[str, str]]:
    back = ", none of them fits, so it backs off" if event.get("backed_off") else ""
    yield "left out", f"{_names(event['left_out'])} (by {event['by']}{back})"


def _rewrite(event: Event) -> Iterator[tuple[str, str]]:
    fault = f"; not followed: {event['fault']}" if event["fault"] else ""
    yield "rewriter", f"{event['wrote']!r}{fault}"
    yield from (("uses", repr(part)) for part in event["parts"])


def _filter(event: Event) -> Iterator[tuple[str, str]]:
    p, why = event["probability"], event.get("explanation")
    parts = [event["label"], None if p is None else f"{p:.4f}", event.get("kind"), why]
    parts.append(event.get("fault"))
    yield "filter", f"{event['passage']}: {', '.join(str(part) for part in parts if part)}"


def _features(event: Event) -> Iterator[tuple[str, str]]:
    for name, row in zip(event["passages"], event["rows"], strict=True):
        told = [f"{c} {x:.4f}" for c, x in zip(event["columns"], row, strict=False)]
        yield event["inputs"], f"{name}: {', '.join(told) or 'none'}"


def _fields(event: Event) -> Iterator[tuple[str, str]]:
    """Any other event; fields without a value say nothing."""
    held = {k: v for k, v in event.items() if k != "stage" and v not in (None, 0, "", [], {})}
    told = [f"{k} {short(one_line(v))}" for k, v in held.items()]
    yield str(event.get("stage", "decision")), ", ".join(told) or "none"


def _names(ids: Sequence[str]) -> str:
    return ", ".join(ids) or "nothing"


_TOLD: Mapping[str, Callable[[Event], Iterator[tuple[str, str]]]] = {
    "decide": _decide,
    "retrieve": _retrieve,
    "judge": _judge,
    "select": _select,
    "rewrite": _rewrite,
    "filter": _filter,
    "features": _features,
    "write": lambda event: iter([("writes", repr(event["text"]))]),
    "ask_again": lambda event: iter([("asks again", repr(event["text"]))]),
}
