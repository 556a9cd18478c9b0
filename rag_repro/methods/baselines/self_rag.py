"""Self-RAG: the reader says whether to search, and judges each passage as it answers.

    retrieve  iff  p([Retrieval]) / (p([Retrieval]) + p([No Retrieval])) > threshold
    y_d = Reader(q, [Retrieval] <paragraph> d </paragraph>)     for each d, at once
    S(y_d) = w_seq exp(mean log p(y_d)) + w_rel s_rel + w_sup s_sup + w_use s_use
    s_rel = P([Relevant])
    s_sup = P([Fully supported]) + 0.5 P([Partially supported])
    s_use = sum over i of (-1, -0.5, 0, 0.5, 1)_i P([Utility:i])
    answer = the y_d with the highest S        (Asai et al. 2024, section 3.3, equations 3 and 4)

P is normalised within its group of tokens: relevance at the first position,
support and utility where the reader writes a token of the group; a group that
it does not write counts 0. An answer is one segment, so the paper's beam over
segments has nothing to choose and is not built; nor is the vote among equal
answers, for closed sets of answers.

From the released script: threshold 0.2, w_use 0.5, 100 tokens, the decision
from the first token's distribution. Its first version divides log probabilities
there, which turns the comparison around; the paper's is built. Other here: the
end token is not in the mean of log p; a reader that ends at once has not
decided, and retrieves; answers without words come last; `Answer.hits` has all
passages that were read, best first, for the reader's own order is a ranking.

A reader that was taught the tokens is needed. Released checkpoints have them in
their vocabulary (`RELEASED`, prompt "selfrag"). Where nothing can be added to a
vocabulary, ordinary words take their places (`WORDS`, each one token of
SmolLM2's); a lesson is then " relevant", the answer, " fully", " excellent".

The trace:

    {"stage": "decide", "by": mode, "probability": p or None, "retrieve": bool}
    {"stage": "segment", "passage": id, "text": as written, "sequence": .., "relevant": ..,
     "supported": .., "useful": .., "score": S}                 one a passage, by rank
    {"stage": "select", "by": "score", "kept": [id], "left_out": ids}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from rag_repro.engine import Flow
from rag_repro.methods.base import Count, Settings, Share, builtin
from rag_repro.methods.reading import PROMPTS, TEXTS, extract, one_line
from rag_repro.methods.stages import retrieve
from rag_repro.schema import (
    Answer,
    Generate,
    Generation,
    Hit,
    Marker,
    Prompt,
    Question,
    Reply,
    Retrieve,
    Segment,
)

RETRIEVAL = ("[Retrieval]", "[No Retrieval]")
RELEVANCE = ("[Relevant]", "[Irrelevant]")
SUPPORT = ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]")
UTILITY = tuple(f"[Utility:{i}]" for i in range(1, 6))
WORTH = (-1.0, -0.5, 0.0, 0.5, 1.0)
FENCE = ("<paragraph>", "</paragraph>")
CRITIQUE = (*RELEVANCE, *SUPPORT, *UTILITY)


@dataclass(frozen=True)
class Spelling:
    """How a reader writes the reflection tokens: the originals' names -> one token's text each.

    apart: they are tokens that the vocabulary was given for this (`Marker`), so
    that no other text can hold one. Words can also stand in an answer: there
    the last of a group counts, since a judgement follows what it judges.
    """

    texts: Mapping[str, str]
    apart: bool

    def write(self, name: str) -> Segment:
        """A token in the reader's turn of a prompt."""
        return Marker(self.texts[name]) if self.apart else Reply(self.texts[name])

    def watch(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.texts[name] for name in names)

    def place(self, pieces: Sequence[str], names: Sequence[str]) -> int | None:
        """Where a reply holds the group's token; None: nowhere."""
        group = {self.texts[name].strip() for name in names}
        places = [i for i, piece in enumerate(pieces) if piece.strip() in group]
        return places[0 if self.apart else -1] if places else None

    def answer(self, pieces: Sequence[str]) -> str:
        """A reply's text without its reflection tokens."""
        if self.apart:
            known = {text.strip() for text in self.texts.values()}
            return "".join(piece for piece in pieces if piece.strip() not in known)
        places = {self.place(pieces, group) for group in (SUPPORT, UTILITY)}
        if self.place(pieces[:1], RELEVANCE) == 0:
            places.add(0)
        return "".join(piece for i, piece in enumerate(pieces) if i not in places)


