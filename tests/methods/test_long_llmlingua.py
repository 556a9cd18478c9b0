"""LongLLMLingua: ranking, budget, shares and the words that stay, worked by hand."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from rag_repro.lm.local import LocalReader
from rag_repro.lm.prompts import prompt_text
from rag_repro.methods import base
from rag_repro.methods.baselines.compressing import (
    IN_THEM,
    LongLLMLinguaSettings,
    best_tokens,
    long_llmlingua,
    shares_of,
    within_budget,
)
from rag_repro.schema import Generation, Passage, Question, Trace
from tests.lm import tiny
from tests.lm.scripted_reader import ScriptedReader, pieces
from tests.methods.scripted import Says, answer_of, ids
from tests.methods.shelf import FILM, MAN, OTHER, QUESTION, SONG, Shelf, bag, size, told_before

ALL = (SONG, FILM, MAN)
DOCUMENT = {p.id: f"(Title: {p.title}) {p.text}" for p in ALL}


def answer(question=QUESTION, passages=ALL, prompt="short", reads=told_before, **settings):
    small, reader = ScriptedReader(reads=reads), Says(" y")
    configured = base.get("long_llmlingua").configure(
        {"prompt": prompt, "compressor": "s", **settings}
    )
    got = answer_of(
        long_llmlingua, question, configured, retriever=Shelf(*passages), reader=reader, s=small
    )
    return got, reader, small


def compressed(got):
    return got.trace[-1]


def shown(reader):
    text = reader.prompts[0].rpartition("\n\n")[2]
    return [line.removeprefix("Passage: ") for line in text.split("\n") if "Passage: " in line]


def loss(document, question=QUESTION):
    """What `told_before` says of the question and its sentence behind a document."""
    odds = told_before(document, f"{question.text}{IN_THEM}").probability
    return -sum(map(log, odds)) / len(odds)


def test_everything_is_read_in_two_gathers():
    got, _, small = answer(budget=0, rate=0.5)
    asked = f"{QUESTION.text}{IN_THEM}"
    first = [(prompt_text(c.prompt), c.text) for c in small.calls[:6]]
    names = ("song", "film", "man")
    assert first == [(DOCUMENT[n], asked) for n in names] + [("", DOCUMENT[n]) for n in names]
    assert [c.prompt is None for c in small.calls[:6]] == [False] * 3 + [True] * 3
    taken = [n for n, words in compressed(got)["kept"].items() if words]
    assert [(prompt_text(c.prompt), c.text) for c in small.calls[6:]] == [
        (f"{QUESTION.text}\n\n", DOCUMENT[n]) for n in taken
    ]
    assert all(not c.layers for c in small.calls)
    assert got.cost.reads == 6 + len(taken)
    assert got.calls[0] == "Retrieve"
    assert set(got.calls[1:-1]) == {"Read"}


def test_passages_are_ranked_by_the_perplexity_of_the_question_behind_them():
    got, reader, _ = answer(rate=1)
    losses = {n: loss(DOCUMENT[n]) for n in DOCUMENT}
    ranked = sorted(losses, key=losses.get)
    assert ranked[0] == "film"
    assert ranked != ["song", "film", "man"]
    assert ids(got.hits) == ranked
    assert [e["passage"] for e in got.trace[:-1]] == ranked
    for event in got.trace[:-1]:
        n = event["passage"]
        assert event["perplexity"] == pytest.approx(exp(losses[n]), rel=1e-5)
        assert event["tokens"] == len(pieces(DOCUMENT[n]))
        assert event["stage"] == "rank"
    assert shown(reader) == [DOCUMENT[n] for n in ranked]
    _, reader, _ = answer(rate=1, order="original")
    assert shown(reader) == [DOCUMENT[p.id] for p in ALL]


def test_a_rate_of_1_keeps_everything_whatever_the_dynamic_ratio():
    for ratio in (0, 0.3, 1):
        event = compressed(answer(rate=1, dynamic_ratio=ratio, budget=0)[0])
        assert event["kept"] == event["before"]
        assert event["tokens"][0] == event["tokens"][1] == 12 + 15 + 13
        assert event["after"] == sum(map(size, DOCUMENT.values()))


def test_the_words_that_the_question_makes_likely_stay():
    # One passage of 15 tokens and a question of 6: target 0.5 (6 + 15) - 6 = 4.5 tokens.
    got, reader, _ = answer(passages=(FILM,), rate=0.5)
    alone = told_before("", DOCUMENT["film"]).probability
    beside = told_before(QUESTION.text, DOCUMENT["film"]).probability
    gains = [b > a for a, b in zip(alone, beside, strict=True)]
    words = DOCUMENT["film"].split()
    # What the passage says a second time was likely before; "directed" comes with the question.
    assert [w for w, g in zip(words, gains, strict=True) if g] == [
        "Glass", "Harbour)", "film.", "directed"
    ]  # fmt: skip
    # The first token stays, and pushes out the last of four equal ones.
    assert shown(reader) == ["(Title: Glass Harbour) film."]
    event = compressed(got)
    assert (event["tokens"], event["after"]) == ([15, 4], 25)
    assert event["kept"] == {"film": 25}


def test_swapping_the_question_changes_what_stays():
    film, other = (compressed(answer(q, rate=0.5)[0])["texts"] for q in (QUESTION, OTHER))
    assert film != other
    assert "directed" in " ".join(film)
    assert "Sarrow." in " ".join(other)


def test_the_order_of_passages_changes_nothing():
    seen = []
    for passages in (ALL, ALL[::-1]):
        got = answer(passages=passages, rate=0.5)[0]
        seen.append((got.trace[:-1], compressed(got)["texts"]))
    assert seen[0] == seen[1]


def test_passages_are_taken_until_the_budget_is_overstepped():
    plain = LongLLMLinguaSettings(budget=10)
    lengths = [30, 20, 25, 5]
    # 40 + 10: the second and third do not yet exceed it, the fourth would leave nothing over.
    assert within_budget([1, 2, 3, 0], lengths, 40, plain) == [1, 2, 3, 0]
    assert within_budget([1, 2, 3, 0], lengths, 39, plain) == [1, 2, 3]
    assert within_budget([1, 2, 3, 0], lengths, 9, plain) == [1]
    assert within_budget([0, 1, 2, 3], lengths, 20, plain) == [0, 1]
    # Less than nothing left for passages: a hundred all the same.
    assert within_budget([0, 1, 2, 3], [60, 40, 20, 5], -3, plain) == [0, 1, 2]
    assert within_budget([], [], 5, plain) == []


def test_better_passages_keep_a_larger_share():
    settings = LongLLMLinguaSettings(dynamic_ratio=0.3)
    assert shares_of([50, 30, 20], 55, settings) == pytest.approx([0.85, 0.55, 0.25])
    assert shares_of([50, 50], 90, settings) == pytest.approx([1.0, 0.6])
    assert shares_of([50, 50], 20, settings) == pytest.approx([0.5, 0.0])
    assert shares_of([50], 20, settings) == pytest.approx([0.4])
    assert shares_of([50], -7, settings) == [0.0]
    assert shares_of([], -7, settings) == []
    assert shares_of([50, 30], 40, LongLLMLinguaSettings(dynamic_ratio=0)) == [0.5, 0.5]


def read(probability):
    n = len(probability)
    trace = Trace(np.array(probability, dtype=np.float32), np.zeros(n, dtype=np.float32))
    return Generation("x" * n, tuple(range(n)), tuple(range(n)), "given", 1, 1, trace)


@pytest.mark.filterwarnings("error")
def test_tokens_stay_by_their_own_gain():
    # log gains: first unknown, then log 4, 0, log 1/2, log 2.
    alone = read([np.nan, 0.2, 0.5, 0.8, 0.4])
    beside = read([0.3, 0.8, 0.5, 0.4, 0.8])
    assert best_tokens(alone, beside, 0.0) == []
    assert best_tokens(alone, beside, 0.2) == [0]
    assert best_tokens(alone, beside, 0.4) == [0, 1]
    assert best_tokens(alone, beside, 0.6) == [0, 1, 4]
    assert best_tokens(alone, beside, 0.8) == [0, 1, 2, 4]
    assert best_tokens(alone, beside, 1.0) == [0, 1, 2, 3, 4]
    # Impossible is the least of all, and no error.
    assert best_tokens(read([np.nan, 0, 0.5]), read([1, 0, 0.4]), 0.7) == [0, 1]
    # 0.29 of 100 tokens are 29, though the product is a little less.
    assert len(best_tokens(read([0.5] * 100), read([0.5] * 100), 0.29)) == 29


def test_a_passage_that_loses_all_its_words_is_not_shown():
    # Two passages, a low rate: the second's share is 0.
    got, reader, _ = answer(passages=(FILM, SONG), rate=0.4, dynamic_ratio=0.5)
    assert len(shown(reader)) == 1
    event = compressed(got)
    assert (event["kept"]["song"], event["before"]["song"]) == (0, size(DOCUMENT["song"]))
    assert len(ids(got.hits)) == 2


def test_without_passages_or_prompt():
    got, reader, small = answer(passages=())
    assert (small.calls, shown(reader)) == ([], [])
    assert compressed(got)["texts"] == []
    got, reader, _ = answer(prompt=None)
    assert reader.prompts == []
    assert compressed(got)["texts"]


def test_settings_that_cannot_be():
    spec = base.get("long_llmlingua")
    assert spec.configure({}).needs == {"smollm2-135m": "reader"}
    for given, wrong in (
        ({"rate": 0.0}, "rate is 0.0"),
        ({"rate": 1.1}, "rate is 1.1"),
        ({"dynamic_ratio": -0.1}, "dynamic_ratio is -0.1"),
        ({"budget": -1}, "budget is -1"),
        ({"order": "sorted"}, "did you mean 'sort'"),
    ):
        with pytest.raises(ValueError, match=wrong):
            spec.configure(given)


def test_with_a_model_the_kept_text_is_made_of_its_tokens():
    small = LocalReader(tiny.loaded("llama"))
    text = "Łódź is a city; the film was born in Łódź. Who directed it?"
    passages = (Passage("a", "Łódź", text), Passage("b", "Rome", "Rome is the capital of Italy."))
    question = Question("q", "Who was born in Zürich?", ("x",))
    told = {}
    for rate in (1.0, 0.6):
        configured = base.get("long_llmlingua").configure({"rate": rate, "compressor": "s"})
        got = answer_of(long_llmlingua, question, configured, retriever=Shelf(*passages), s=small)
        told[rate] = compressed(got)
    assert sorted(told[1.0]["texts"]) == sorted(f"(Title: {p.title}) {p.text}" for p in passages)
    before, after = told[0.6]["tokens"]
    assert 0 < after < before == told[1.0]["tokens"][1]
    for part, whole in zip(told[0.6]["texts"], told[1.0]["texts"], strict=True):
        letters = iter(whole)
        assert part != whole
        assert all(letter in letters for letter in part)  # a subsequence
        assert bag(part)
