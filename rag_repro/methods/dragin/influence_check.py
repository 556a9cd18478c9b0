"""Does a_max tell how strongly a word shapes what is written behind it (equation 3)?

DRAGIN takes a token's a_max for its influence on what follows. Here the reader writes one
draft without passages. Of its words, two of the same form (a name, a number, another word)
that stand next to each other among those are a pair; one has the higher a_max. Each is masked
in turn, the text is read again, and the same tokens, those behind the later of the two, say how
far their probabilities moved. If a_max is influence, they move further where the word with the
higher one is gone. No paper has this method, which is a control of this book.

The trace, one entry a pair, in the order of the draft:

    {"stage": "influence", "words": the one with the higher a_max, the other, "a_max": theirs,
     "moved": mean |log p - log p masked| of the tokens behind both, in nats, for each,
     "first": whether the one with the higher a_max stands first}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...engine import Flow
from ...schema import Answer, Generate, Generation, Question, Read
from ..base import MethodSpec, Settings
from ..language import ENGLISH, Language
from ..reading import PROMPTS, Template, extract
from .draft import Draft, Span, text_of, words_of
from .exemplars import with_exemplars
from .rind import bare

MASK = "_"
"""Stands for a word, which then has its place and says nothing."""


@dataclass(frozen=True)
class InfluenceCheckSettings(Settings):
    """pairs: of a draft, at most, in its order. reach: tokens behind a pair that are looked at.

    exemplars, max_new_tokens: as in dynamic retrieval.
    """

    prompt: str | None = "cot"
    max_new_tokens: int = 64
    exemplars: str | None = None
    pairs: int = 4
    reach: int = 16

    def __post_init__(self):
        super().__post_init__()
        if self.prompt is None:
            raise ValueError("the check goes by what a reader writes: name a prompt")
        for name in ("pairs", "reach"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        # Nothing is searched: what would be found must not make another condition.
        for name in ("k", "own_candidates"):
            object.__setattr__(self, name, getattr(Settings, name))


def influence_check(
    question: Question, settings: InfluenceCheckSettings, language: Language = ENGLISH
) -> Flow:
    """One draft; of each pair of words, each masked in turn and the text read again."""
    template = with_exemplars(PROMPTS[settings.prompt], settings.exemplars)
    bare_prompt = template.fill(question, ())
    made: Generation = yield Generate(
        bare_prompt,
        max_new_tokens=settings.max_new_tokens,
        stop=template.stop,
        trace=True,
        attention=True,
    )
    draft = Draft.of(made)
    pairs = list(pairs_of(draft, template, language))[: settings.pairs]
    if not pairs:
        return Answer(text=made.text, prediction=extract(made.text, template))
    # All three are read the same way, so that nothing differs but the word.
    masked = [without(draft, word) for pair in pairs for word in pair]
    whole, *others = map(
        Draft.of, (yield [Read(bare_prompt, text) for text in (draft.text, *masked)])
    )
    trace = []
    for (one, two), gone in zip(pairs, zip(others[::2], others[1::2], strict=True), strict=True):
        last = max(one[1], two[1])
        moved = [shift(whole, other, len(draft) - last, settings.reach) for other in gone]
        if None in moved:
            continue
        a_max = [looked_at(draft, word) for word in (one, two)]
        high = int(a_max[1] > a_max[0])
        trace.append(
            {
                "stage": "influence",
                "words": [text_of(draft.pieces, (one, two)[i]) for i in (high, 1 - high)],
                "a_max": [round(a_max[i], 4) for i in (high, 1 - high)],
                "moved": [round(moved[i], 4) for i in (high, 1 - high)],
                "first": (one, two)[high][0] < (one, two)[1 - high][0],
            }
        )
    prediction = extract(made.text, template)
    return Answer(text=made.text, prediction=prediction, trace=tuple(trace))


def pairs_of(draft: Draft, template: Template, language: Language) -> Iterator[tuple[Span, Span]]:
    """Words of one form that stand next to each other among those, each in one pair at most.

    Stop words have no score whatever their a_max is; from the answer's marker on the text is
    the prompt's form; and the last word has nothing behind it.
    """
    marker = template.marker and draft.text.find(template.marker)
    until = len(draft) if marker is None or marker < 0 else draft.tokens_before(marker)
    waiting: dict[str, Span] = {}
    for word in words_of(draft.pieces):
        said = bare(text_of(draft.pieces, word))
        if word[1] > until or word[1] >= len(draft) or not said or language.is_stop(said):
            continue
        kind = form(said)
        if kind in waiting:
            yield waiting.pop(kind), word
        else:
            waiting[kind] = word


def form(word: str) -> str:
    """ "number", "name" (it begins with a capital) or "word"."""
    if any(c.isdigit() for c in word):
        return "number"
    return "name" if word[0].isupper() else "word"


def looked_at(draft: Draft, word: Span) -> float:
    """a_max of a word: the most that a token behind it looks at one of its tokens."""
    a, b = word
    m = len(draft.before)
    rows = draft.attention[:, b:, m + a : m + b].mean(0)  # (n - b, b - a)
    return float(rows.max())


def without(draft: Draft, word: Span) -> str:
    """The draft's text with a mask in the word's place, and the white space before it."""
    a, b = word
    said = "".join(draft.pieces[a:b])
    white = said[: len(said) - len(said.lstrip())]
    return "".join((*draft.pieces[:a], white, MASK, *draft.pieces[b:]))


def shift(whole: Draft, masked: Draft, behind: int, reach: int) -> float | None:
    """How far the first `reach` of the last `behind` tokens moved, nats a token.

    None where they are no more the same tokens, or there is none.
    """
    at, to = len(whole) - behind, len(masked) - behind
    if not behind or whole.pieces[at:] != masked.pieces[to:]:
        return None
    here, there = (
        np.log(np.maximum(draft.probability[i : i + reach], 1e-12))
        for draft, i in ((whole, at), (masked, to))
    )
    return float(np.abs(here - there).mean())


INFLUENCE_CHECK = MethodSpec(
    "influence_check", 1, influence_check, InfluenceCheckSettings, "this book: a check of a_max"
)
