"""What to retrieve: the query rules of DRAGIN's tables 1 and 6, and controls.

QFS is DRAGIN's section 3.2, and what its released code computes instead:

    (1) A_i = {a_i,1 .. a_i,i-1}: the last layer's attention of t_i       `attention_of`
    (2) the top n tokens by it                                            `select`
    (3) their words, in their order in the text,                          `select`
    (4) are the query                                                     `query_of`

Left open by the paper: the heads (their mean here, as released), how far back the
"preceding token sequence" goes (`settings.context`), parts of words (a word is taken
where one of its tokens is).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_repro.methods.dragin.draft_arrays import Draft, Span, text_of, without, words_of
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings, Qfs
from rag_repro.methods.dragin.timing import Moment, chance, doubtful
from rag_repro.methods.language import Language
from rag_repro.schema import Read


@dataclass(frozen=True, eq=False)
class Situation:
    """A draft that broke off.

    said: the answer before the draft. place: names the question and the draft.
    """

    question: str
    said: str
    draft: Draft
    moment: Moment
    place: str = ""

    @property
    def full_context(self) -> str:
        """Question and all that is written, the draft up to its break."""
        return f"{self.question} {self.said}{''.join(self.draft.pieces[: self.moment.keep])}"

    @property
    def sentence(self) -> str:
        """The sentence of the draft that gave the alarm."""
        return "".join(self.draft.pieces[slice(*self.moment.sentence)]).strip()


def plain_query(now: Situation, settings: DynamicSettings, language: Language) -> str:
    """The query by any rule but QFS, which asks for attention."""
    return _RULES[settings.query](now, settings, language)


def last_sentence(now: Situation, settings: DynamicSettings, language: Language) -> str:
    """The last whole sentence before the break; the question where there is none."""
    first, last = now.moment.sentence
    whole = now.moment.keep if now.moment.keep >= last else min(first, now.moment.keep)
    text = now.said + "".join(now.draft.pieces[:whole])
    spans = language.sentences(text)
    return text[slice(*spans[-1])] if spans else now.question


def last_tokens(now: Situation, settings: DynamicSettings, language: Language) -> str:
    """The tokens closest to the break, of question and text, as they read together."""
    draft = now.draft
    first, _ = draft.asked(now.question, now.said)
    behind = [(a - first, b - first) for a, b in draft.template if a >= first]
    pieces = [*without(draft.before[first:], behind), *draft.pieces[: now.moment.keep]]
    return "".join(pieces[-settings.window :]).strip()


def sure_sentence(now: Situation, settings: DynamicSettings, language: Language) -> str:
    """The sentence without its doubtful tokens; whole if none is sure.

    A token goes with the blank before it, so that words are glued: no author's query. Records
    have it from before FLARE's was `masked_sentence`.
    """
    first, last = now.moment.sentence
    sure = [now.draft.pieces[i] for i in range(first, last) if not doubtful(now.draft, i, settings)]
    return "".join(sure).strip() or now.sentence


def masked_sentence(now: Situation, settings: DynamicSettings, language: Language) -> str:
    """FLARE's query: the sentence with a blank for each doubtful token; whole if none is sure."""
    first, last = now.moment.sentence
    said = [
        " " if doubtful(now.draft, i, settings) else now.draft.pieces[i] for i in range(first, last)
    ]
    return " ".join("".join(said).split()) or now.sentence


def random_words(now: Situation, settings: DynamicSettings, language: Language) -> str:
    """A control: as many words of the context as QFS takes, by chance, in their order."""
    words = now.full_context.split()
    rng = chance(settings, f"words {now.place}")
    drawn = rng.permutation(len(words))[: settings.top_n]
    return " ".join(words[i] for i in np.sort(drawn))


_RULES = {
    "question": lambda now, settings, language: now.question,
    "full_context": lambda now, settings, language: now.full_context,
    "sentence": lambda now, settings, language: now.sentence,
    "last_sentence": last_sentence,
    "last_tokens": last_tokens,
    "sure_sentence": sure_sentence,
    "masked_sentence": masked_sentence,
    # A control: as many words of the context as QFS takes, its first ones.
    "first_words": lambda now, settings, _: " ".join(now.full_context.split()[: settings.top_n]),
    "random_words": random_words,
}


@dataclass(frozen=True, eq=False)
class Context:
    """What a token can look back at.

    pieces: what each of the c tokens says. attention: (H, r, c), whose first row is of
    token `offset`, the r rows of tokens in their order. first: where the candidates begin.
    template: tokens behind it that are none, the prompt's own words. chat: stretches that the
    reader's chat template says, which are none either, and parts of no word.
    """

    pieces: tuple[str, ...]
    attention: np.ndarray
    offset: int
    first: int = 0
    template: Span = (0, 0)
    chat: tuple[Span, ...] = ()

    def offers(self, token: int) -> bool:
        """Whether a query may take this token."""
        hidden = (self.template, *self.chat)
        return token >= self.first and not any(a <= token < b for a, b in hidden)

    @property
    def word_spans(self) -> tuple[Span, ...]:
        return words_of(self.pieces, self.chat)


