"""What a reader has just written, as arrays, and the words and sentences that its tokens make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rag_repro.schema import Generation

Span = tuple[int, int]
"""first..last-1, of tokens, words or characters."""


@dataclass(frozen=True, eq=False)
class Draft:
    """n tokens behind m others (their prompt, or what of it is known).

    pieces: what each of the n says; joined they are the text. before: the same of
    the m. probability, entropy: (n,), entropy in nats. attention: (H, n, m + n) of
    the last layer, row t being what token t looks at once it is an input; None
    where it was not asked for. template: stretches of the m that a chat template says.
    """

    pieces: tuple[str, ...]
    probability: np.ndarray
    entropy: np.ndarray
    attention: np.ndarray | None = None
    before: tuple[str, ...] = ()
    template: tuple[Span, ...] = ()

    @classmethod
    def from_generation(cls, made: Generation) -> Draft:
        """A traced generation, or a text that was read."""
        trace = made.trace
        looks = trace.attention.get(-1)
        told = trace.probability, trace.entropy, looks, trace.prompt, trace.template
        return cls(made.pieces, *told)

    def first(self, n: int) -> Draft:
        """Its first n tokens, which know nothing of the later ones."""
        looks, m = self.attention, len(self.before)
        return Draft(
            self.pieces[:n],
            self.probability[:n],
            self.entropy[:n],
            None if looks is None else looks[:, :n, : m + n],
            self.before,
            self.template,
        )

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def tokens(self) -> tuple[Span, ...]:
        """Each token as a span of its own."""
        return tuple((i, i + 1) for i in range(len(self)))

    def __len__(self) -> int:
        return len(self.pieces)

    def asked(self, question: str, said: str) -> Span:
        """The tokens before these in which the question stands; (0, 0) where it is worded anew.

        said: the answer so far, which may say the question again.
        """
        text = "".join(self.before)
        at = text.rfind(question, 0, len(text) - len(said)) if question else -1
        if at < 0:
            return 0, 0
        return tokens_before(self.before, at), tokens_before(self.before, at + len(question))

    def answered_at(self, said: str) -> int:
        """The token before these with which the answer so far begins."""
        return tokens_before(self.before, len("".join(self.before)) - len(said))


def tokens_before(pieces: Sequence[str], character: int) -> int:
    """How many pieces end at or before a character of what they say together."""
    ends = np.cumsum([len(piece) for piece in pieces])
    return int((ends <= character).sum())


def words_of(pieces: Sequence[str], template: Sequence[Span] = ()) -> tuple[Span, ...]:
    """Tokens grouped into words: a word begins with the first token and with white space.

    So punctuation belongs to the word before it ("1964."), as in DRAGIN's released
    code (`generate_attn`), which asks for the vocabulary's space mark. A chat template's
    stretches begin and end words, whatever they say.
    """
    borders = {0, *(border for stretch in template for border in stretch if border < len(pieces))}
    firsts = [i for i, piece in enumerate(pieces) if i in borders or piece[:1].isspace()]
    return tuple(pairwise([*firsts, len(pieces)])) if pieces else ()


def without(pieces: Sequence[str], template: Sequence[Span]) -> list[str]:
    """The pieces with one blank in place of each stretch of a chat template."""
    left = list(pieces)
    for first, last in reversed(template):
        left[first:last] = [" "]
    return left


def text_of(pieces: Sequence[str], span: Span) -> str:
    """What a word's tokens say, without white space around it."""
    return "".join(pieces[span[0] : span[1]]).strip()


def windows(words: Sequence[str], sentences: Sequence[str]) -> tuple[Span, ...]:
    """The words of each sentence, as DRAGIN's released code finds them (`modifier`).

    Words are joined with single blanks until the sentence occurs in the join; the
    last sentence takes all that is left. A sentence that never occurs so (it has
    two blanks, or a line break) is empty, and a later one takes its words.
    """
    found: list[Span] = []
    first = 0
    for sentence in sentences[:-1]:
        joined, last = "", first
        while last < len(words) and sentence not in joined:
            joined = f"{joined} {words[last]}" if joined else words[last]
            last += 1
        if sentence not in joined:
            last = first
        found.append((first, last))
        first = last
    return (*found, (first, len(words))) if sentences else ()
