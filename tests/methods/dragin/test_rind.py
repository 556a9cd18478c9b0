"""RIND on arrays worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rag_repro.methods.dragin.draft_arrays import Draft, windows, words_of
from rag_repro.methods.dragin.dynamic_settings import RELEASED, Rind
from rag_repro.methods.dragin.timing import Moment, bare, influence, rind, scores
from tests.methods.dragin.language import SMALL

# Two heads over two prompt tokens and three new ones; rows sum to one, nobody looks ahead.
ATTENTION = np.array(
    [
        [
            [0.1, 0.2, 0.7, 0.0, 0.0],
            [0.1, 0.1, 0.5, 0.3, 0.0],
            [0.0, 0.1, 0.2, 0.6, 0.1],
        ],
        [
            [0.4, 0.4, 0.2, 0.0, 0.0],
            [0.2, 0.2, 0.1, 0.5, 0.0],
            [0.1, 0.1, 0.4, 0.2, 0.2],
        ],
    ]
)


@pytest.mark.parametrize(
    ("heads", "own_row", "expected"),
    [
        # Token 0 is looked at by 1 (0.5, 0.1) and 2 (0.2, 0.4); token 1 by 2 (0.6, 0.2).
        ("mean", False, [0.3, 0.4, 0.0]),
        ("max", False, [0.5, 0.6, 0.0]),
        ("mean_of_max", False, [0.45, 0.4, 0.0]),
        # With its own look: token 0 (0.7, 0.2), token 1 (0.3, 0.5), token 2 (0.1, 0.2).
        ("mean", True, [0.45, 0.4, 0.15]),
        ("max", True, [0.7, 0.6, 0.2]),
        ("mean_of_max", True, [0.55, 0.55, 0.15]),
    ],
)
def test_equation_3(heads, own_row, expected):
    np.testing.assert_allclose(influence(ATTENTION, heads, own_row), expected)


def test_read_alone_the_first_token_has_all_of_its_own_attention():
    alone = ATTENTION[:, :, 2:] / ATTENTION[:, :, 2:].sum(-1, keepdims=True)
    assert influence(alone, "mean_of_max", own_row=True)[0] == 1.0


def test_a_single_token_influences_nothing():
    assert influence(ATTENTION[:, :1, :3]).tolist() == [0.0]


PIECES = (
    "The",
    " book",
    " was",
    " wr",
    "itten",
    " in",
    " Bra",
    "k",
    ".",
    " It",
    " is",
    " 18",
    "47",
    ".",
)
ENTROPY = np.array([0.1, 0.2, 0.3, 1.0, 0.6, 0.2, 2.0, 0.4, 0.1, 0.5, 0.1, 3.0, 1.0, 0.0])


def looks(values) -> np.ndarray:
    """One head in which the next token gives each the value, whatever rows then sum to."""
    n = len(values)
    made = np.zeros((1, n, n))
    for i, value in enumerate(values[:-1]):
        made[0, i + 1, i] = value
    return made


# a_max of each token; the last has none that could look at it.
INFLUENCE = [0.1, 0.2, 0.9, 0.4, 0.5, 0.9, 0.3, 0.5, 0.1, 0.6, 0.2, 0.2, 0.4, 0.0]
DRAFT = Draft(PIECES, np.full(14, 0.5), ENTROPY, looks(INFLUENCE))


def test_words_end_where_white_space_begins():
    assert [("".join(PIECES[a:b])) for a, b in words_of(PIECES)] == [
        "The", " book", " was", " written", " in", " Brak.", " It", " is", " 1847."
    ]  # fmt: skip
    assert words_of(()) == ()


def test_the_first_tokens_know_nothing_of_later_ones():
    behind = Draft(PIECES[:3], ENTROPY[1:4], ENTROPY[:3], ATTENTION, ("Who", " else?"))
    two = behind.first(2)
    assert (two.text, two.before, two.tokens) == ("The book", behind.before, ((0, 1), (1, 2)))
    np.testing.assert_array_equal(two.probability, ENTROPY[1:3])
    np.testing.assert_array_equal(two.entropy, ENTROPY[:2])
    np.testing.assert_array_equal(two.attention, ATTENTION[:, :2, :4])
    assert replace(behind, attention=None).first(2).attention is None


def test_where_question_and_answer_begin_before_a_draft():
    before = ("[1] Was it?", "\n", "Q:", " Was", " it?", " Yes.", " Was it?", " So")
    draft, said = Draft((" x",), np.ones(1), np.ones(1), None, before), " Yes. Was it? So"
    assert draft.asked("Was it?", said)[0] == 3
    assert draft.asked("Is it?", said) == draft.asked("", "") == (0, 0)
    assert (draft.answered_at(said), draft.answered_at("")) == (5, 8)


def test_equation_5_token_by_token():
    told = scores(DRAFT, Rind(), SMALL)
    s = [0, 1, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1]  # The, was, in, is are stop words
    np.testing.assert_allclose(told.meaning, s)
    np.testing.assert_allclose(told.score, ENTROPY * INFLUENCE * s)


@pytest.mark.parametrize(
    ("factors", "token", "value"),
    [
        (("entropy", "attention", "meaning"), 3, 1.0 * 0.4),
        (("entropy", "attention"), 2, 0.3 * 0.9),
        (("entropy", "meaning"), 6, 2.0),
        (("attention", "meaning"), 4, 0.5),
        (("surprise",), 0, 0.5),
    ],
)
def test_each_factor_can_be_left_out(factors, token, value):
    assert scores(DRAFT, Rind(factors=factors), SMALL).score[token] == pytest.approx(value)


def test_the_first_token_above_the_threshold_is_the_moment():
    """Scores of meaning: 0.04 book, 0.4 wr, 0.3 itten, 0.6 Bra, 0.2 k, 0.3 It, 0.6 18, 0.4 47."""
    assert rind(DRAFT, Rind(threshold=0.35), SMALL)[0] == Moment(3, ((3, 4),), (0, 9))
    assert rind(DRAFT, Rind(threshold=0.4), SMALL)[0] == Moment(6, ((6, 7),), (0, 9))  # strictly
    assert rind(DRAFT, Rind(threshold=0.61), SMALL)[0] is None
    assert rind(DRAFT, Rind(threshold=0.35), SMALL, settled=7)[0] == Moment(
        11, ((11, 12),), (9, 14)
    )


def test_words_sum_attention_and_average_entropy():
    told = scores(DRAFT, Rind(unit="word"), SMALL)
    np.testing.assert_allclose(told.attention, [0.1, 0.2, 0.9, 0.9, 0.9, 0.9, 0.6, 0.2, 0.6])
    np.testing.assert_allclose(told.entropy, [0.1, 0.2, 0.3, 0.8, 0.2, 2.5 / 3, 0.5, 0.1, 4 / 3])
    assert [(s.begins, s.units) for s in told.sentences] == [(0, (0, 6)), (9, (6, 9))]


def test_attention_by_the_sentence_mean():
    told = scores(DRAFT, Rind(unit="word", normalise=True), SMALL)
    first, second = np.array([0.1, 0.2, 0.9, 0.9, 0.9, 0.9]), np.array([0.6, 0.2, 0.6])
    np.testing.assert_allclose(told.attention[:6], first / first.sum() * 6)
    np.testing.assert_allclose(told.attention[6:], second / second.sum() * 3)
    assert told.attention[:6].mean() == pytest.approx(1)


def test_as_released_the_sentence_goes_and_the_filter_cannot_stop_the_alarm():
    """Words' scores are entropy x attention: was 0.27, written 0.72, in 0.18, Brak. 0.75."""
    rules = Rind(
        **{k: v for k, v in RELEASED.items() if k in Rind.__dataclass_fields__}, threshold=0.17
    )
    rules = replace(rules, normalise=False, own_row=False)
    moment, _ = rind(DRAFT, rules, SMALL)
    # "was" and "in" are above it too, but bear no content; "in" is a part of no content word.
    assert moment == Moment(0, ((3, 5), (6, 9)), (0, 9))
    only = replace(rules, threshold=0.26, factors=("attention",))
    none = np.where(np.arange(14) == 2, INFLUENCE, 0.0)
    moment, _ = rind(replace(DRAFT, attention=looks(none)), only, SMALL)
    assert moment == Moment(0, (), (0, 9))


