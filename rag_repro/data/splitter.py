"""Articles to passages: 100 words (as DPR), 100 tokens of a given tokenizer, or whole sentences.

A stream in, a stream out: one article is in memory at a time. Blocks are
disjoint and keep the article's title (Karpukhin et al. 2020, section 4.1). The
last block of an article is as short as it comes: DPR's published dump fills it
up from the article's beginning, which repeats text, and we do not.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..schema import Passage
from .public.build import passage_id
from .public.errors import BadLine, CorruptFile, MissingFile
from .public.record import Row

Span = tuple[int, int]

SIZE = 100


def by_words(articles: Iterable[tuple[str, str]], size: int = SIZE) -> Iterator[Passage]:
    """Passages of `size` words from (title, text) pairs; words are parted by blanks.

    Blanks within a passage become single ones. An article without words has
    no passage. Ids are the article's id and the block's number from 1.
    """
    _check(size)
    for title, text in articles:
        words = text.split()
        blocks = (" ".join(words[i : i + size]) for i in range(0, len(words), size))
        yield from _passages(title, text, blocks)


def by_tokens(
    articles: Iterable[tuple[str, str]],
    spans: Callable[[str], Sequence[Span]],
    size: int = SIZE,
) -> Iterator[Passage]:
    """Passages of at most `size` tokens, the article's own characters kept.

    spans: text -> (start, end) of each token in characters, in order;
    `spans_of` makes it from a Hugging Face tokenizer. A character made of
    several tokens is not cut, so a passage may be some tokens short of `size`.
    """
    _check(size)
    for title, text in articles:
        yield from _passages(title, text, _token_blocks(text, spans(text), size))


def by_sentences(
    text: str, size: int = SIZE, sentences: Callable[[str], Iterable[str]] | None = None
) -> Iterator[str]:
    """Blocks of at most `size` words that end where a sentence or a paragraph does.

    sentences: paragraph -> its sentences; None: spaCy's rules for English. Only
    a paragraph that is too long for a block is cut into its sentences, only a
    sentence that is too long into words. A heading (# Title) stays with what
    it heads, as a sentence. Blanks within a block become single ones; no text gives no block.
    """
    _check(size)
    block: list[str] = []
    for piece in _units(text, size, sentences):
        words = piece.split()
        if block and len(block) + len(words) > size:
            yield " ".join(block)
            block = []
        block += words
    if block:
        yield " ".join(block)


def spans_of(tokenizer: Any) -> Callable[[str], Sequence[Span]]:
    """The `spans` of a fast Hugging Face tokenizer, special tokens left out."""

    def spans(text: str) -> Sequence[Span]:
        out = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return out["offset_mapping"]

    return spans


def articles(path: Path | str) -> Iterator[tuple[str, str]]:
    """(title, text) for each line of a dump in JSON Lines, plain or gzipped, as it streams.

    Takes WikiExtractor's `--json` output and the like. Raises MissingFile,
    CorruptFile or BadLine, the last two where the stream has come to.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFile(path, "", "there is no such file", "give the path of the dump")
    number = 0
    with _open(path) as file:
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    row = Row(path, f"line {number}", _object(path, number, line))
                    yield row.take("title", str), row.take("text", str)
        except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
            problem = f"damaged ({error})"
            raise CorruptFile(
                path, f"after line {number}", problem, "copy or download the dump again"
            ) from error


def _open(path: Path) -> io.TextIOBase:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    opened = gzip.open if zipped else open
    return opened(path, "rt", encoding="utf-8-sig", newline="\n")


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadLine(
            path, f"line {number}", f"not JSON ({error.msg})", "correct or remove the line"
        ) from error
    if not isinstance(row, dict):
        raise BadLine(path, f"line {number}", "not a JSON object", "give one article a line")
    return row


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


def _passages(title: str, text: str, blocks: Iterable[str]) -> Iterator[Passage]:
    article = passage_id(title, text)
    for n, block in enumerate(blocks, start=1):
        yield Passage(f"{article}-{n}", title, block)


def _token_blocks(text: str, spans: Sequence[Span], size: int) -> Iterator[str]:
    begin = 0
    while begin < len(spans):
        end = min(begin + size, len(spans))
        # Tokens that overlap are parts of one character: cut before it, not in it.
        while begin + 1 < end < len(spans) and spans[end][0] < spans[end - 1][1]:
            end -= 1
        stop = spans[end][0] if end < len(spans) else len(text)
        if block := text[spans[begin][0] : stop].strip():
            yield block
        begin = end


def _check(size: int) -> None:
    if size < 1:
        raise ValueError(f"passages of {size} words or tokens: give a size of 1 or more")
