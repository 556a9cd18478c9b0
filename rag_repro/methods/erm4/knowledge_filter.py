"""The Knowledge Filter: ERM4, section 3.2. Stage `select`.

    kept = {k : F(s, k) = entailment};   none kept: answer without knowledge (back-off)

The trace has one event a judged passage, and one of the choice:

    {"stage": "filter", "passage": id, "label": label, "probability": of entailment (yes) or
     None, "explanation": text or None, "fault": "" or why what was written is no label}
    {"stage": "select", "by": filter or "random", "kept": ids, "left_out": ids,
     "backed_off": whether nothing was entailed, and nothing is there besides}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from ...schema import Generate, Generation, Hit, Prompt, Question, Read
from ..drrag.second_stage import selected
from ..r2ag.method import gold_of
from .judging import LABELS, Judgement, judging_prompt, read_label, scored, written
from .rewriter import SEPARATOR
from .settings import ERM4Settings

LABEL_TOKENS = 8
"""Room for a written label alone."""


@dataclass(frozen=True)
class Filtered:
    """kept: in their order. events: the trace's."""

    kept: tuple[Hit, ...]
    events: tuple[Mapping[str, Any], ...] = ()

    def count(self, what: str) -> int:
        """ "judged", "irrelevant" (judged and not kept), "unlabelled" or "backed_off"."""
        judged = [event for event in self.events if event["stage"] == "filter"]
        chosen = [event for event in self.events if event["stage"] == "select"]
        return {
            "judged": len(judged),
            "unlabelled": sum(bool(event["fault"]) for event in judged),
            "irrelevant": sum(len(event["left_out"]) for event in chosen),
            "backed_off": sum(event["backed_off"] for event in chosen),
        }[what]


def filtered(
    question: Question, hits: Sequence[Hit], settings: ERM4Settings, spared: Collection[str] = ()
):
    """Stage `select` -> Filtered. spared: ids of passages that stay without being judged.

    Raises ValueError: `filter: gold` without labels, or a judge that tells no probabilities.
    """
    if settings.filter == "none":
        return Filtered(tuple(hits))
    asked = [hit for hit in hits if hit.passage.id not in spared]
    if settings.asks_judge:
        judgements = yield from judge(question, asked, settings)
        entailing = LABELS[settings.filter][0]
        fits = [one.label == entailing for one in judgements]
    else:
        judgements = []
        fits = [bool(label) for label in gold_of(question, asked)]
    events = [_told(hit, one) for hit, one in zip(asked, judgements, strict=False)]
    by = settings.filter
    if settings.keep == "random":
        by = "random"
        fits = at_random(fits, f"filter {settings.seed} {question.id}")
    backed_off = bool(asked) and not any(fits) and len(asked) == len(hits)
    if backed_off and settings.back_off != "nothing":
        fits = [settings.back_off == "all" or place == 0 for place in range(len(asked))]
    dropped = {hit.passage.id for hit, fit in zip(asked, fits, strict=True) if not fit}
    kept = tuple(hit for hit in hits if hit.passage.id not in dropped)
    events.append({**selected(by, kept, asked), "backed_off": backed_off})
    return Filtered(kept, tuple(events))


def at_random(fits: Sequence[bool], seed: str) -> list[bool]:
    """As many as are true, drawn by chance."""
    drawn = set(Random(seed).sample(range(len(fits)), sum(fits)))
    return [place in drawn for place in range(len(fits))]


def judge(question: Question, hits: Sequence[Hit], settings: ERM4Settings):
    """A Judgement for each hit, all asked together."""
    prompts = [judging_prompt(question, hit, settings) for hit in hits]
    kind, service = settings.filter, settings.judge or "reader"
    if settings.label == "written":
        most = LABEL_TOKENS + (settings.explanation_tokens or 0)
        outs = yield [Generate(p, most, stop=("\n",), service=service) for p in prompts]
        return [read_label(kind, out, settings.explain) for out in outs]
    told: list[dict[str, str]] = [{} for _ in hits]
    if settings.explain:
        stop, most = (SEPARATOR, "\n"), settings.explanation_tokens
        outs = yield [Generate(p, most, stop=stop, service=service) for p in prompts]
        told = [explained(out) for out in outs]
        prompts = [
            Prompt.of(*prompt.segments, f" {one['explanation']}{SEPARATOR}")
            for prompt, one in zip(prompts, told, strict=True)
        ]
    # All labels of a prompt together: a reader reads it once.
    texts = [label if settings.explain else written(label) for label in LABELS[kind]]
    passes = yield [Read(p, text, service=service) for p in prompts for text in texts]
    rows = [passes[at : at + len(texts)] for at in range(0, len(passes), len(texts))]
    return [replace(scored(kind, row), **one) for row, one in zip(rows, told, strict=True)]


def explained(out: Generation) -> dict[str, str]:
    """An explanation alone, and why it does not follow the format."""
    text = out.text.strip()
    fault = "cut short" if out.finish == "length" else ""
    return {"explanation": text, "fault": fault if text else "no explanation"}


def _told(hit: Hit, one: Judgement) -> dict[str, Any]:
    return {
        "stage": "filter",
        "passage": hit.passage.id,
        "label": one.label,
        "probability": one.probability,
        "explanation": one.explanation,
        "fault": one.fault,
    }
