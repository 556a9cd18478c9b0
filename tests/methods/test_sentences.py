"""The first sentence of what a reader is writing: when it is complete, and where it ends."""

from __future__ import annotations

import pytest

from rag_repro.methods.sentences import ENGLISH, Sentences

CASES = (
    (" It was shown in 1961. The", "It was shown in 1961.", 22, True),
    (" It was shown in 1961.", "It was shown in 1961.", 22, False),
    ("Dr. J. R. Orr left. He", "Dr. J. R. Orr left.", 19, True),
    ("She paid 3.5", "She paid 3.5", 12, False),
    (" - . ! Yes! No", "Yes!", 11, True),
    ("A\n man. C", "A man.", 7, True),
    (" . ", "", 3, False),
    ("", "", 0, False),
)


@pytest.mark.parametrize(("text", "sentence", "end", "complete"), CASES)
def test_the_first_sentence_and_the_rule_that_ends_it(text, sentence, end, complete):
    assert ENGLISH.first(text) == (sentence, end)
    assert ENGLISH.until_first().holds(text) is complete


def test_a_rule_is_known_by_its_splitter():
    assert ENGLISH.until_first() == ENGLISH.until_first()
    other = Sentences("lines", str.splitlines)
    assert other.until_first() != ENGLISH.until_first()
    assert other.first("a b  \nc") == ("a b", 3)
