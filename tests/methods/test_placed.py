"""Gold passages moved among the others: which passages there are stays as it was."""

from __future__ import annotations

import pytest

from rag_repro.methods import base
from rag_repro.schema import Gold, Question
from tests.methods.scripted import Says, Tables, answer_of, ids

QUESTION = Question(
    id="q7",
    text="q?",
    answers=("x",),
    gold=(Gold("c"), Gold("b")),
    candidates=("b", "e", "c", "d", "f"),
)
RANKING = Tables({"q?": ["a", "b", "d", "e", "c", "f", "g", "h"]})


def placed(question=QUESTION, reader=None, **settings):
    spec = base.get("placed_gold")
    services = {"retriever": RANKING, "reader": reader}
    return answer_of(spec.run, question, spec.configure(settings), **services)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"k": 6, "place": "first"}, "bcadef"),
        ({"k": 6, "place": "middle"}, "adbcef"),
        ({"k": 6, "place": "last"}, "adefbc"),
        # Of five candidates the others are d, e, f: one of them stands before the middle.
        ({"place": "middle", "own_candidates": True}, "dbcef"),
        ({"k": 2, "place": "last"}, "ab"),  # a gold passage that was not found is not added
        ({"k": 1}, "a"),
    ],
)
def test_gold_stands_together_and_all_else_as_it_was(settings, wanted):
    assert "".join(ids(placed(**settings).hits)) == wanted


def test_the_reader_is_shown_them_in_this_order():
    reader = Says("x")
    placed(reader=reader, k=6, place="last", prompt="short")
    [prompt] = reader.prompts
    shown = [prompt.index(f"Passage: {name * 2}") for name in "adefbc"]
    assert shown == sorted(shown)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="place is 'midle', did you mean 'middle'"):
        base.get("placed_gold").configure({"place": "midle"})
    with pytest.raises(AssertionError, match="names no gold passages"):
        placed(question=Question("q", "q?", ("x",)))
