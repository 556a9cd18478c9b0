"""From text to terms: one object for the index and for every query.

Indexing with one analysis and asking with another is a known way to lose
BM25 without an error (an index of stems asked with whole words finds
nothing), so a retriever holds a single `Analyzer`, writes it into its card,
and refuses an index that was made with another.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

from ..without_jax import bm25s
from .base import RetrievalError, choices

WORDS = r"\w+"
LONG_WORDS = r"\b\w\w+\b"  # two characters or more: the default of bm25s and scikit-learn
CHINESE = r"[一-鿿]|[^\W一-鿿]+"  # each Han character is a term of its own

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


@lru_cache
def _stemmers() -> tuple[str, ...]:
    import Stemmer

    return tuple(Stemmer.algorithms())


@dataclass(frozen=True)
class Analyzer:
    """How text becomes terms, in the order of the fields.

    lowercase: case is ignored.
    fold: accents are dropped ("Barât" is "Barat").
    pattern: regular expression of a term, as `WORDS`.
    stop_words: "english" (33), "english_plus" (179), or None: all are kept.
    stemmer: a PyStemmer algorithm as "english" (Snowball), or None.

    Raises RetrievalError for a name that is not known or a pattern that is
    no regular expression.
    """

    lowercase: bool = True
    fold: bool = False
    pattern: str = WORDS
    stop_words: str | None = "english"
    stemmer: str | None = None

    def __post_init__(self):
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
        if self.stemmer is not None and self.stemmer not in _stemmers():
            raise RetrievalError(
                f"analyzer: no stemmer named {self.stemmer!r}" + choices(self.stemmer, _stemmers())
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
        terms = [t for t in self._regex.findall(text) if t and t not in stop]
        return _stemmer(self.stemmer).stemWords(terms) if self.stemmer else terms

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    @property
    def left_out(self) -> list[str]:
        """The stop words themselves, sorted."""
        return sorted(_stop_words(self.stop_words))

    @property
    def card(self) -> dict[str, Any]:
        """The fields, and a hash of the stop words themselves."""
        words = " ".join(self.left_out)
        return {**asdict(self), _WORDS_HASH: hashlib.sha256(words.encode()).hexdigest()}

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits of everything here that can change the terms."""
        return hashlib.sha256(json.dumps(self.card, sort_keys=True).encode()).hexdigest()[:16]

    @classmethod
    def from_card(cls, card: Mapping[str, Any]) -> Analyzer:
        """The analyzer of a stored card; the caller compares the cards."""
        return cls(**{name: value for name, value in card.items() if name != _WORDS_HASH})


DEFAULT = Analyzer()
