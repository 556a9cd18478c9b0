"""Query Rewriter and Query Rewriter+: ERM4, section 3.1. Stage `formulate`.

    Query Rewriter     q                   = G(p)
    Query Rewriter+    s ** q_1 ** q_2 ..  = G(p)      s: the question in clear words

An output is one line, its parts divided by `**`, and is taken strictly: s and at least one
query, no part empty, and an end. Any other is counted and replaced by the question itself,
as its own rewriting and only query, so that a rewriter that fails changes nothing.

Prompts and exemplars are this book's own; the paper's are tailored to each data set and not
all printed. The trace has one event an output, of which "apart" makes two:

    {"stage": "rewrite", "by": "plus" | "query" | "rewriting" | "queries", "wrote": text,
     "parts": [text, ..] as used, "fault": "" or why the output does not follow the format}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rag_repro.methods.erm4.erm4_settings import ERM4Settings
from rag_repro.methods.reading import TEXTS, Template
from rag_repro.schema import Generate, Generation, Prompt, Question

SEPARATOR = "**"


def written(rewritten: str, queries: Sequence[str], task: str = "plus") -> str:
    """What a rewriter is taught to write: a blank before it, since the prompt ends without."""
    parts = {
        "plus": (rewritten, *queries),
        "query": queries[:1],
        "rewriting": (rewritten,),
        "queries": queries,
    }
    return f" {SEPARATOR.join(parts[task])}"


@cache
def template(task: str, shots: bool) -> Template:
    """The prompt of a task; without exemplars it is what a trained rewriter was taught."""
    asks, lead = TEXTS["rewriter"]["tasks"][task].values()
    lines = [f"{asks}\n\n"]
    for shot in TEXTS["rewriter"]["exemplars"] if shots else ():
        said = written(shot["rewritten"], shot["queries"], task)
        lines.append(f"Question: {shot['question']}\n{lead}{said}\n\n")
    return Template(
        name=f"erm4_{task}",
        source="this book, after ERM4, section 3.1",
        passage="",
        body=f"Question: {{question}}\n{lead}",
        exemplars="".join(lines),
        stop=("\n",),
    )


@dataclass(frozen=True)
class Formulated:
    """asked: the question to be answered; queries: what is searched for, each once.

    outputs: how many the rewriter wrote, of which `unfollowed` did not keep the format.
    """

    asked: Question
    queries: tuple[str, ...]
    events: tuple[Mapping[str, Any], ...] = ()

    @property
    def outputs(self) -> int:
        return len(self.events)

    @property
    def unfollowed(self) -> int:
        return sum(bool(event["fault"]) for event in self.events)


def formulate(question: Question, settings: ERM4Settings):
    """Stage `formulate` -> Formulated."""
    tasks = {"none": (), "query": ("query",), "plus": ("plus",)}.get(
        settings.rewrite, ("rewriting", "queries")
    )
    outs = yield [
        Generate(
            rewriting_prompt(task, question, settings.rewriter_shots),
            max_new_tokens=settings.rewriter_tokens,
            stop=template(task, settings.rewriter_shots).stop,
            service=settings.rewriter or "reader",
        )
        for task in tasks
    ]
    asked, queries, events = question.text, (question.text,), []
    for task, out in zip(tasks, outs, strict=True):
        parts, fault = parse(out, task)
        if not fault and task in ("plus", "rewriting"):
            asked = parts[0]
        if not fault and task != "rewriting":
            queries = parts[1:] if task == "plus" else parts
        event = {"stage": "rewrite", "by": task, "wrote": out.text}
        events.append(event | {"parts": list(parts), "fault": fault})
    if settings.asked != "rewritten":
        asked = question.text
    return Formulated(
        replace(question, text=asked), once_each(queries)[: settings.queries], tuple(events)
    )


def rewriting_prompt(task: str, question: Question, shots: bool) -> Prompt:
    """What a rewriter is asked, and, without exemplars, was taught on."""
    return template(task, shots).fill(question, ())


def parse(out: Generation, task: str) -> tuple[tuple[str, ...], str]:
    """An output's parts and "", or no parts and why it does not follow the format."""
    text = out.text.strip()
    if not text:
        return (), "empty"
    if out.finish == "length":
        return (), "cut short"
    parts = tuple(part.strip() for part in text.split(SEPARATOR))
    if not all(parts):
        return (), "an empty part"
    if task in ("query", "rewriting") and len(parts) > 1:
        return (), "more than one part"
    if task == "plus" and len(parts) == 1:
        return (), "no query"
    return parts, ""


def once_each(queries: Sequence[str]) -> tuple[str, ...]:
    """The queries without those that were said before, in whatever case."""
    first: dict[str, str] = {}
    for query in queries:
        first.setdefault(query.casefold(), query)
    return tuple(first.values())
