"""When should a reader be helped? Asked where there is a right answer: on the testbed.

For each hop of a question the reader is put before its value: the gold chain of
thought, which it did not write, is read behind the question alone (teacher forcing),
without a passage. What timing rules go by is taken at the value's tokens, and the reader
continues the chain from there by itself. So it can be compared with whether the
reader was taught the fact (known to whoever knows what it was taught), and with
whether its own next answer is wrong, which is measured here. FLARE goes by the words that
the reader is about to say, so its probability is that of the reader's own continuation; that
of the gold value would tell the answer. No paper has this method, which is a control of this
book; no rule's threshold is used in it.

The trace, one entry a hop, in the order of the chain:

    {"stage": "hop", "value": text, "said": how the reader ends that sentence by itself,
     "wrong": bool, "signals": name of `SIGNALS` -> the highest of the value's tokens;
     "surprise": of those that the reader says by itself up to its sentence's end, else 0}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

import numpy as np

from rag_repro.data import synthworld
from rag_repro.data.synthworld import World
from rag_repro.data.synthworld.reasoning import Saying, facts_of, reasoned, saying, statements
from rag_repro.engine import Flow
from rag_repro.evaluation.normalise import squad
from rag_repro.methods.base import Count, Settings, builtin
from rag_repro.methods.dragin.draft_arrays import Draft, Span, tokens_before
from rag_repro.methods.dragin.dynamic_settings import ReleasedSettings, Rind
from rag_repro.methods.dragin.timing import scores
from rag_repro.methods.language import ENGLISH, Language
from rag_repro.methods.reading import PROMPTS, with_exemplars
from rag_repro.methods.sentences import ENGLISH as RULES
from rag_repro.methods.sentences import Sentences
from rag_repro.schema import Answer, Generate, Generation, Kept, Prompt, Question, Read

SIGNALS = {
    "entropy": "entropy alone, H",
    "surprise": "probability alone, 1 - p of its own words (FLARE)",
    "attention": "attention alone, a",
    "score": "RIND, H a s",
    "entropy_attention": "RIND without meaning, H a",
    "entropy_meaning": "RIND without attention, H s",
    "attention_meaning": "RIND without entropy, a s",
    "released": "RIND as released",
}
"""What a timing rule can go by, in the order of records; higher: rather search."""

_PRODUCTS = {
    name: tuple(name.split("_"))
    for name in ("entropy_attention", "entropy_meaning", "attention_meaning")
}


@dataclass(frozen=True)
class TimingCheckSettings(Settings, Rind):
    """How the signals are computed: as RIND's settings say, but for "released".

    where: at the tokens of the "value", or of its "sentence" up to the value's last.
    exemplars: as in dynamic retrieval. max_new_tokens: of what the reader says by itself.
    """

    prompt: str | None = "cot"
    max_new_tokens: Count = 32
    where: Literal["value", "sentence"] = "value"
    exemplars: str | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.prompt is None:
            raise ValueError("the check goes by what a reader makes of a text: name a prompt")
        self.check_rind()
        # Nothing is searched: what would be found must not make another condition.
        for name in ("k", "own_candidates"):
            object.__setattr__(self, name, getattr(Settings, name))


@builtin("timing_check", 2, TimingCheckSettings, "this book: a check of timing rules")
def timing_check(
    question: Question,
    settings: TimingCheckSettings,
    language: Language = ENGLISH,
    sentences: Sentences = RULES,
    world: Callable[[str], World] = synthworld.world,
) -> Flow:
    """Read the gold chain, and at each hop's value let the reader say its own.

    A question with several answers by design has no chain, and is asked nothing.
    ValueError: a question whose facts are not known.
    """
    if question.kind == "ambiguous":
        return Answer()
    here, said = _chain(question, world)
    template = with_exemplars(PROMPTS[settings.prompt], settings.exemplars)
    bare = template.fill(question, ())
    # Where the answer opens no turn of its own a blank parts it from "Answer:".
    text = "" if bare.chat else " "
    hops = _spans(said, len(text))
    text += reasoned(question, said)
    if template.marker:
        text += f" {template.marker} {question.answers[0]}."
    read = yield Read(bare, text, layers=(-1,))
    draft = Draft.from_generation(read)
    tokens = [_tokens(draft, *hop.value) for hop in hops]
    alone, *own = yield [
        Read(None, Kept(read, len(draft)), layers=(-1,)),
        *(
            Generate(
                Prompt.from_segments(*bare.segments, Kept(read, first), chat=bare.chat),
                max_new_tokens=settings.max_new_tokens,
                trace=True,
                attention=False,
                stop=(*template.stop, sentences.until_first()),
            )
            for first, _ in tokens
        ),
    ]
    among = replace(draft, attention=alone.trace.attention[-1])
    told = _signals(draft, among, settings, language)
    trace = []
    for hop, (first, last), out in zip(hops, tokens, own, strict=True):
        begins = _tokens(draft, *hop.sentence)[0] if settings.where == "sentence" else first
        _, end = sentences.first(out.text)
        kept = "".join(draft.pieces[:first])[hop.sentence[0] :]
        sentence = f"{kept}{out.text[:end]}"
        signals = {
            name: _highest(units, values, (begins, last)) for name, (units, values) in told.items()
        }
        before = 1 - draft.probability[begins:first]
        signals["surprise"] = max([*before, *_surprise(out, end)], default=0.0)
        trace.append(
            {
                "stage": "hop",
                "value": hop.saying.fact.value,
                "said": out.text[:end].strip(),
                "wrong": squad(sentence) not in _right(here, hop.saying),
                "signals": {name: round(float(signals[name]), 4) for name in SIGNALS},
            }
        )
    return Answer(trace=tuple(trace))


# ------------------------------------------------------------------ the gold chain


@dataclass(frozen=True, slots=True)
class _Hop:
    """A saying in the chain: the characters of its sentence, and of its value."""

    saying: Saying
    sentence: Span
    value: Span


def _chain(question: Question, world: Callable[[str], World]) -> tuple[World, tuple[Saying, ...]]:
    """The world and the facts in its passages' words, by lot of the question's id."""
    name = question.meta.get("world")
    if name is None:
        raise ValueError(
            f"question {question.id!r} is not the testbed's: timing is checked where the facts "
            "behind a question are known"
        )
    here = world(name)
    try:
        facts = facts_of(here, question)
    except KeyError:
        facts = ()
    if {fact.passage_id for fact in facts} != set(question.gold_ids):
        raise ValueError(
            f"question {question.id!r} is of another world {name} than the usual one: timing "
            "is checked on worlds of the usual size and dials"
        )
    lots = Random(f"timing_check {question.id}")
    return here, tuple(saying(here, fact, lots) for fact in facts)


def _spans(said: Sequence[Saying], at: int) -> list[_Hop]:
    """Where sentences and values stand, the first sentence at that character."""
    made = []
    for one in said:
        made.append(_Hop(one, (at, at + len(one.text)), (at + one.first, at + one.last)))
        at += len(one.text) + 1
    return made


def _right(world: World, said: Saying) -> set[str]:
    """All ways to say the fact, its value by any accepted name, to compare with."""
    fact = said.fact
    names = (fact.value,) if fact.object is None else world.entity[fact.object].names
    return {squad(text) for name in names for text in statements(world, fact, name)}


# --------------------------------------------------------------------- the signals


def _tokens(draft: Draft, first: int, last: int) -> Span:
    """The tokens that hold any of these characters."""
    return tokens_before(draft.pieces, first), tokens_before(draft.pieces, last - 1) + 1


def _signals(
    draft: Draft, among: Draft, settings: Rind, language: Language
) -> Mapping[str, tuple[Sequence[Span], np.ndarray]]:
    """`SIGNALS` of the chain that is read: units (their tokens), and a value each.

    among: its attention with nothing before it.
    """
    seen = among if settings.alone else draft
    rind = scores(seen, settings, language)
    made = {
        "entropy": (rind.units, rind.entropy),
        "attention": (rind.units, rind.attention),
        "score": (rind.units, rind.score),
    }
    for name, factors in _PRODUCTS.items():
        made[name] = (rind.units, scores(seen, replace(settings, factors=factors), language).score)
    released = scores(among, ReleasedSettings(), language)
    made["released"] = (released.units, released.score)
    return made


def _surprise(own: Generation, end: int) -> np.ndarray:
    """1 - p of the tokens that begin before a character of what the reader says by itself."""
    n = sum(start < end for start in own.offsets)
    return 1 - own.trace.probability[:n]


def _highest(units: Sequence[Span], values: np.ndarray, tokens: Span) -> float:
    """Of the units that hold any of these tokens."""
    first, last = tokens
    return max(float(v) for (a, b), v in zip(units, values, strict=True) if a < last and b > first)