def test_content_is_looked_for_as_text_in_its_own_sentence():
    draft = Draft(("in", " rain", ".", " in", " b", "."), np.ones(6), np.ones(6), looks([0.5] * 6))
    told = scores(draft, Rind(unit="word", meaning="content"), SMALL)
    assert told.meaning.tolist() == [0, 1, 0, 1]


def test_a_cut_at_the_sentence_or_at_the_token():
    at = {
        cut: rind(DRAFT, Rind(threshold=0.35, cut=cut), SMALL)[0].keep
        for cut in ("token", "sentence")
    }
    assert at == {"token": 3, "sentence": 0}
    later = rind(DRAFT, Rind(threshold=0.35, cut="sentence"), SMALL, settled=9)[0]
    assert later == Moment(9, ((11, 12),), (9, 14))


def test_sentences_that_do_not_read_alike_lose_their_words_to_a_later_one():
    words = ["A", "b.", "C", "d.", "E."]
    assert windows(words, ["A b.", "C d.", "E."]) == ((0, 2), (2, 4), (4, 5))
    assert windows(words, ["A  b.", "C d.", "E."]) == ((0, 0), (0, 4), (4, 5))
    assert windows(words, ["A b.", "C  d.", "E."]) == ((0, 2), (2, 2), (2, 5))
    assert windows(words, []) == ()


def test_a_draft_without_attention_is_refused():
    with pytest.raises(ValueError, match="trace=True"):
        scores(replace(DRAFT, attention=None), Rind(), SMALL)


def test_bare_words():
    assert [bare(w) for w in ('"1964."', "(the", "...", "o'clock,")] == [
        "1964",
        "the",
        "...",
        "o'clock",
    ]
