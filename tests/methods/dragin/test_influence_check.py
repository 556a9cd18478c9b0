"""Whether a_max tells what moves the words behind: pairs, masks and shifts worked out by hand."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from rag_repro.evaluation import metrics
from rag_repro.methods.dragin.draft_arrays import Draft, text_of
from rag_repro.methods.dragin.draft_checks import (
    InfluenceCheckSettings,
    form,
    influence_check,
    looked_at,
    pairs_of,
    shift,
    without,
)
from rag_repro.methods.reading import PROMPTS
from rag_repro.schema import Answer
from rag_repro.study import line_fields, lines
from tests.lm.scripted_reader import Said, ScriptedReader, pieces
from tests.methods.dragin.language import SMALL
from tests.methods.dragin.test_loop import BARE, QUESTION, prompts
from tests.methods.scripted import answer_of

TEXT = " The Arena is Bank Hall of Oslo. It seats 90 men and 40 kids. So the answer is 90."
WORDS = pieces(TEXT)


def draft(text=TEXT, probability=None, before=(), looks=None):
    words = tuple(pieces(text))
    p = np.full(len(words), 0.5) if probability is None else np.array(probability)
    return Draft(words, p, np.zeros(len(words)), looks, before)


def at(word):
    place = WORDS.index(f" {word}")
    return (place, place + 1)


def test_pairs_are_neighbours_of_one_form_before_the_answer():
    held = pairs_of(draft(), PROMPTS["cot"], SMALL)
    said = [tuple(text_of(WORDS, word) for word in pair) for pair in held]
    assert said == [
        ("Arena", "Bank"),
        ("Hall", "Oslo."),
        ("seats", "men"),
        ("90", "40"),
        ("and", "kids."),
    ]


def test_a_last_word_has_nothing_behind_it_and_is_in_no_pair():
    held = list(pairs_of(draft(" Bank of Oslo"), PROMPTS["cot"], SMALL))
    assert held == []
    assert len(list(pairs_of(draft(" Bank of Oslo is"), PROMPTS["cot"], SMALL))) == 1


@pytest.mark.parametrize(
    ("word", "expected"), [("90", "number"), ("4,250", "number"), ("Bank", "name"), ("men", "word")]
)
def test_forms(word, expected):
    assert form(word) == expected


def test_a_max_is_of_the_rows_behind_the_word():
    """Two heads, tokens a b c behind one token of prompt; of b-c what they look at, and a."""
    looks = np.zeros((2, 4, 5))
    looks[0, 1, 1], looks[1, 1, 1] = 0.9, 0.7  # token 1 is in the word itself: not behind it
    looks[0, 2, 1], looks[1, 2, 1] = 0.2, 0.4
    looks[0, 3, 2], looks[1, 3, 2] = 0.5, 0.0
    one = draft(" ab cd ef gh", before=("x",), looks=looks)
    assert looked_at(one, (0, 2)) == pytest.approx(0.3)
    assert looked_at(one, (1, 2)) == pytest.approx(0.25)
    assert looked_at(one, (2, 3)) == 0.0


def test_a_masked_word_keeps_its_place():
    assert without(draft(), at("Bank")) == TEXT.replace(" Bank", " _")
    assert without(draft("Bank of"), (0, 1)) == "_ of"


def test_the_shift_is_of_the_same_tokens_behind():
    whole = draft(" a b c d e", [0.5, 0.5, 0.5, 0.25, 0.5])
    gone = draft(" a _ c d e", [0.5, 0.1, 0.25, 0.5, 0.5])
    assert shift(whole, gone, 3, 16) == pytest.approx(2 / 3 * np.log(2))
    assert shift(whole, gone, 3, 1) == pytest.approx(np.log(2))
    assert shift(whole, gone, 0, 16) is None
    assert shift(whole, draft(" a _ c d f"), 3, 16) is None
    longer = draft(" a _ _ c d e", [0.5, 0.1, 0.1, 0.25, 0.5, 0.5])
    assert shift(whole, longer, 3, 16) == pytest.approx(2 / 3 * np.log(2))


def looks_at(**more):
    """One head, whose every row looks alike at all, but more at these words."""

    def made(n_before):
        n = len(WORDS)
        looks = np.tril(np.full((n, n_before + n), 0.01), n_before)
        for word, value in more.items():
            place = WORDS.index(f" {word}")
            looks[place + 1 :, n_before + place] = value
        return looks[None]

    return made


def reads(**moves):
    """Each masked word takes so many nats from every token behind it."""

    def read(prompt, text):
        words = pieces(text)
        probability = [0.9] * len(words)
        for word, nats in moves.items():
            place = WORDS.index(f" {word}")
            if words[place] == " _":
                for i in range(place + 1, len(words)):
                    probability[i] = 0.9 * float(np.exp(-nats))
        return Said(text, probability)

    return read


def checked(looks, moves, **settings):
    n_before = len(pieces(BARE))
    script = [Said(TEXT, attention=looks_at(**looks)(n_before))]
    reader = ScriptedReader(script, reads=reads(**moves))
    method = partial(influence_check, language=SMALL)
    answer = answer_of(method, QUESTION, InfluenceCheckSettings(**settings), reader=reader)
    return answer, reader


def test_each_word_of_a_pair_is_masked_and_the_same_tokens_say_how_far_they_moved():
    answer, reader = checked({"Bank": 0.5, "Hall": 0.4}, {"Bank": 1.0, "Oslo.": 0.5}, pairs=2)
    assert answer.error is None
    assert answer.prediction == "90"
    # The draft, its reading, and two for each of two pairs.
    assert (answer.cost.reader_calls, answer.cost.reads) == (1, 5)
    assert prompts(reader)[0] == BARE
    first, second = answer.trace
    assert first["words"] == ["Bank", "Arena"]
    assert first["first"] is False
    assert first["a_max"] == [0.5, 0.01]
    assert first["moved"] == pytest.approx([1.0, 0.0], abs=1e-4)
    assert second["words"] == ["Hall", "Oslo."]
    assert second["first"] is True
    assert second["moved"] == pytest.approx([0.0, 0.5], abs=1e-4)


def test_what_a_record_keeps_and_its_metrics():
    answer, _ = checked({"Bank": 0.5, "Hall": 0.4}, {"Bank": 1.0, "Oslo.": 0.5}, pairs=2)
    fields = line_fields.of_decisions(QUESTION, answer)
    held = {"id": "a", "cluster": "a", "hits": [], "scores": {}, **fields}
    assert held["influence"] == [[0.5, 0.01, 1.0, 0.0, 0], [0.4, 0.01, 0.0, 0.5, 1]]
    assert "Bank" not in str(held)
    lines.line_bytes(held)
    got = {name: metrics.of_line(name, held) for name in ("moved_high", "moved_low")}
    assert got == {"moved_high": pytest.approx(0.5), "moved_low": pytest.approx(0.25)}
    # One pair of each order: in one the higher moves more by 1, in the other less by 1/2.
    assert metrics.of_line("moved_further", held) == 0.5
    assert metrics.of_line("moved_more", held) == pytest.approx((1.0 - 0.5) / 2)
    # Three of one order count as much as one of the other; without the other nothing is told.
    near = {**held, "influence": [[0.5, 0.1, 1.0, 0.0, 0]] * 3 + [[0.5, 0.1, 0.0, 0.5, 1]]}
    assert metrics.of_line("moved_further", near) == 0.5
    assert metrics.of_line("moved_more", near) == pytest.approx((1.0 - 0.5) / 2)
    alone = {**held, "influence": [[0.5, 0.1, 1.0, 0.0, 0]] * 3}
    assert metrics.of_line("moved_more", alone) is None is metrics.of_line("moved_further", alone)
    assert metrics.of_line("high_first", held) == 0.5
    empty = {**held, **line_fields.of_decisions(QUESTION, Answer())}
    del empty["influence"]
    assert metrics.of_line("moved_high", empty) is None is metrics.of_line("moved_further", empty)


@pytest.mark.parametrize(
    "entry", [3, [1, 2], [0.5, 0.1, 1.0, 0.0, 2], [0.5, 0.1, -1.0, 0.0, 1], [0.5, "a", 1, 0, 1]]
)
def test_another_field_is_refused(entry):
    held = {"id": "a", "cluster": "a", "hits": [], "scores": {}}
    with pytest.raises(lines.RecordError, match="influence"):
        lines.line_bytes({**held, "influence": [entry]})


def test_a_draft_without_pairs_is_read_no_more():
    reader = ScriptedReader([" It is so."])
    method = partial(influence_check, language=SMALL)
    answer = answer_of(method, QUESTION, InfluenceCheckSettings(), reader=reader)
    assert (answer.trace, answer.cost.reads) == ((), 0)


@pytest.mark.parametrize("changes", [{"pairs": 0}, {"reach": 0}, {"prompt": None}])
def test_settings_that_it_cannot_have_are_refused(changes):
    with pytest.raises(ValueError, match=r"at least 1|name a prompt"):
        InfluenceCheckSettings(**changes)
