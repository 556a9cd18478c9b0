"""What the Knowledge Filter's judge is asked, and what its answer means: ERM4, section 3.2.

    F(s, k) -> j in {entailment, contradiction, neutral}

Premise: the passage k. Hypothesis, strong: it holds a reliable answer to s; weak: it holds
something that helps to answer s. The control "ask" puts the same as a plain yes-no question.
Prompts and exemplars are this book's own.

A label is scored, P(j) = exp(l_j) / sum_i exp(l_i) with l_j the log-probability of all of its
tokens, or written, and then taken strictly. With an explanation the form is `text**label`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ...evaluation.knowledge_metrics import hypothesis_of
from ...schema import Generation, Hit, Prompt, Question
from ..reading import TEXTS, Template
from .rewriter import SEPARATOR
from .settings import ERM4Settings

ENTAILMENT, CONTRADICTION, NEUTRAL = "entailment", "contradiction", "neutral"
LABELS = MappingProxyType({"nli": (ENTAILMENT, CONTRADICTION, NEUTRAL), "ask": ("yes", "no")})
"""By filter; a passage stays under the first of them, and without a label it has the last."""


def label_of(kind: str, label: str) -> str:
    """One of the three labels as this kind of filter has it."""
    if kind == "nli":
        return label
    return "yes" if label == ENTAILMENT else "no"


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

    fault: "" or why what was written is no label. explanation: where one was asked.
    """

    label: str
    probability: float | None = None
    fault: str = ""
    explanation: str | None = None


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
    return Judgement(LABELS[kind][-1] if fault else said, None, fault, explanation)
