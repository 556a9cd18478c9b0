"""Sentences for methods that write one at a time: the splitter that is handed to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rag_repro import splitter
from rag_repro.schema import Until


@dataclass(frozen=True)
class Sentences:
    """A sentence splitter by name: what a stop rule's results are cached under.

    split: text -> its sentences in order, each as it stands in the text.
    """

    name: str
    split: Callable[[str], Iterable[str]]

    def in_text(self, text: str) -> list[str]:
        """The sentences that say something, in order, each as it stands in the text."""
        return [one for one in self.split(text) if any(c.isalnum() for c in one)]

    def first(self, text: str) -> tuple[str, int]:
        """The first sentence that says something, and the character behind it.

        Without any: "" and the text's length. White space in it becomes single blanks.
        """
        if not (found := self.in_text(text)):
            return "", len(text)
        sentence = found[0].strip()
        return " ".join(sentence.split()), text.index(sentence) + len(sentence)

    def until_first(self) -> Until:
        """Stop rule: a second sentence has begun, so that the first is complete."""
        return Until(f"first sentence by {self.name}", lambda text: len(self.in_text(text)) > 1)


ENGLISH = Sentences("spaCy's rules for English", lambda text: splitter.english()(text))