NAMES = (*RETRIEVAL, "[Continue to Use Evidence]", *CRITIQUE, *FENCE)
RELEASED = Spelling(MappingProxyType({name: name for name in NAMES}), apart=True)
WORDS = Spelling(
    MappingProxyType(TEXTS["self_rag_words"] | {tag: tag for tag in FENCE}), apart=False
)
SPELLINGS = MappingProxyType({"released": RELEASED, "words": WORDS})


@dataclass(frozen=True)
class SelfRAGSettings(Settings):
    """When passages are fetched, and what a continuation is worth.

    k: passages, each read by itself. Without `prompt` no reader is called, and
        so nothing is decided: the k passages are the whole answer.
    prompt: puts the question alone; what follows it is the method's.
    mode: "adaptive", or "always" and "never", which do not ask.
    threshold: retrieve above this share of [Retrieval].
    w_seq, w_rel, w_sup, w_use: weights of the four terms.
    spelling: how the reader writes the tokens (`SPELLINGS`).
    """

    k: Count = 5
    max_new_tokens: Count = 100
    mode: Literal["adaptive", "always", "never"] = "adaptive"
    threshold: Share = 0.2
    w_seq: float = 1.0
    w_rel: float = 1.0
    w_sup: float = 1.0
    w_use: float = 0.5
    spelling: Literal["released", "words"] = "released"

    def __post_init__(self):
        super().__post_init__()
        if self.mode != "adaptive" and self.threshold != 0.2:
            raise ValueError(
                f"threshold {self.threshold} would do nothing with mode {self.mode!r}; leave it out"
            )
        for name in ("w_seq", "w_rel", "w_sup", "w_use"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} is {getattr(self, name)}; it must be a finite number")


@builtin("self_rag", 1, SelfRAGSettings, "Asai et al. 2024, section 3.3; Self-RAG's code")
def self_rag(question: Question, settings: SelfRAGSettings) -> Flow:
    """Decide, then answer alone or beside each passage, and take the best."""
    if settings.prompt is None:
        return Answer(hits=(yield from retrieve(question, settings)))
    trace: list[Mapping[str, Any]] = []
    hits: Sequence[Hit] = ()
    if (yield from wants_passages(question, settings, trace)):
        hits = yield from retrieve(question, settings)
    if not hits:
        answer = yield from _alone(question, settings)
    else:
        answer = yield from _beside_each(question, hits, settings, trace)
    return replace(answer, trace=tuple(trace))


@builtin("self_rag_on_gold", 1, SelfRAGSettings, "this book: a control of Self-RAG's reader")
def on_gold(question: Question, settings: SelfRAGSettings) -> Flow:
    """Answer beside each gold passage and take the best: what its reader makes of them.

    A reader that was taught these turns cannot be asked in another form (`study.gate`).
    """
    gold = question.gold_ids
    if not gold:
        raise ValueError(f"question {question.id!r} names no gold passages; none can be given")
    hits = yield Retrieve(question.text, k=len(gold), within=tuple(gold))
    if settings.prompt is None:
        return Answer(hits=tuple(hits))
    trace: list[Mapping[str, Any]] = []
    answer = yield from _beside_each(question, hits, settings, trace)
    return replace(answer, trace=tuple(trace))


def wants_passages(question: Question, settings: SelfRAGSettings, trace: list[Mapping[str, Any]]):
    """Whether the reader would rather begin with [Retrieval]; one call, where it is asked."""
    p, needed = None, settings.mode != "never"
    if settings.mode == "adaptive":
        spelling = SPELLINGS[settings.spelling]
        prompt = PROMPTS[settings.prompt].fill(question, ())
        out = yield Generate(prompt, max_new_tokens=1, watch=spelling.watch(RETRIEVAL))
        if len(out.watched):
            p = normalised(out.watched[0])[0]
            needed = p > settings.threshold
    trace.append({"stage": "decide", "by": settings.mode, "probability": p, "retrieve": needed})
    return needed


