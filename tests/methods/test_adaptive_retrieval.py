"""Adaptive Retrieval: who is searched for, and the threshold that training questions give."""

from __future__ import annotations

import pytest

from rag_repro import engine
from rag_repro.methods import base
from rag_repro.methods.baselines.adaptive_retrieval import (
    AdaptiveRetrievalSettings,
    adaptive_retrieval,
    best_threshold,
    names,
)
from rag_repro.schema import Hit, Passage, Question
from tests.methods.golden import World
from tests.methods.scripted import Says, Tables, answer_of, ids

RANKING = Tables({"q?": ["a", "b", "c", "d"]})


def answer(meta, **settings):
    reader = Says("x")
    configured = base.get("adaptive_retrieval").configure({"prompt": "short", **settings})
    got = answer_of(
        adaptive_retrieval, Question("q", "q?", (), meta=meta), configured, retriever=RANKING,
        reader=reader,
    )  # fmt: skip
    return got, reader.prompts


def test_only_what_is_less_popular_than_the_threshold_is_searched_for():
    got, [prompt] = answer({"popularity": 59})
    assert got.calls == ("Retrieve", "Generate")
    assert ids(got.hits) == ["a", "b", "c"]
    assert "Passage: aa\nPassage: bb\nPassage: cc\nQuestion: q?" in prompt
    assert list(got.trace) == [
        {"stage": "decide", "by": "testbed", "value": 59.0, "threshold": 60.0, "retrieve": True}
    ]
    got, [prompt] = answer({"popularity": 60})
    assert got.calls == ("Generate",)
    assert (got.hits, got.prediction, got.cost.retrievals) == ((), "x", 0)
    assert "aa" not in prompt
    assert got.trace[0]["retrieve"] is False


def test_the_threshold_is_a_setting_and_page_views_have_one_of_their_own():
    assert answer({"popularity": 59}, threshold=59)[0].calls == ("Generate",)
    assert answer({"s_pop": 999}, popularity="wikipedia", threshold=1000)[0].cost.retrievals == 1
    assert answer({"s_pop": 1000}, popularity="wikipedia", threshold=1000)[0].cost.retrievals == 0


def test_a_question_without_popularity_fails_and_is_told_what_could_stand_in():
    with pytest.raises(AssertionError, match=r"'q' has no 'popularity' in its meta.*: mentions"):
        answer({"s_pop": 3})
    with pytest.raises(AssertionError, match=r"'q' has no 's_pop' in its meta"):
        answer({"popularity": 3}, popularity="wikipedia", threshold=5)


class Corpus:
    """Finds what names the query first, and fills up with what does not."""

    def __init__(self, *texts):
        self.passages = [Passage(str(i), title, text) for i, (title, text) in enumerate(texts)]
        self.asked = []

    def search(self, queries, k, within=None):
        self.asked.append((tuple(queries), k))
        order = [sorted(self.passages, key=lambda p: q not in p.title + p.text) for q in queries]
        return [[Hit(p, 1.0, i) for i, p in enumerate(o[:k], start=1)] for o in order]


CORPUS = (
    ("Ansa Rhoe", "She was a composer."),
    ("Town", "ANSA RHOE lived here."),
    ("Song", "By Ansa Rhoe."),
    ("Other", "Ilvo Brannek, a director."),
    ("Ilvo Brannek", "He knew Ansa Rhoe."),
)


def mentions(text, **settings):
    retriever = Corpus(*CORPUS)
    configured = AdaptiveRetrievalSettings(popularity="mentions", k=2, **settings)
    got = answer_of(adaptive_retrieval, Question("q", text, ()), configured, retriever=retriever)
    return got, retriever.asked


def test_mentions_count_the_passages_that_hold_the_rarest_name():
    # Ansa Rhoe is in four passages, whatever the case of letters; Ilvo Brannek in two.
    text = "Who is older, Ansa Rhoe or Ilvo Brannek?"
    got, asked = mentions(text, threshold=3)
    assert asked == [(("Ansa Rhoe", "Ilvo Brannek"), 100), ((text,), 2)]
    assert (got.trace[0]["value"], got.trace[0]["retrieve"]) == (2.0, True)
    assert got.cost.retrievals == 3
    got, asked = mentions(text, threshold=2)
    assert (got.cost.retrievals, got.hits) == (2, ())
    # A count ends at the depth.
    assert mentions("Was Ansa Rhoe born?", threshold=3)[0].trace[0]["value"] == 4.0
    assert mentions("Was Ansa Rhoe born?", threshold=3, depth=3)[0].trace[0]["value"] == 3.0


