"""Every step of one answer: what its method asked for, and what it got.

`listen` wraps any method, so that all kinds of calls are heard, those of a
method of one's own too, and the services stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine import Flow, Method
from ..lm.scripted import prompt_text
from ..schema import Answer, Call, Generate, Question, Read, Recall, Remember, Retrieve
from .escape import one_line
from .table import Table
from .traces import short

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
    body.append(["", "answer", "", answer.prediction or "(none)", ""])
    head = ["no.", "step", "asked", "came", "gold"]
    drop = len(head) if gold else len(head) - 1
    return Table(head[:drop], [row[:drop] for row in body])


def text(steps: Sequence[Step], question: Question, answer: Answer) -> str:
    """The steps as a terminal shows them."""
    lines = [f"question: {question.text}"]
    for number, (kind, asked, came) in enumerate(rows(steps), start=1):
        lines += [f"{number}. {kind}: {asked}", *(f"   {line}" for line in came)]
    c = answer.cost
    lines.append(
        f"cost: searches {c.retrievals}, reader calls {c.reader_calls}, "
        f"tokens read {c.prompt_tokens}, written {c.new_tokens}"
    )
    indents = [line[: len(line) - len(line.lstrip())] for line in lines]
    lines = [
        short(indent + one_line(line), WIDE) for indent, line in zip(indents, lines, strict=True)
    ]
    return "\n".join([*lines, f"answer: {one_line(answer.prediction or '(none)')}"])
