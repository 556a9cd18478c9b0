"""CRAG: decision, strips and what is read, worked by hand."""

from __future__ import annotations

import pytest

from rag_repro.methods import base
from rag_repro.methods.baselines.compressing import crag
from tests.methods.scripted import Says, answer_of, ids
from tests.methods.shelf import FILM, MAN, OTHER, QUESTION, SIZES, SONG, Shares, Shelf, size

# By `Shares`: film has directed, film, glass, harbour of the question's words; the others none.
ALL = (SONG, FILM, MAN)
ONE = {"strip": 1, "n_strips": 2}
REFINED = "Glass Harbour is a film.; Ilvo Brannek directed it."


def answer(question=QUESTION, passages=ALL, prompt="short", **settings):
    reader, evaluator = Says(" y"), Shares()
    given = {"prompt": prompt, "evaluator": "e", "upper": 0.5, "lower": 0.125, **settings}
    configured = base.get("crag").configure(given)
    got = answer_of(
        crag, question, configured, retriever=Shelf(*passages), reader=reader, e=evaluator
    )
    return got, reader, evaluator


def compressed(got):
    [event] = [e for e in got.trace if e["stage"] == "compress"]
    return event


def shown(reader):
    """The passages in the prompt, after the exemplars."""
    text = reader.prompts[0].rpartition("\n\n")[2]
    return [line.removeprefix("Passage: ") for line in text.split("\n") if "Passage: " in line]


def test_a_passage_above_the_upper_threshold_is_refined_and_read_alone():
    got, reader, evaluator = answer(**ONE)
    whole, strips = evaluator.asked[0][:3], evaluator.asked[0][3:]
    assert whole == [(QUESTION.text, p.text) for p in ALL]
    # Short ones ("It was short.") are not judged.
    assert [s for _, s in strips] == [
        "Ash is a song.", "Glass Harbour is a film.", "Ilvo Brannek directed it.",
        "Ilvo Brannek was a director.", "He was born in Sarrow.",
    ]  # fmt: skip
    assert all(q == QUESTION.text for q, _ in strips)
    judged = [(e["passage"], e["relevant"]) for e in got.trace if e["stage"] == "evaluate"]
    assert judged == [(n, pytest.approx(p)) for n, p in (("song", 0), ("film", 0.5), ("man", 0))]
    event = compressed(got)
    assert (event["decision"], event["strips"], event["by"]) == ("correct", 2, "crag")
    assert shown(reader) == [REFINED]
    assert event["kept"] == {"song": 0, "film": size(REFINED) - 1, "man": 0}
    assert event["after"] == size(REFINED)
    assert ids(got.hits) == ["song", "film", "man"]
    assert got.cost.scored == 8


def test_blank_lines_behind_a_text_are_no_strip():
    text = "\n\nGlass Harbour is a film.\n\n  \n\nIlvo Brannek directed it.\n\n"
    got, _, evaluator = answer(passages=(type(FILM)("spaced", "", text),), strip=1, n_strips=3)
    strips = [strip.strip() for _, strip in evaluator.asked[0][1:]]
    assert strips == ["Glass Harbour is a film.", "Ilvo Brannek directed it."]
    assert compressed(got)["strips"] == 2


def test_strips_stand_in_the_order_of_their_scores():
    # The last passage's first sentence has three of the question's words, its second one;
    # of those with none the first in the text.
    _, reader, _ = answer(passages=(MAN, SONG, FILM), strip=1, n_strips=3)
    assert shown(reader) == [
        "Glass Harbour is a film.; Ilvo Brannek directed it.; Ilvo Brannek was a director."
    ]


def test_an_ambiguous_question_has_its_passages_added_as_they_were():
    got, reader, _ = answer(upper=0.51, **ONE)
    event = compressed(got)
    assert event["decision"] == "ambiguous"
    assert shown(reader) == [REFINED, SONG.text, FILM.text, MAN.text]
    assert event["kept"] == event["before"]
    assert event["after"] == size(REFINED) + sum(event["before"].values())


def test_an_incorrect_question_is_read_as_ambiguous_or_without_passages():
    got, reader, _ = answer(upper=0.9, lower=0.6, **ONE)
    event = compressed(got)
    assert (event["decision"], event["strips"]) == ("incorrect", 2)
    assert len(shown(reader)) == 4
    got, reader, _ = answer(upper=0.9, lower=0.6, incorrect="nothing", **ONE)
    event = compressed(got)
    assert (event["decision"], event["strips"], event["texts"]) == ("incorrect", 0, [])
    assert (shown(reader), event["after"]) == ([], 0)
    assert set(event["kept"].values()) == {0}
    # Only an incorrect one: others are read as ever.
    for upper, n in ((0.5, 1), (0.9, 4)):
        assert len(shown(answer(upper=upper, incorrect="nothing", **ONE)[1])) == n


@pytest.mark.parametrize(
    ("upper", "lower", "decision"),
    [(0.5, 0.5, "correct"), (0.51, 0.5, "ambiguous"), (0.51, 0.51, "incorrect")],
)
def test_a_threshold_is_reached_by_equality(upper, lower, decision):
    assert compressed(answer(upper=upper, lower=lower)[0])["decision"] == decision


def test_strips_of_three_sentences_or_whole_passages():
    got, reader, evaluator = answer(n_strips=99)
    assert [s for _, s in evaluator.asked[0][3:]] == [SONG.text, FILM.text, MAN.text]
    long = type(FILM)("long", "Long", f"{FILM.text} {MAN.text}")
    got, reader, evaluator = answer(passages=(long,), n_strips=99)
    assert [s for _, s in evaluator.asked[0][1:]] == [FILM.text, MAN.text]
    assert shown(reader) == [f"{FILM.text}; {MAN.text}"]
    assert compressed(got)["kept"] == {"long": SIZES["film"] + SIZES["man"]}
    got, reader, evaluator = answer(passages=(long, SONG), strip=None, n_strips=1)
    assert [s for _, s in evaluator.asked[0][2:]] == [long.text, SONG.text]
    assert shown(reader) == [long.text]


def test_swapping_the_question_changes_what_is_kept():
    kept = [
        compressed(answer(q, upper=0.125, strip=1, n_strips=1)[0])["texts"]
        for q in (QUESTION, OTHER)
    ]
    assert kept[0] != kept[1]


def test_the_order_of_passages_changes_no_score():
    orders = (ALL, ALL[::-1])
    told = [
        {e["passage"]: e["relevant"] for e in answer(passages=p)[0].trace if "passage" in e}
        for p in orders
    ]
    assert told[0] == told[1]


def test_without_passages_or_prompt():
    got, reader, _ = answer(passages=())
    assert (compressed(got)["decision"], shown(reader)) == ("incorrect", [])
    got, reader, _ = answer(prompt=None)
    assert reader.prompts == []
    assert compressed(got)["decision"] == "correct"


def test_settings_that_cannot_be():
    spec = base.get("crag")
    assert spec.configure({}).needs == {"crag-evaluator-testbed": "scorer"}
    for given, wrong in (
        ({"upper": 0.1, "lower": 0.2}, "lower 0.2 and upper 0.1"),
        ({"upper": 1.1}, "must be probabilities"),
        ({"n_strips": 0}, "n_strips is 0"),
        ({"strip": 0}, "strip is 0"),
        ({"incorrect": "nothin"}, "did you mean 'nothing'"),
    ):
        with pytest.raises(ValueError, match=wrong):
            spec.configure(given)
    assert spec.configure({"strip": None}).strip is None
