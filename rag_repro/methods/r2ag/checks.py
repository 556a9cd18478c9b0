"""Prompts that a reader reads and does not answer: R²AG's, and RAG's without embeddings.

`attention_check`: where does a reader look before it answers?
Figure 6 of the paper shows the last token's attention, by layer and position, for one
question. Here the prompt is read and nothing is written: its last token, the same one with
and without embeddings, is that from which the answer's first word is drawn. Its attention
is averaged over the heads of each layer and summed over the tokens of

    marks         what stands before a passage: "[1](Title: ", "[1]similarity: (Title: "
    embeddings    the retrieval information, one token a passage, where the prompt has it
    words         the passage's title and text

so that answers of many questions can be averaged. Marks are told since delimiters draw
attention in any reader: an embedding has to be compared with what else stands in its place.

The trace, behind what R²AG tells of features:

    {"stage": "attention", "tokens": [[marks, words] a passage],
     "marks": [share a layer], "words": [[share a passage] a layer], "embeddings": likewise}

layers from the first to the last; the rest of each layer's attention is on the instruction,
the question and the template of the chat.

`likelihood_check`: how likely does a reader hold the right answer?
Whether an answer is right is one bit, and hundreds of questions are needed to tell two
formers apart by it. Here nothing is written: each accepted answer is put where the reader's
own would begin, as the lessons have it, and the reader tells how likely it holds each token:

    log p(a) = sum of log p(token | question, passages, a's tokens before it)

which answers even where both formers are wrong, or both right. It is what a former is
trained to raise, without the answer's end, and it heeds the form as well: a reader that
begins with "The answer is" holds the bare answer less likely, be it right or wrong.

The trace, behind what R²AG tells of features:

    {"stage": "likelihood", "nats": log p of each accepted answer}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_repro.engine import Flow
from rag_repro.methods.base import Count, Settings, builtin
from rag_repro.methods.r2ag.method import R2AGSettings, informed
from rag_repro.methods.reading import PROMPTS, Template
from rag_repro.methods.stages import retrieve
from rag_repro.schema import Answer, Hit, Question, Read, Trace

_NOT_TOLD = ("inputs", "encoder", "columns", "similarity", "exchange")


@dataclass(frozen=True)
class UnansweredSettings(R2AGSettings):
    """As R²AG's, but that a prompt may have no place for embeddings: nothing is told then."""

    def __post_init__(self):
        if self.prompt in PROMPTS and not PROMPTS[self.prompt].informed:
            # What is not told must not make another condition; "free" is told nothing either.
            for name in _NOT_TOLD:
                value = getattr(R2AGSettings, name)
                object.__setattr__(self, name, "free" if name == "inputs" else value)
        # Nothing is written.
        object.__setattr__(self, "max_new_tokens", Settings.max_new_tokens)
        super().__post_init__()

    def _check_prompt(self) -> None:
        if self.prompt is None:
            raise ValueError("a prompt is read here, and nothing else: name a prompt")


def prompted(question: Question, settings: UnansweredSettings):
    """-> the passages, the prompt that would be answered, and the trace of what was told."""
    hits = yield from retrieve(question, settings)
    template = PROMPTS[settings.prompt]
    soft, trace = (), []
    if template.informed:
        soft, trace = yield from informed(question, hits, settings)
    return hits, template.fill(question, hits, soft), trace


@dataclass(frozen=True)
class AttentionCheckSettings(UnansweredSettings):
    """layers: how many, counted from the last; SmolLM2-135M has 30."""

    layers: Count = 30


@builtin("attention_check", 1, AttentionCheckSettings, "this book, after figure 6")
def attention_check(question: Question, settings: AttentionCheckSettings) -> Flow:
    """Read the prompt that would be answered, and tell where its last token looks.

    ValueError: the reader does not show the passages as they were put before it.
    """
    hits, prompt, trace = yield from prompted(question, settings)
    layers = tuple(range(-settings.layers, 0))
    out = yield Read(prompt, "", layers=layers)
    shares = looked(out.trace, PROMPTS[settings.prompt], hits, layers)
    return Answer(hits=tuple(hits), trace=(*trace, shares))


