"""What a reader has just written, as arrays, and the words and sentences that its tokens make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...schema import Generation

Span = tuple[int, int]
"""first..last-1, of tokens, words or characters."""


@dataclass(frozen=True, eq=False)
class Draft:
    """n tokens behind m others (their prompt, or what of it is known).

    pieces: what each of the n says; joined they are the text. before: the same of
    the m. probability, entropy: (n,), entropy in nats. attention: (H, n, m + n) of
    the last layer, row t being what token t looks at once it is an input; None
    where it was not asked for.
    """

    pieces: tuple[str, ...]
    probability: np.ndarray
    entropy: np.ndarray
    attention: np.ndarray | None = None
    before: tuple[str, ...] = ()

    @classmethod
    def of(cls, made: Generation) -> Draft:
        """A traced generation, or a text that was read."""
        trace = made.trace
        return cls(
            pieces_of(made.text, made.offsets),
            trace.probability,
            trace.entropy,
            trace.attention.get(-1),
            trace.prompt,
        )

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)

    def tokens_before(self, character: int) -> int:
        """How many tokens end at or before a character of the text."""
        ends = np.cumsum([len(piece) for piece in self.pieces])
        return int((ends <= character).sum())


def pieces_of(text: str, offsets: Sequence[int]) -> tuple[str, ...]:
    """What each token says, from where each begins; joined it is the text."""
    return tuple(text[a:b] for a, b in pairwise([0, *offsets[1:], len(text)])) if offsets else ()


def starts(pieces: Sequence[str]) -> list[int]:
    """The character at which each piece begins in the joined text."""
    return [0, *np.cumsum([len(piece) for piece in pieces]).tolist()][:-1] if pieces else []


def words_of(pieces: Sequence[str]) -> tuple[Span, ...]:
    """Tokens grouped into words: a word begins with the first token and with white space.

    So punctuation belongs to the word before it ("1964."), as in DRAGIN's released
    code (`generate_attn`), which asks for the vocabulary's space mark.
    """
    firsts = [i for i, piece in enumerate(pieces) if i == 0 or piece[:1].isspace()]
    return tuple(pairwise([*firsts, len(pieces)])) if pieces else ()


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
