"""Each query rule asked at the same moments, as the loop would ask it there."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from rag_repro.engine import Task, run
from rag_repro.evaluation import dynamic_metrics
from rag_repro.methods.dragin.draft_checks import (
    RULES,
    QueryCheckSettings,
    query_check,
)
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings
from rag_repro.methods.dragin.loop import dynamic
from tests.lm import tiny
from tests.lm.scripted_reader import ScriptedReader
from tests.methods.dragin.language import SMALL
from tests.methods.dragin.test_batches import QUESTIONS
from tests.methods.dragin.test_batches import Library as AnyLibrary
from tests.methods.dragin.test_loop import BARE, QUESTION, Library, prompts, with_passage
from tests.methods.scripted import answer_of, said

TEXT = " It is Bank Hall. It seats 4,250 men in all. So the answer is 4,250."
DOUBTS = {"Bank": 3.0, "4,250": 3.0, "men": 3.0}


def checked(text=TEXT, doubts=DOUBTS, **settings):
    reader, library = ScriptedReader([said(text, doubts)]), Library()
    settings = QueryCheckSettings(**{"threshold": 0.1, "top_n": 5, "few": 2, **settings})
    method = partial(query_check, language=SMALL)
    answer = answer_of(method, QUESTION, settings, reader=reader, retriever=library)
    return answer, reader, library


def test_every_alarm_of_the_draft_is_a_moment_and_nothing_is_written_anew():
    answer, reader, library = checked()
    assert prompts(reader) == [BARE]
    assert (answer.text, answer.prediction) == (TEXT, "4,250")
    # Three doubtful words, of which the one behind an alarm can be the next.
    assert [e["asked"]["full_context"].split()[-1] for e in answer.trace] == [
        "is",
        "seats",
        "4,250",
    ]
    assert answer.cost.reader_calls == 1
    assert answer.cost.retrievals == len(library.queries) == len(set(library.queries))


def test_every_rules_query_at_one_moment():
    answer, _, library = checked()
    at = answer.trace[1]
    before = "How many people can the arena seat? It is Bank Hall. It seats"
    assert tuple(at["asked"]) == RULES
    asked = at["asked"]
    assert asked["qfs"] == asked["first_words"] == "How many people can the"
    assert asked["question"] == QUESTION.text
    assert asked["full_context"].split() == before.split()
    assert asked["last_sentence"].strip() == "It is Bank Hall."
    assert asked["sentence"] == "It seats 4,250 men in all."
    # Nothing is doubtful by FLARE's mask, so that its sentence is whole either way.
    assert asked["sure_sentence"] == asked["masked_sentence"] == asked["sentence"]
    assert at["sentence"] == 2
    assert asked["qfs_few"] == asked["first_few"] == "How many"
    assert len(asked["random_words"].split()) == 5
    assert len(asked["random_few"].split()) == 2
    assert set(asked["random_words"].split()) <= set(before.split())
    # The prompt's "Answer:" stands among them, and the alarm's own word.
    assert (at["taken"], at["among"]) == (5, len(before.split()) + 2)
    places = {query: f"p{n}" for n, query in enumerate(library.queries, start=1)}
    assert at["found"] == {rule: [places[query]] for rule, query in asked.items()}


def test_the_prompts_own_word_is_left_out_where_that_is_asked():
    answer, _, _ = checked(top_n=100)
    at = answer.trace[0]["asked"]
    assert "Answer:" in at["qfs"].split()
    assert at["qfs_said"].split() == [w for w in at["qfs"].split() if w != "Answer:"]


def test_words_by_chance_are_as_many_as_words_of_qfs_and_not_as_its_tokens():
    """Words of several tokens are taken whole, so 25 tokens are fewer words."""
    answer, _, _ = checked(" Bank seats men.", {"seats": 3.0}, top_n=100)
    [at] = answer.trace
    qfs, chance = (at["asked"][rule].split() for rule in ("qfs", "random_words"))
    assert at["taken"] == len(qfs) == 9
    assert chance == [word for word in qfs if word != "Answer:"]


def test_luck_is_another_at_each_moment():
    doubts = dict.fromkeys([*TEXT.split()[:8], "in"], 3.0)
    answer, _, _ = checked(doubts=doubts, top_n=3)
    drawn = {tuple(e["asked"]["random_words"].split()) for e in answer.trace}
    assert len(drawn) > 3


def test_at_flares_moments_each_doubtful_sentence_asks_once():
    text = " It is old Hall. It seats 90 men. So the answer is 90."
    reader, library = (
        ScriptedReader([said(text, p={"old": 0.3, "90": 0.7, "men.": 0.2})]),
        Library(),
    )
    settings = QueryCheckSettings(timing="flare", doubt=0.8, mask=0.4)
    method = partial(query_check, language=SMALL)
    answer = answer_of(method, QUESTION, settings, reader=reader, retriever=library)
    # FLARE searches for the question first.
    assert prompts(reader) == [with_passage(1)]
    masked = [e["asked"]["sure_sentence"] for e in answer.trace]
    assert [" ".join(query.split()) for query in masked] == ["It is Hall.", "It seats 90"]
    assert [e["asked"]["masked_sentence"] for e in answer.trace] == ["It is Hall.", "It seats 90"]
    # The alarm is at the first word that is doubtful enough to search, and QFS asks for it.
    assert [e["among"] for e in answer.trace] == [11, 15]
    whole = [e["asked"]["sentence"] for e in answer.trace]
    assert whole == ["It is old Hall.", "It seats 90 men."]


def test_behind_a_first_search_the_draft_knows_its_passages():
    answer, reader, library = checked(first=True)
    assert prompts(reader) == [with_passage(1)]
    assert library.queries[0] == QUESTION.text
    assert [hit.passage.id for hit in answer.hits] == ["p1"]


def test_without_an_alarm_nothing_is_searched():
    answer, _, library = checked(doubts={})
    assert (answer.trace, library.queries) == ((), [])
    empty, _, _ = checked(text="")
    assert empty.trace == ()


@pytest.mark.parametrize("query", ["qfs", "full_context", "last_sentence", "random_words"])
def test_the_first_moment_is_the_loops(query):
    """On a real, if tiny, reader: the same token, and word for word the same query."""
    of_loop = DynamicSettings(threshold=0.3, max_new_tokens=16, top_n=4, query=query)
    of_check = QueryCheckSettings(threshold=0.3, max_new_tokens=16, top_n=4)

    def answers(method, settings):
        services = {"reader": tiny.reader(), "retriever": AnyLibrary()}
        small = partial(method, language=SMALL)
        tasks = [Task(question, small, settings) for question in QUESTIONS[:8]]
        return {task.question.id: answer for task, answer in run(tasks, services, batch_size=4)}

    told = answers(query_check, of_check)
    compared = 0
    for name, answer in answers(dynamic, of_loop).items():
        searches = [e["query"] for e in answer.trace if e["stage"] == "retrieve"]
        assert bool(searches) == bool(told[name].trace)
        # Chance goes by the place in the loop's trace.
        if searches and query != "random_words":
            assert told[name].trace[0]["asked"][query] == searches[0]
        compared += bool(searches)
    assert compared > 3


def test_its_rules_are_those_of_the_metrics():
    assert tuple(dynamic_metrics.RULES) == RULES


@pytest.mark.parametrize(
    "changes", [{"timing": "random"}, {"alone": True}, {"context": "again"}, {"few": 0}]
)
def test_settings_that_it_cannot_have_are_refused(changes):
    with pytest.raises(ValueError, match=r"FLARE's moments|few is 0"):
        replace(QueryCheckSettings(), **changes)