def looked(
    trace: Trace, template: Template, hits: Sequence[Hit], layers: Sequence[int]
) -> dict[str, Any]:
    """The event of one prompt: what its last token's attention is on."""
    rows = np.stack([trace.attention[layer].mean(0)[-1] for layer in layers])  # (layers, tokens)
    lines = lines_of(trace.prompt, template, hits)

    def sums(places: Sequence[Sequence[int]]) -> np.ndarray:
        shares = [rows[:, list(at)].sum(1) for at in places]
        return np.stack(shares, axis=1) if shares else np.zeros((len(rows), 0))

    made = {
        "stage": "attention",
        "tokens": [[len(line.marks), len(line.words)] for line in lines],
        "marks": _rounded(sums([line.marks for line in lines]).sum(1)),
        "words": _rounded(sums([line.words for line in lines])),
    }
    if template.informed:
        made["embeddings"] = _rounded(sums([line.embedding for line in lines]))
    return made


def _rounded(values: np.ndarray) -> list:
    return np.round(values.astype(float), 6).tolist()


@dataclass(frozen=True, slots=True)
class Line:
    """The numbers of a passage's tokens in the prompt; `embedding` has one or none."""

    marks: tuple[int, ...]
    embedding: tuple[int, ...]
    words: tuple[int, ...]


def lines_of(pieces: Sequence[str], template: Template, hits: Sequence[Hit]) -> list[Line]:
    """Where each hit stands among a prompt's tokens, by what each of them says.

    A token belongs where its first character stands that is no space, for words bring the
    space before them. An embedding says nothing, and stands where the template has its place.
    ValueError: a hit is not to be found.
    """
    text = "".join(pieces)
    spaces = [len(p) - len(p.lstrip()) if p.strip() else 0 for p in pieces]
    begins = np.cumsum([0, *map(len, pieces)])[:-1] + spaces  # the character that counts
    lines, at = [], 0
    for number, hit in enumerate(hits, start=1):
        before, mark, told = template.line(number, hit)
        first = text.find(before + mark + told, at)
        if first < 0:
            raise ValueError(
                f"passage {hit.passage.id!r} cannot be found in the prompt as the reader shows it"
            )
        place, words = first + len(before), first + len(before + mark)
        at = words + len(told)
        start, told_from, end = np.searchsorted(begins, [first, words, at]).tolist()
        embedding = ()
        if template.informed:
            # Behind it may stand parts of a character, which say nothing either.
            embedding = (int(np.searchsorted(begins, place)),)
            if pieces[embedding[0]]:
                raise ValueError(f"no embedding stands before passage {hit.passage.id!r}")
        marks = (i for i in range(start, told_from) if i not in embedding)
        lines.append(Line(tuple(marks), embedding, tuple(range(told_from, end))))
    return lines


@dataclass(frozen=True)
class LikelihoodCheckSettings(UnansweredSettings):
    """answers: how many of a question's accepted ones are read, the first."""

    answers: Count = 4


@builtin("likelihood_check", 1, LikelihoodCheckSettings, "this book")
def likelihood_check(question: Question, settings: LikelihoodCheckSettings) -> Flow:
    """Put each accepted answer behind the prompt, and tell how likely the reader holds it.

    ValueError: the question has no answer.
    """
    if not question.answers:
        raise ValueError(f"question {question.id!r} has no answer whose likelihood could be told")
    hits, prompt, trace = yield from prompted(question, settings)
    told = map(PROMPTS[settings.prompt].lesson_answer, question.answers[: settings.answers])
    passes = yield [Read(prompt, answer) for answer in told]
    nats = [_log(one.trace.probability) for one in passes]
    return Answer(hits=tuple(hits), trace=(*trace, {"stage": "likelihood", "nats": nats}))


def _log(probability: np.ndarray) -> float:
    """log p of tokens (n,); one that the reader rules out is as likely as float32 can tell."""
    least = np.finfo(np.float32).tiny
    return float(np.log(np.maximum(probability.astype(float), least)).sum())
