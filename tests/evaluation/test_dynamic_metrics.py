"""How dynamic retrieval went, out of a record's line."""

from __future__ import annotations

import pytest

from rag_repro.evaluation import metrics

NAMES = ("drafts", "alarms", "judged_words", "alarm_rate", "blank_alarms", "asked_again")
SEARCHES = ("query_recall", "alarm_recall", "found_gold", "new_gold")
GOLD = [["static", 1, None], ["dynamic", 2, None]]


def line(gold=GOLD, **told):
    base = {"drafts": 3, "alarms": 2, "again": False, "found": [[0], [], [0, 1]]}
    return {"scores": {}, "gold": gold, "hits": [], "dynamic": {**base, **told}}


def of(name, *lines):
    return [metrics.of_line(name, each) for each in lines]


def test_counts():
    assert of("drafts", line()) == [3.0]
    assert of("alarms", line()) == [2.0]
    assert of("asked_again", line(), line(again=True)) == [0.0, 1.0]
    assert of("judged_words", line(judged=40), line()) == [40.0, None]


def test_rates_are_of_the_words_judged_and_of_the_alarms_given():
    assert of("alarm_rate", line(judged=40), line(judged=0), line()) == [0.05, None, None]
    assert of("blank_alarms", line(unmeant=1), line(unmeant=0, alarms=0), line()) == [
        0.5,
        None,
        None,
    ]


def test_what_searches_find():
    assert of("query_recall", line(), line(found=[])) == [pytest.approx(0.5), None]
    assert of("found_gold", line(), line(found=[[1], [1]]), line(found=[])) == [1.0, 0.5, 0.0]
    # The second search finds none, the third one of two for the first time.
    assert of("new_gold", line()) == [pytest.approx(2 / 3)]
    assert of("new_gold", line(found=[[0], [0]])) == [0.5]


def test_an_alarms_query_is_told_apart_from_the_question_searched_for_first():
    # Two alarms of three searches: the first one was for the question.
    assert of("alarm_recall", line(), line(alarms=3)) == [pytest.approx(0.5), pytest.approx(0.5)]
    found = [[0, 1], [0], []]
    assert of("alarm_recall", line(found=found), line(found=found, alarms=1)) == [0.25, 0.0]
    assert of("alarm_recall", line(found=found, alarms=0), line(found=[])) == [None, None]


def test_questions_without_gold_have_no_recall():
    nothing = line(gold=[], found=[[], []])
    assert {metrics.of_line(name, nothing) for name in SEARCHES} == {None}


def test_other_methods_answers_and_old_records_have_none():
    old = {"scores": {}, "gold": GOLD, "hits": ["p0"], "cost": {"retrievals": 1}}
    assert {metrics.of_line(name, old) for name in (*NAMES, *SEARCHES)} == {None}


def test_a_last_search_without_room_behind_it_is_not_read():
    # A first search and one behind each of two drafts; then a third draft, or none.
    searches = [[0], [], [1]]
    assert of("used_searches", line(found=searches, alarms=2, drafts=3)) == [3.0]
    assert of("used_searches", line(found=searches, alarms=2, drafts=2)) == [2.0]
    assert of("used_searches", line(found=[[0]], alarms=0, drafts=0)) == [1.0]
