"""Texts to passages of whole sentences, and sentences by spaCy's rules for English."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

SIZE = 100
"""Words of a passage, as in DPR (Karpukhin et al. 2020, section 4.1)."""


def by_sentences(
    text: str, size: int = SIZE, sentences: Callable[[str], Iterable[str]] | None = None
) -> Iterator[str]:
    """Blocks of at most `size` words that end where a sentence or a paragraph does.

    sentences: paragraph -> its sentences; None: spaCy's rules for English. Only
    a paragraph that is too long for a block is cut into its sentences, only a
    sentence that is too long into words. A heading (# Title) stays with what
    it heads, as a sentence. Blanks within a block become single ones; no text gives no block.
    """
    if size < 1:
        raise ValueError(f"passages of {size} words: give a size of 1 or more")
    block: list[str] = []
    for piece in _units(text, size, sentences):
        words = piece.split()
        if block and len(block) + len(words) > size:
            yield " ".join(block)
            block = []
        block += words
    if block:
        yield " ".join(block)


# A line of "# Heading" and the blank lines behind it: no border of a paragraph.
_HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[.:]?[ \t]*#*[ \t]*$\s*", re.MULTILINE)


def _units(text: str, size: int, sentences: Callable | None) -> Iterator[str]:
    """Pieces of at most `size` words: paragraphs, else sentences, else words."""
    for paragraph in re.split(r"\n\s*\n", _HEADING.sub(r"\1. ", text)):
        if len(paragraph.split()) <= size:
            yield paragraph
            continue
        for sentence in (sentences or english())(paragraph):
            words = sentence.split()
            for start in range(0, len(words), size):
                yield " ".join(words[start : start + size])


@lru_cache(maxsize=1)
def english() -> Callable[[str], Iterable[str]]:
    """Text -> its sentences by spaCy's rules: no model, the same borders in every run."""
    import spacy

    language = spacy.blank("en")
    language.add_pipe("sentencizer")
    language.max_length = 10**9  # its limit is for models, which need memory by length
    return lambda text: [sentence.text for sentence in language(text).sents]
