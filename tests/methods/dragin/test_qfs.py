"""QFS on the paper's own case (appendix C) and on arrays worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.methods.dragin.dynamic_settings import Qfs
from rag_repro.methods.dragin.queries import Context, attention_of, choice, qfs, query_of, taken
from tests.methods.dragin.language import SMALL


def pieces(text: str) -> tuple[str, ...]:
    words = text.split(" ")
    return (words[0], *(f" {w}" for w in words[1:]))


def row(context: tuple[str, ...], weights: dict[str, float]) -> np.ndarray:
    return np.array([weights.get(piece.strip(), 0.01) for piece in context])


QUESTION = "The arena can seat how many people? "
SAID = "The arena is the Androscoggin Bank Colisee. It has a seating capacity of"
CASE = (*pieces(QUESTION.strip()), *(f" {w}" for w in SAID.split()), " 4,250", ".")
WEIGHTS = {"seat": 0.2, "Androscoggin": 0.3, "Bank": 0.3, "Colisee.": 0.3}
WEIGHTS |= {"seating": 0.4, "capacity": 0.5}


def case(extra: dict[str, float] | None = None) -> tuple[Context, tuple]:
    at = CASE.index(" 4,250")
    attention = np.zeros((2, len(CASE), len(CASE)))
    attention[:, at] = row(CASE, WEIGHTS | (extra or {}))
    attention[:, at, at:] = 0
    return Context(CASE, attention, 0), ((at, at + 1),)


def test_the_case_of_appendix_c():
    context, hits = case()
    said = qfs(context, hits, Qfs(top_n=6), SMALL)
    assert said == "seat Androscoggin Bank Colisee. seating capacity"


def test_fewer_words_are_those_with_the_most_attention_in_the_order_of_the_text():
    context, hits = case({"seating": 0.6})
    assert qfs(context, hits, Qfs(top_n=2), SMALL) == "seating capacity"
    context, hits = case({"people?": 0.9})
    assert qfs(context, hits, Qfs(top_n=2), SMALL) == "people? capacity"


def test_heads_count_alike():
    context, hits = case()
    context.attention[1] = 0
    context.attention[1, hits[0][0], 0] = 9.0
    assert qfs(context, hits, Qfs(top_n=1), SMALL) == "The"


def test_candidates_can_begin_later_than_the_context():
    context, hits = case()
    later = Context(context.pieces, context.attention, 0, first=8)
    assert (
        qfs(later, hits, Qfs(top_n=6), SMALL) == "arena Androscoggin Bank Colisee. seating capacity"
    )


def test_words_of_the_prompt_between_question_and_answer_can_be_left_out():
    """The same attention; what stands at tokens 8 and 9 is the template's and no candidate."""
    context, hits = case({"is": 0.9})
    whole = Qfs(top_n=3)
    assert qfs(context, hits, whole, SMALL) == "is seating capacity"
    at = CASE.index(" is")
    without = Context(context.pieces, context.attention, 0, template=(at, at + 1))
    assert qfs(without, hits, whole, SMALL) == "Androscoggin seating capacity"
    content = Qfs(top_n=2, candidates="content")
    of_content = Context(context.pieces, context.attention, 0, template=(0, 8))
    assert qfs(of_content, hits, content, SMALL) == "seating capacity"
    told = choice(without, taken(without, hits, whole, SMALL), hits)
    assert len(told["context"]) == at + len(CASE[at + 1 : hits[0][1]])


def test_a_word_is_taken_where_one_of_its_tokens_is():
    context = Context((" Bra", "k", " in", " 18"), np.array([[[0.1, 0.7, 0.2, 0.0]]]), 3)
    assert qfs(context, ((3, 4),), Qfs(top_n=1), SMALL) == "Brak"


def test_of_the_hits_own_word_only_what_stands_before_it_is_taken():
    attention = np.array([[[0.1, 0.6, 0.3, 0.0]]])
    context = Context((" in", " 4,", "2", "50"), attention, 2)
    hits = ((2, 3),)
    words = taken(context, hits, Qfs(top_n=1), SMALL)
    assert query_of(context, words) == "4,"
    assert choice(context, words, hits) == {"context": ["in", "4,250"], "taken": [1]}


# Rows of tokens 2, 3, 4 over five columns, one head.
ROWS = np.array([[[0.5, 0.5, 0, 0, 0], [0.2, 0.6, 0.2, 0, 0], [0.1, 0.3, 0.4, 0.2, 0]]])
FIVE = Context((" a", " b", " cc", " dd", "e"), ROWS, 2)


@pytest.mark.parametrize(
    ("hits", "rule", "expected"),
    [
        (((2, 3),), "own", [0.5, 0.5, 0, 0, 0]),
        (((3, 4),), "own", [0.2, 0.6, 0.2, 0, 0]),
        # A word of tokens 3 and 4: each row's shares of what stands before 3, then the mean.
        (((3, 5),), "own", [(0.2 + 0.125) / 2, (0.6 + 0.375) / 2, (0.2 + 0.5) / 2, 0, 0]),
        (((3, 5),), "previous", [(0.5 + 0.2) / 2, (0.5 + 0.6) / 2, (0.0 + 0.2) / 2, 0, 0]),
        # Two hits count alike.
        (((2, 3), (3, 4)), "own", [0.35, 0.55, 0.1, 0, 0]),
        # What foretold token 2 is not known.
        (((2, 3),), "previous", [0, 0, 0, 0, 0]),
        ((), "own", [0, 0, 0, 0, 0]),
    ],
)
def test_what_hits_look_at(hits, rule, expected):
    np.testing.assert_allclose(attention_of(FIVE, hits, rule), expected)


def test_content_words_compete_whole_and_hits_are_none():
    words = (" the", " Bra", "k", " in", " town", " met", " Odd", ".")
    rows = np.array([[[0.5, 0.1, 0.15, 0.05, 0.2, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]]])
    context = Context(words, rows, 5)
    released = Qfs(top_n=2, row="own", candidates="content")
    assert qfs(context, ((5, 6),), released, SMALL) == "Brak town"
    three = Qfs(top_n=3, row="own", candidates="content")
    # Behind the hit stands a content word with no attention, which may still come in.
    assert qfs(context, ((5, 6),), three, SMALL) == "Brak town Odd."


def test_without_a_hit_the_first_words_are_the_query():
    context, _ = case()
    settings = Qfs(top_n=3, candidates="content")
    assert qfs(context, (), settings, SMALL) == "arena can seat"
    assert qfs(context, (), Qfs(top_n=3), SMALL) == "The arena can"


def test_an_empty_context_is_an_empty_query():
    nothing = Context((), np.zeros((1, 0, 0)), 0)
    assert qfs(nothing, (), Qfs(), SMALL) == ""
    assert qfs(nothing, (), Qfs(candidates="content"), SMALL) == ""
