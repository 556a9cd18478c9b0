"""The Knowledge Filter: ERM4, section 3.2. Stage `select`.

    kept = {k : F(s, k) = entailment};   none kept: answer without knowledge (back-off)

The trace has one event a judged passage, and one of the choice:

    {"stage": "filter", "passage": id, "label": label, "probability": of entailment (yes) or
     None, "explanation": text or None, "fault": "" or why what was written is no label}
    {"stage": "select", "by": filter or "random", "kept": ids, "left_out": ids,
     "backed_off": whether nothing was entailed, and nothing is there besides}

What the judge is asked, and what its answer means:

    F(s, k) -> j in {entailment, contradiction, neutral}

Premise: the passage k. Hypothesis, strong: it holds a reliable answer to s; weak: it holds
something that helps to answer s. The control "ask" puts the same as a plain yes-no question.
Prompts and exemplars are this book's own.

A label is scored, P(j) = exp(l_j) / sum_i exp(l_i) with l_j the log-probability of all of its
tokens, or written, and then taken strictly. With an explanation the form is `text**label`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from random import Random
from types import MappingProxyType
from typing import Any

from rag_repro.evaluation.knowledge_metrics import hypothesis_of
from rag_repro.methods.drrag.concatenation import selected
from rag_repro.methods.erm4.erm4_settings import ERM4Settings
from rag_repro.methods.erm4.rewriter import SEPARATOR
from rag_repro.methods.r2ag.method import gold_of
from rag_repro.methods.reading import TEXTS, Template
from rag_repro.schema import Generate, Generation, Hit, Prompt, Question, Read

ENTAILMENT, CONTRADICTION, NEUTRAL = "entailment", "contradiction", "neutral"
LABELS = MappingProxyType({"nli": (ENTAILMENT, CONTRADICTION, NEUTRAL), "ask": ("yes", "no")})
"""By filter; a passage stays under the first of them, and without a label it has the last."""


def label_of(kind: str, label: str) -> str:
    """One of the three labels as this kind of filter has it."""
    if kind == "nli":
        return label
    return "yes" if label == ENTAILMENT else "no"


@cache
def _template(kind: str, hypothesis: str, explain: bool, titled: bool, shots: bool) -> Template:
    words = TEXTS["judge"][kind]
    lead = words["explained" if explain else "lead"]
    first = "Explain in one sentence, write ** and then say" if explain else "Say"
    asks = f"{words[hypothesis]} {words['form'].format(first=first)}"
    shown = "Passage: ({title}) {text}\n" if titled else "Passage: {text}\n"
    lines = [f"{asks}\n\n"]
    for shot in TEXTS["judge"]["exemplars"] if shots else ():
        label = label_of(kind, shot["labels"][hypothesis == "weak"])
        said = written(label, shot["explanation"] if explain else None)
        passage = shown.format(title=shot["title"], text=shot["text"])
        lines.append(f"Question: {shot['question']}\n{passage}{lead}{said}\n\n")
    return Template(
        name=f"erm4_{kind}",
        source="this book, after ERM4, section 3.2",
        passage=shown,
        body=f"Question: {{question}}\n{{passages}}{lead}",
        exemplars="".join(lines),
    )


def written(label: str, explanation: str | None = None) -> str:
    """What a judge is taught to write: a blank before it, since the prompt ends without."""
    return f" {label}" if explanation is None else f" {explanation}{SEPARATOR}{label}"


def judging_prompt(question: Question, hit: Hit, settings: ERM4Settings) -> Prompt:
    """What the judge is asked of a passage, and, without exemplars, was taught on."""
    hypothesis = hypothesis_of(settings.hypothesis, question.hops)
    made = _template(
        settings.filter, hypothesis, settings.explain, settings.titled, settings.judge_shots
    )
    return made.fill(question, [hit])


@dataclass(frozen=True)
class Judgement:
    """label: of `LABELS`. probability: of the first label, None where it was not scored.

    explanation: where one was asked. fault: "" or why what was written is no label.
    """

    label: str
    probability: float | None = None
    explanation: str | None = None
    fault: str = ""


def scored(kind: str, passes: Sequence[Generation]) -> Judgement:
    """The most probable label, from one pass over each in the order of `LABELS`.

    Of equal ones the first. ValueError: a pass tells of no probability.
    """
    logs = [_log_probability(one) for one in passes]
    highest = max(logs)
    if math.isinf(highest):
        raise ValueError("the judge gives each of the labels a probability of 0")
    odds = [math.exp(log - highest) for log in logs]
    best = max(range(len(odds)), key=odds.__getitem__)
    return Judgement(LABELS[kind][best], odds[0] / sum(odds))


def _log_probability(one: Generation) -> float:
    if one.trace is None or not len(one.trace.probability):
        raise ValueError("the judge tells no probabilities of a given text; take label: written")
    return sum(math.log(p) if p > 0 else -math.inf for p in one.trace.probability.tolist())


def read_label(kind: str, out: Generation, explain: bool) -> Judgement:
    """The label that the judge wrote; the last one, with the fault, where it wrote none.

    White space, capitals and a closing full stop do not count.
    """
    explanation, fault, said = None, "", out.text
    if explain:
        parts = [part.strip() for part in out.text.split(SEPARATOR)]
        explanation = parts[0]
        fault = "" if len(parts) == 2 and all(parts) else "not an explanation and a label"
        said = parts[-1]
    said = said.strip().removesuffix(".").lower()
    if not fault and said not in LABELS[kind]:
        fault = "no label"
    return Judgement(LABELS[kind][-1] if fault else said, None, explanation, fault)


LABEL_TOKENS = 8
"""Room for a written label alone."""


@dataclass(frozen=True)
class Filtered:
    """kept: in their order. events: the trace's."""

    kept: tuple[Hit, ...]
    events: tuple[Mapping[str, Any], ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Of passages; "irrelevant" are those judged and not kept."""
        judged = [event for event in self.events if event["stage"] == "filter"]
        chosen = [event for event in self.events if event["stage"] == "select"]
        return {
            "judged": len(judged),
            "irrelevant": sum(len(event["left_out"]) for event in chosen),
            "unlabelled": sum(bool(event["fault"]) for event in judged),
            "backed_off": sum(event["backed_off"] for event in chosen),
        }


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
    events = [
        {"stage": "filter", "passage": hit.passage.id, **asdict(one)}
        for hit, one in zip(asked, judgements, strict=False)
    ]
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
            Prompt.from_segments(*prompt.segments, f" {one['explanation']}{SEPARATOR}")
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
