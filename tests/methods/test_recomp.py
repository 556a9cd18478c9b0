"""RECOMP: which sentences stay, what a summary does, and what the trace says, worked by hand."""

from __future__ import annotations

import itertools
from math import sqrt

import numpy as np
import pytest

from rag_repro.lm.prompts import prompt_text
from rag_repro.methods import base
from rag_repro.methods.baselines.compressing import cosines, recomp
from rag_repro.methods.reading import PROMPTS
from tests.lm.scripted_reader import ScriptedReader
from tests.methods.scripted import Says, answer_of, ids
from tests.methods.shelf import FILM, MAN, OTHER, QUESTION, SIZES, SONG, Shelf, Words, size

BEST = "Glass Harbour is a film. Ilvo Brannek directed it."


def answer(question=QUESTION, passages=(FILM, MAN, SONG), prompt="short", reader=None, **settings):
    reader = reader or Says(" Brannek\nmore")
    encoder = Words()
    configured = base.get("recomp").configure({"prompt": prompt, **settings})
    services = {"retriever": Shelf(*passages), "minilm": encoder, "reader": reader}
    compressor = configured.compressor
    if compressor:
        services[compressor] = services.pop("compressor", reader)
    return answer_of(recomp, question, configured, **services), reader, encoder


def compressed(got):
    [event] = [e for e in got.trace if e["stage"] == "compress"]
    return event


def test_the_sentences_nearest_to_the_question_stay_in_text_order():
    got, reader, encoder = answer(n_sentences=2)
    [texts] = encoder.asked
    assert texts[0] == QUESTION.text
    assert texts[1:4] == ["Glass Harbour is a film.", "Ilvo Brannek directed it.", "It was long."]
    event = compressed(got)
    # Question: directed, film, glass, harbour. First sentence three of these; second one of its
    # two; "He was born in Sarrow." none; "Ash is a song." none.
    assert event["scores"] == pytest.approx(
        [3 / sqrt(4 * 3), 1 / sqrt(4 * 2), 0, 0, 0, 0, 0, 0], abs=1e-9
    )
    assert event["texts"] == [BEST]
    assert event["by"] == "extractive"
    assert event["before"] == SIZES
    assert (event["after"], event["kept"]) == (
        size(BEST),
        {"film": size(BEST), "man": 0, "song": 0},
    )
    [prompt] = reader.prompts
    assert prompt.endswith(f"Passage: {BEST}\nQuestion: {QUESTION.text}\nAnswer:")
    assert prompt.count("Passage:") == PROMPTS["short"].exemplars.count("Passage:") + 1
    assert (got.prediction, ids(got.hits)) == ("Brannek\nmore", ["film", "man", "song"])
    assert got.calls == ("Retrieve", "Encode", "Generate")


def test_a_better_sentence_that_comes_later_stays_behind():
    turned = type(FILM)("turned", "", "Ilvo Brannek directed it. Glass Harbour is a film. Long.")
    event = compressed(answer(passages=(turned,), n_sentences=2)[0])
    assert event["scores"][0] < event["scores"][1]
    assert event["texts"] == ["Ilvo Brannek directed it. Glass Harbour is a film."]


def test_blank_lines_behind_a_text_are_no_sentence():
    text = "\n\nGlass Harbour is a film.\n\n \n\nIlvo Brannek directed it.\n\n"
    got, _, encoder = answer(passages=(type(FILM)("spaced", "", text),), n_sentences=2)
    assert [one.strip() for one in encoder.asked[0][1:]] == BEST.replace(". ", ".|").split("|")
    assert len(compressed(got)["scores"]) == 2


def test_swapping_the_question_changes_what_stays():
    texts = [compressed(answer(q, n_sentences=1)[0])["texts"] for q in (QUESTION, OTHER)]
    assert texts == [["Glass Harbour is a film."], ["He was born in Sarrow."]]


def test_the_order_of_passages_changes_no_score_and_no_sentence():
    seen = []
    for passages in itertools.permutations((FILM, MAN, SONG)):
        event = compressed(answer(passages=passages, n_sentences=2)[0])
        n = {"film": 3, "man": 2, "song": 3}
        scores = iter(event["scores"])
        seen.append({p.id: [next(scores) for _ in range(n[p.id])] for p in passages})
        assert event["texts"] == [BEST]
    assert all(one == seen[0] for one in seen)


