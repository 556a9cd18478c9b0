"""Texts to passages of whole sentences, and sentences by spaCy's rules for English."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache

from rag_repro.words import UNSPACED

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
    Of scripts without blanks, as Chinese, each character counts as a word.
    """
    if size < 1:
        raise ValueError(f"passages of {size} words: give a size of 1 or more")
    block: list[str] = []
    for piece in _units(text, size, sentences):
        if block and len(block) + len(piece) > size:
            yield "".join(block).strip()
            block = []
        block += piece
    if block:
        yield "".join(block).strip()


_HEADING = re.compile(r"#{1,6}[ \t]+(?=\S)")
_BLANKS = re.compile(r"\s*")
_UNDERLINE = re.compile(r" {0,3}(==+|--+)[ \t]*$")
_UNDERLINED = re.compile(r" {0,3}(?![-+*>|#<\s]|\d+[.)])(.{1,199}\S|\S)[ \t]*$")
_FENCE = re.compile(r"[ \t]*(?:(?:[-+*>]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`]*$)|~{3,})(.*)$")
_FRONT = re.compile(r"---[ \t]*\n(?=\S)(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")


def headings(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, words) of each heading of Markdown: `# Words`, or one underlined line.

    None in fenced or indented code, a comment of several lines, or the YAML before a text.
    """
    front = _FRONT.match(text)
    at = front.end() if front else 0
    fence = ""  # what ends the code or the comment that the line is in
    words, begin, alone = "", at, True  # the line before, if it may be underlined
    for line in text[at:].split("\n"):
        mark, heading, end = _FENCE.match(line), _HEADING.match(line), at + len(line)
        underlined, words = words, ""
        if fence:
            ended = mark and mark[1].startswith(fence) and not mark[2].strip()
            fence = "" if ended or (fence == "-->" and fence in line) else fence
            alone = True
        elif mark:
            fence = mark[1]
        elif line.lstrip().startswith("<!--") and "-->" not in line:
            fence = "-->"
        elif heading:
            said = line[heading.end() :].rstrip()
            bare = said.rstrip("#")  # those behind a blank close the heading
            yield at, end, bare.rstrip() if bare[-1:].isspace() else said
            alone = True
        elif underlined and _UNDERLINE.match(line):
            yield begin, end, underlined
            alone = True
        else:
            one = _UNDERLINED.match(line) if alone else None
            words, begin = (one[1], at) if one else ("", at)
            alone = not line.strip()
        at = end + 1


def _units(text: str, size: int, sentences: Callable | None) -> Iterator[list[str]]:
    """Pieces of at most `size` words: paragraphs, else sentences, else words."""
    parts, at = [], 0
    for start, end, words in headings(text):
        # The blank lines behind a heading are no border of a paragraph.
        parts += [text[at:start], words.rstrip(".: \t"), ". "]
        at = _BLANKS.match(text, end).end()
    for paragraph in re.split(r"\n\s*\n", "".join([*parts, text[at:]])):
        if len(words := _words(paragraph)) <= size:
            yield words
            continue
        for sentence in (sentences or english())(paragraph):
            for words in _clauses(_words(sentence)):
                for start in range(0, len(words), size):
                    yield words[start : start + size]


def _words(text: str) -> list[str]:
    """The words, each with the single blank that stands before it, if any does."""
    unspaced, character = _unspaced()
    if not unspaced.search(text):
        return [f" {word}" for word in text.split()]
    return [
        f" {found}" if start == 0 else found
        for word in text.split()
        for start, found in enumerate(character.findall(word))
    ]


_ENDS = tuple("。．！？；｡…")


def _clauses(words: list[str]) -> Iterator[list[str]]:
    """A sentence of spaCy's cut where those end that no blank follows: 。！？"""
    start, (letter, _) = 0, _unspaced()
    for at, word in enumerate(words, start=1):
        # A quotation mark or bracket after the full stop belongs to the word.
        if word.rstrip("」』”’）》").endswith(_ENDS) and letter.search(word):
            yield words[start:at]
            start = at
    if start < len(words):
        yield words[start:]


@cache
def _unspaced():
    """Patterns: a letter of a script without blanks; such a letter with its marks, or a word."""
    import regex

    letter = regex.compile(UNSPACED, regex.VERSION1)
    return letter, regex.compile(
        rf"{UNSPACED}[\p{{M}}\p{{P}}]*|(?:(?!{UNSPACED}).)+", regex.VERSION1 | regex.DOTALL
    )


@lru_cache(maxsize=1)
def english() -> Callable[[str], Iterable[str]]:
    """Text -> its sentences by spaCy's rules: no model, the same borders in every run."""
    import spacy

    language = spacy.blank("en")
    language.add_pipe("sentencizer")
    language.max_length = 10**9  # its limit is for models, which need memory by length
    return lambda text: [sentence.text for sentence in language(text).sents]