def _alone(question: Question, settings: SelfRAGSettings) -> Flow:
    spelling, template = SPELLINGS[settings.spelling], PROMPTS[settings.prompt]
    prompt = begun(question, (spelling.write("[No Retrieval]"),), settings)
    out = yield Generate(prompt, max_new_tokens=settings.max_new_tokens)
    said = spelling.answer(out.pieces)
    return Answer(text=out.text, prediction=extract(said, template))


def _beside_each(
    question: Question,
    hits: Sequence[Hit],
    settings: SelfRAGSettings,
    trace: list[Mapping[str, Any]],
) -> Flow:
    spelling, template = SPELLINGS[settings.spelling], PROMPTS[settings.prompt]
    outs = yield [
        Generate(
            with_passage(question, hit, settings),
            max_new_tokens=settings.max_new_tokens,
            trace=True,
            watch=spelling.watch(CRITIQUE),
        )
        for hit in hits
    ]
    judged = []
    for hit, out in zip(hits, outs, strict=True):
        terms = critique(out, settings)
        prediction = extract(spelling.answer(out.pieces), template)
        judged.append((prediction is not None, terms["score"], prediction, out.text, hit))
        trace.append({"stage": "segment", "passage": hit.passage.id, "text": out.text, **terms})
    # A stable sort: of equal ones the better retrieved comes first.
    judged.sort(key=lambda j: j[:2], reverse=True)
    ids = [hit.passage.id for *_, hit in judged]
    trace.append({"stage": "select", "by": "score", "kept": ids[:1], "left_out": ids[1:]})
    _, _, prediction, text, _ = judged[0]
    return Answer(text=text, prediction=prediction, hits=tuple(hit for *_, hit in judged))


def begun(question: Question, reply: Sequence[Segment], settings: SelfRAGSettings) -> Prompt:
    """The question, and what already stands in the reader's turn."""
    prompt = PROMPTS[settings.prompt].fill(question, ())
    # The empty reply opens the turn, for a marker in the user's turn would be asked, not said.
    return replace(prompt, segments=(*prompt.segments, Reply(""), *reply))


def with_passage(question: Question, hit: Hit, settings: SelfRAGSettings) -> Prompt:
    """The question, [Retrieval], and a passage between its tags."""
    spelling = SPELLINGS[settings.spelling]
    first, last = map(spelling.write, FENCE)
    text = Reply(f"{one_line(hit.passage.title)}\n{one_line(hit.passage.text)}")
    return begun(question, (spelling.write("[Retrieval]"), first, text, last), settings)


def critique(out: Generation, settings: SelfRAGSettings) -> dict[str, float]:
    """The four terms of a continuation's score, and their weighted sum."""
    spelling, pieces = SPELLINGS[settings.spelling], out.pieces
    groups, start = {}, 0
    for name, group in (("relevant", RELEVANCE), ("supported", SUPPORT), ("useful", UTILITY)):
        at = (0 if pieces else None) if group is RELEVANCE else spelling.place(pieces, group)
        row = np.zeros(len(group)) if at is None else out.watched[at, start : start + len(group)]
        groups[name] = normalised(row)
        start += len(group)
    fully, partially, _ = groups["supported"]
    terms = {
        "sequence": _sureness(out.trace.probability),
        "relevant": groups["relevant"][0],
        "supported": fully + 0.5 * partially,
        "useful": sum(w * p for w, p in zip(WORTH, groups["useful"], strict=True)),
    }
    weights = (settings.w_seq, settings.w_rel, settings.w_sup, settings.w_use)
    score = sum(w * term for w, term in zip(weights, terms.values(), strict=True))
    return {**terms, "score": score}


def normalised(row: Sequence[float]) -> list[float]:
    """A group's probabilities as shares of their sum; zeros where it has none at all."""
    total = float(sum(row))
    return [float(p) / total if total > 0 else 0.0 for p in row]


def _sureness(probability: np.ndarray) -> float:
    """exp(mean log p), 0 for no token."""
    if not len(probability) or probability.min() <= 0:
        return 0.0
    return float(np.exp(np.log(probability, dtype=np.float64).mean()))