def test_a_question_that_names_nobody_is_searched_for():
    got, asked = mentions("who was it?", threshold=1)
    assert got.trace[0] == {
        "stage": "decide", "by": "mentions", "value": 0.0, "threshold": 1, "retrieve": True
    }  # fmt: skip
    assert asked == [(("who was it?",), 2)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("In which town was the director of the film Glass Harbour born?", ("Glass Harbour",)),
        ("Mary of Denmark married whom?", ("Mary of Denmark",)),
        ("Who is older, Ilvo Brannek or Ansa Rhoe?", ("Ilvo Brannek", "Ansa Rhoe")),
        ("When was Ilvo Brannek's wife Łucja born?", ("Ilvo Brannek", "Łucja")),
        ("Who flew Apollo 13, or saw Apollo 13?", ("Apollo 13",)),
        ("Did J. R. R. Tolkien live in Oxford of old?", ("J. R. R. Tolkien", "Oxford")),
        ("Oxford, what is it?", ("Oxford",)),
        ("Was it 1960?", ()),
        ("Who sang The Quiet Orchard", ("The Quiet Orchard",)),
        ("What is Ilvo Brannek's Harbour of Glass?", ("Ilvo Brannek", "Harbour of Glass")),
    ],
)
def test_names_are_runs_of_capitalised_words(text, found):
    assert names(text) == found


def shuffled(**settings):
    configured = AdaptiveRetrievalSettings(popularity="shuffled", **settings)
    tasks = [
        engine.Task(Question(f"q{n}", "q?", (), meta={"popularity": 1}), adaptive_retrieval,
                    configured)
        for n in range(400)
    ]  # fmt: skip
    done = {task.question.id: got for task, got in engine.run(tasks, {"retriever": RANKING})}
    return [done[f"q{n}"].cost.retrievals for n in range(400)]


def test_shuffled_popularity_keeps_the_share_and_loses_the_question():
    assert 80 < sum(shuffled(threshold=0.25)) < 120  # four standard deviations about 100
    assert shuffled(threshold=0) == [0] * 400
    assert shuffled(threshold=1) == [1] * 400
    assert shuffled() == shuffled(threshold=0.5, seed=0)
    assert shuffled() != shuffled(seed=1)


def test_the_best_threshold_is_found_by_hand():
    # Retrieval helps the first, hurts the last two; equal popularity goes together.
    assert best_threshold([1, 5, 5, 9], [0, 1, 0, 1], [1, 1, 0, 0]) == 5
    # Helps one of popularity 5 and hurts nobody there: 9, the next value up.
    assert best_threshold([9, 5, 1, 5], [1, 0, 0, 1], [0, 1, 1, 1]) == 9
    # Helps everybody: above them all. Helps nobody: below, so no search.
    assert best_threshold([1, 9], [0, 0], [1, 1]) == 10
    assert best_threshold([1, 9], [1, 1], [1, 1]) == 1
    # Of two equally good ones the lower.
    assert best_threshold([1, 2, 3], [0, 1, 0], [1, 0, 1]) == 2
    with pytest.raises(ValueError, match="no questions"):
        best_threshold([], [], [])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"popularity": "test"}, r"popularity is 'test', did you mean 'testbed'\?"),
        ({"popularity": "wikipedia"}, "needs a threshold in its own unit.*rag-repro tune"),
        ({"popularity": "mentions"}, "needs a threshold in its own unit"),
        ({"popularity": "mentions", "threshold": 101}, "between 0 and 100"),
        ({"popularity": "shuffled", "threshold": 1.5}, "between 0 and 1"),
        ({"threshold": -1}, "threshold is -1"),
        ({"threshold": float("nan")}, "threshold (is|cannot be) nan"),
        ({"threshold": float("inf")}, "threshold (is|cannot be) inf"),
        ({"depth": 5}, "depth would do nothing with popularity 'testbed'"),
        ({"seed": 5}, "seed would do nothing with popularity 'testbed'"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        base.get("adaptive_retrieval").configure(settings)


@pytest.mark.parametrize("settings", [{}, {"popularity": "mentions", "threshold": 2}])
def test_results_are_equal_at_any_batch_size(settings):
    configured = AdaptiveRetrievalSettings(prompt="short", **settings)
    tasks = [
        engine.Task(
            Question(f"q{n}", "Is Glass Harbour older" + " very" * n, (),
                     meta={"popularity": 10 * n}), adaptive_retrieval, configured
        )
        for n in range(20)
    ]  # fmt: skip

    def answers(batch_size):
        services = {"retriever": World(), "reader": World()}
        done = engine.run(tasks, services, batch_size=batch_size)
        return {task.question.id: got for task, got in done}

    one = answers(1)
    assert answers(5) == answers(16) == one
    assert all(got.error is None for got in one.values())
