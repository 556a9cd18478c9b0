"""What to retrieve: the query rules of DRAGIN's tables 1 and 6, and controls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..language import Language
from .draft import Draft, without
from .rind import Moment
from .settings import DynamicSettings
from .timing import chance, doubtful


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
    def kept(self) -> str:
        """The draft's text up to the break."""
        return "".join(self.draft.pieces[: self.moment.keep])

    @property
    def sentence(self) -> str:
        """The sentence of the draft that gave the alarm."""
        return "".join(self.draft.pieces[slice(*self.moment.sentence)]).strip()


def plain_query(now: Situation, settings: DynamicSettings, language: Language) -> str:
    """The query by any rule but QFS, which asks for attention."""
    return _RULES[settings.query](now, settings, language)


def question(now: Situation, settings: DynamicSettings, language: Language) -> str:
    return now.question


def full_context(now: Situation, settings: DynamicSettings, language: Language) -> str:
    """Question and all that is written, the draft up to its break."""
    return f"{now.question} {now.said}{now.kept}"


def sentence(now: Situation, settings: DynamicSettings, language: Language) -> str:
    return now.sentence


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
    first = draft.asked_at(now.question, now.said)
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


def first_words(now: Situation, settings: DynamicSettings, language: Language) -> str:
    """A control: as many words of the context as QFS takes, its first ones."""
    return " ".join(full_context(now, settings, language).split()[: settings.top_n])


def random_words(now: Situation, settings: DynamicSettings, language: Language) -> str:
    """A control: as many words of the context as QFS takes, by chance, in their order."""
    words = full_context(now, settings, language).split()
    rng = chance(settings, f"words {now.place}")
    drawn = rng.permutation(len(words))[: settings.top_n]
    return " ".join(words[i] for i in np.sort(drawn))


_RULES = {
    rule.__name__: rule
    for rule in (
        *(question, full_context, sentence, last_sentence, last_tokens, sure_sentence),
        *(masked_sentence, first_words, random_words),
    )
}