def test_enough_sentences_are_all_sentences():
    event = compressed(answer(n_sentences=99)[0])
    assert event["texts"] == [f"{FILM.text} {MAN.text} {SONG.text}"]
    assert event["kept"] == event["before"]
    assert event["after"] == sum(event["before"].values())


def test_equal_sentences_are_taken_from_the_front():
    # Nothing is near: the first ones in text order.
    event = compressed(answer(OTHER, passages=(SONG, FILM), n_sentences=4)[0])
    assert event["texts"] == [f"{SONG.text} Glass Harbour is a film."]


def test_a_sentence_may_be_headed_by_its_title():
    got, _, encoder = answer(n_sentences=1, titled=True, passages=(MAN,), question=OTHER)
    assert encoder.asked[0][2] == "Ilvo Brannek: He was born in Sarrow."
    event = compressed(got)
    assert event["texts"] == ["Ilvo Brannek: He was born in Sarrow."]
    assert (event["after"], event["kept"]) == (30, {"man": 18})


def test_without_a_passage_nothing_is_encoded_and_the_question_stands_alone():
    got, reader, encoder = answer(passages=(), prompt="drrag")
    assert encoder.asked == []
    assert compressed(got)["texts"] == []
    assert "Contexts" not in reader.prompts[0]


def test_without_a_prompt_the_compression_is_the_answer():
    got, reader, _ = answer(prompt=None, n_sentences=2)
    assert reader.prompts == []
    assert got.prediction is None
    assert compressed(got)["texts"] == [BEST]


def test_cosines_are_of_directions_and_null_vectors_are_far_from_all():
    rows = np.array([[2, 0], [0, 5], [3, 3], [0, 0]], dtype=np.float32)
    assert cosines(np.array([7, 0], dtype=np.float32), rows) == pytest.approx([1, 0, sqrt(0.5), 0])
    assert cosines(np.zeros(2, dtype=np.float32), rows).tolist() == [0, 0, 0, 0]


def summarised(summary, question=QUESTION, prompt="short", **settings):
    """Answered with a compressor of its own -> answer, both readers."""
    compressor, reader = ScriptedReader([summary]), Says(" y")
    given = {"kind": "abstractive", "compressor": "c", "prompt": prompt, **settings}
    got = answer_of(
        recomp, question, base.get("recomp").configure(given),
        retriever=Shelf(FILM, MAN), reader=reader, c=compressor,
    )  # fmt: skip
    return got, compressor, reader


def test_a_compressor_writes_the_summary_that_is_read():
    got, compressor, reader = summarised(" Brannek directed it.\n", summary_tokens=40)
    [call] = compressor.calls
    assert prompt_text(call.prompt) == (
        f"Question: {QUESTION.text}\n Document: {FILM.text}\n{MAN.text}\n Summary:"
    )
    assert (call.max_new_tokens, call.service, call.prompt.chat) == (40, "c", False)
    assert compressed(got) == {
        "stage": "compress",
        "by": "abstractive",
        "texts": ["Brannek directed it."],
        "after": 18,
        "before": {"film": SIZES["film"], "man": SIZES["man"]},
        "kept": None,
    }
    assert reader.prompts[0].endswith(
        f"Passage: Brannek directed it.\nQuestion: {QUESTION.text}\nAnswer:"
    )
    assert got.calls == ("Retrieve", "Generate", "Generate")
    assert ids(got.hits) == ["film", "man"]


@pytest.mark.parametrize("nothing", ["", " \n "])
def test_an_empty_summary_means_no_documents(nothing):
    got, _, reader = summarised(nothing, prompt="drrag")
    assert (compressed(got)["texts"], compressed(got)["after"]) == ([], 0)
    assert reader.prompts[0] == PROMPTS["drrag"].bare.format(question=QUESTION.text)


def test_what_the_other_kind_needs_is_refused():
    spec = base.get("recomp")
    assert spec.configure({}).needs == {"minilm": "encoder"}
    assert spec.configure({"kind": "abstractive"}).needs == {"recomp-abstractive-testbed": "reader"}
    for given, wrong in (
        ({"compressor": "c"}, "compressor would do nothing with kind 'extractive'"),
        ({"kind": "abstractive", "n_sentences": 3}, "n_sentences would do nothing"),
        ({"kind": "extractiv"}, "did you mean 'extractive'"),
        ({"n_sentences": 0}, "n_sentences is 0"),
        ({"kind": "abstractive", "summary_tokens": 0}, "summary_tokens is 0"),
    ):
        with pytest.raises(ValueError, match=wrong):
            spec.configure(given)