def attention_of(context: Context, hits: Sequence[Span], row: str = "own") -> np.ndarray:
    """How much each token of the context is looked at from the hits, (c,).

    Of each hit, tokens a..b-1, what stands before a gets shares that sum to 1 for each of
    its tokens, by the mean of the heads; then the mean over its tokens, and over the hits.
    row: "own", or "previous", the row of the place that foretold the token. All 0 where
    no row is known.
    """
    mean = context.attention.mean(0)  # (r, c)
    looked = np.zeros(len(context.pieces))
    for a, b in hits:
        rows = [i - context.offset - (row == "previous") for i in range(a, b)]
        shares = [mean[r, :a] / mean[r, :a].sum() for r in rows if r >= 0 and mean[r, :a].any()]
        if shares:
            looked[:a] += np.mean(shares, axis=0) / len(hits)
    return looked


def select(
    context: Context, looked: np.ndarray, hits: Sequence[Span], settings: Qfs, language: Language
) -> tuple[Span, ...]:
    """The query's words: of the most looked-at tokens before the hits, in the text's order.

    candidates "content": whole words compete, by their tokens' sum, that contain a word of
    content and are no hits, wherever they stand, as in the released code.
    """
    words = context.word_spans
    if settings.candidates == "all":
        last = max((a for a, _ in hits), default=len(context.pieces))
        tokens = np.array([t for t in range(last) if context.offers(t)], dtype=int)
        # Stable, so that equal ones go by their order.
        top = set(tokens[np.argsort(-looked[tokens], kind="stable")][: settings.top_n].tolist())
        # Of a word that the hit is a part of, only what stands before the hit.
        chosen = [(a, min(b, last)) for a, b in words if top & set(range(a, b))]
    else:
        content = language.content("".join(without(context.pieces, context.chat)))
        chosen = [
            word
            for word in words
            if context.offers(word[0])
            and not any(a <= word[0] < b for a, b in hits)
            and any(said in text_of(context.pieces, word) for said in content)
        ]
        weight = {word: looked[slice(*word)].sum() for word in chosen}
        chosen = sorted(sorted(chosen, key=weight.__getitem__, reverse=True)[: settings.top_n])
    return tuple(chosen)


def taken(
    context: Context, hits: Sequence[Span], settings: Qfs, language: Language
) -> tuple[Span, ...]:
    """The words of the query for what the hits need to know; none where the context is empty.

    Without a hit (the released code's filter may clear them all) nothing is looked
    at, and the first words of the context are the query.
    """
    return select(context, attention_of(context, hits, settings.row), hits, settings, language)


def query_of(context: Context, words: Sequence[Span]) -> str:
    """The words as they stand in the text, parted by single blanks."""
    return " ".join(text_of(context.pieces, word) for word in words)


def qfs(context: Context, hits: Sequence[Span], settings: Qfs, language: Language) -> str:
    """The query; "" where the context is empty."""
    return query_of(context, taken(context, hits, settings, language))


def choice(context: Context, words: Sequence[Span], hits: Sequence[Span]) -> dict[str, Any]:
    """For a trace: the words up to the hits, and by number those that the query took."""
    firsts = {a for a, _ in words}
    end = max([b for _, b in words] + [b for _, b in hits], default=len(context.pieces))
    every = [(a, b) for a, b in context.word_spans if context.offers(b - 1) and a < end]
    return {
        "context": [text_of(context.pieces, word) for word in every],
        "taken": [i for i, (a, _) in enumerate(every) if a in firsts],
    }


# -------------------------------------------------------------- where attention comes from


def context_of(
    now: Situation, settings: Qfs, read: Draft | None = None
) -> tuple[Context, tuple[Span, ...]]:
    """What hits can look at, by `settings.context` -> context, hits in it. read: see `reread`."""
    if settings.context == "again":
        return again(read, now.draft, now.moment)
    draft, first, template = now.draft, 0, (0, 0)
    if settings.context in ("text", "said"):
        first, asked = draft.asked(now.question, now.said)
    elif settings.context == "output":
        first = draft.answered_at(now.said)
    if settings.context == "said":
        template = (asked, draft.answered_at(now.said))
    chat = draft.template if settings.leaves_template_out else ()
    # The context as the reader had it: all its prompt, and the draft.
    m, pieces = len(draft.before), (*draft.before, *draft.pieces)
    context = Context(pieces, draft.attention, m, first, template, chat)
    return context, tuple((a + m, b + m) for a, b in now.moment.hits)


def reread(now: Situation) -> Read:
    """What the released code reads a second time: question, text so far, the sentence.

    Neither exemplars nor passages. Blanks stand between the parts, empty ones too.
    """
    kept = "".join(now.draft.pieces[: now.moment.sentence[0]]).strip()
    words = [text_of(now.draft.pieces, word) for word in _sentence_words(now.draft, now.moment)]
    text = " ".join((now.question, now.said.strip(), kept, " ".join(words)))
    return Read(None, text, layers=(-1,))


def again(read: Draft, draft: Draft, moment: Moment) -> tuple[Context, tuple[Span, ...]]:
    """The context of a second reading, and the hits in it, counted in words from its end.

    That its tokens make the same words again is taken for granted, as in the released code.
    """
    sentence = _sentence_words(draft, moment)
    anew = words_of(read.pieces)
    last = len(anew) - len(sentence)
    hits = [
        anew[last + i]
        for i, (a, b) in enumerate(sentence)
        if any(a <= first < b for first, _ in moment.hits) and last + i >= 0
    ]
    return Context(read.pieces, read.attention, 0), tuple(hits)


def _sentence_words(draft: Draft, moment: Moment) -> list[Span]:
    first, last = moment.sentence
    return [word for word in words_of(draft.pieces) if first <= word[0] < last]
