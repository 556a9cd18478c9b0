"""From text to terms: one object for the index and for every query.

Indexing with one analysis and asking with another is a known way to lose
BM25 without an error (an index of stems asked with whole words finds
nothing), so a retriever holds a single `Analyzer`, writes it into its card,
and refuses an index that was made with another.

The default reads words between blanks. `suited` chooses characters and pairs of them for a
corpus whose script has no blanks between words.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

import regex

from rag_repro.retrieval.interface import RetrievalError
from rag_repro.schema.dataset import Corpus
from rag_repro.without_jax import bm25s
from rag_repro.words import UNSPACED, choices

WORDS = r"\w+"

# Korean has blanks, but particles stand at its words without one: it is read as Chinese is.
_LETTER = rf"[{UNSPACED}\p{{Hangul}}--\p{{P}}]"
_CHARACTER = regex.compile(rf"{_LETTER}\p{{M}}*", regex.V1)
_RUN = regex.compile(rf"(?:{_CHARACTER.pattern})+", regex.V1)
_UNREAD = regex.compile(rf"{_LETTER}|\p{{M}}", regex.V1)  # a mark ends a term of `WORDS`
_FAR = re.compile("[\u0300-\u1fff\u2070-\U0010ffff]+")  # quick: no Latin, no dashes or quotes
_SHARE = 0.01

# Name here -> name in bm25s.stopwords: Lucene's 33 words, and NLTK's 179,
# which also hold "who", "which", "before" and other words of questions.
_STOP_LISTS = {"english": "STOPWORDS_EN", "english_plus": "STOPWORDS_EN_PLUS"}
_WORDS_HASH = "stop_words_sha256"


@lru_cache
def _stop_words(name: str | None) -> frozenset[str]:
    if name is None:
        return frozenset()
    return frozenset(getattr(bm25s().stopwords, _STOP_LISTS[name]))


@lru_cache
def _stemmer(name: str):
    import Stemmer

    return Stemmer.Stemmer(name)


@dataclass(frozen=True)
class Analyzer:
    """How text becomes terms, in the order of the fields.

    lowercase: case is ignored.
    fold: accents are dropped ("Barât" is "Barat").
    pattern: regular expression of a term, as `WORDS`.
    stop_words: "english" (33), "english_plus" (179), or None: all are kept.
    stemmer: a PyStemmer algorithm as "english" (Snowball), or None.
    grams: in scripts without blanks between words, and in Korean, each character is a term, and
    so are up to this many neighbours; the pattern reads the rest, text is brought to the normal
    form NFC, and marks belong to words. 0: the pattern reads all, as it stands.

    Raises RetrievalError for a name that is not known, a pattern that is no regular
    expression, or grams that are no whole number from 0.
    """

    lowercase: bool = True
    fold: bool = False
    pattern: str = WORDS
    stop_words: str | None = "english"
    stemmer: str | None = None
    grams: int = 0

    def __post_init__(self):
        if type(self.grams) is not int or self.grams < 0:
            raise RetrievalError(
                f"analyzer: grams is {self.grams!r}; it must be a whole number from 0 (usual: 2)"
            )
        try:
            groups = re.compile(self.pattern).groups
        except re.error as error:
            raise RetrievalError(
                f"analyzer: pattern {self.pattern!r} is no regular expression ({error}); "
                f"use for example {WORDS!r}"
            ) from error
        if groups:
            raise RetrievalError(
                f"analyzer: pattern {self.pattern!r} holds a group, so that a term would be "
                "only a part of the match; write (?:...) instead of (...)"
            )
        if self.stop_words is not None and self.stop_words not in _STOP_LISTS:
            raise RetrievalError(
                f"analyzer: no stop words named {self.stop_words!r}"
                + choices(self.stop_words, _STOP_LISTS)
            )
        if self.stemmer is not None:
            from Stemmer import algorithms

            if self.stemmer not in (known := algorithms()):
                raise RetrievalError(
                    f"analyzer: no stemmer named {self.stemmer!r}" + choices(self.stemmer, known)
                )

    def __call__(self, text: str) -> list[str]:
        """The terms of `text` in order, repeats kept."""
        if self.lowercase:
            text = text.lower()
        if self.fold:
            text = "".join(
                c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)
            )
        stop = _stop_words(self.stop_words)
        found = self._with_grams(text) if self.grams else self._regex.findall(text)
        terms = [t for t in found if t and t not in stop]
        return _stemmer(self.stemmer).stemWords(terms) if self.stemmer else terms

    def _with_grams(self, text: str) -> Iterator[str]:
        text = unicodedata.normalize("NFC", text)
        for part in self._regex.findall(_RUN.sub(r" \g<0> ", text)):
            if not _RUN.match(part):
                yield part
                continue
            characters = _CHARACTER.findall(part)
            for at in range(len(characters)):
                for n in range(1, min(self.grams, len(characters) - at) + 1):
                    yield "".join(characters[at : at + n])

    @cached_property
    def _regex(self) -> Any:
        if self.grams:  # of `regex`, whose words hold their marks, as Hindi's must
            return regex.compile(rf"{_RUN.pattern}|{self.pattern}", regex.V1)
        return re.compile(self.pattern)

    @property
    def left_out(self) -> list[str]:
        """The stop words themselves, sorted."""
        return sorted(_stop_words(self.stop_words))

    @property
    def card(self) -> dict[str, Any]:
        """The fields (grams only where there are any), and a hash of the stop words themselves."""
        words = " ".join(self.left_out)
        fields = asdict(self)
        if not self.grams:  # cards from before there were grams keep their fingerprints
            del fields["grams"]
        return {**fields, _WORDS_HASH: hashlib.sha256(words.encode()).hexdigest()}

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits of everything here that can change the terms."""
        return hashlib.sha256(json.dumps(self.card, sort_keys=True).encode()).hexdigest()[:16]


def suited(corpus: Corpus) -> dict[str, Any]:
    """Fields in which the analyzer of this corpus differs from the default: {}, or {"grams": 2}.

    Grams where at least 1 % of all characters, titles included, are letters of a script without
    blanks between words, Korean, or marks beside their letter (as Hindi's vowels, or accents in
    the normal form NFD), which the default reads badly. In a mixed corpus words of other
    scripts are the same terms either way. One pass, quicker than an index.
    """
    total = unread = 0
    for passage in corpus.passages:
        for text in (passage.title, passage.text):
            total += len(text)
            if not text.isascii():
                unread += len(_UNREAD.findall("".join(_FAR.findall(text))))
    return {"grams": 2} if unread and unread >= _SHARE * total else {}
