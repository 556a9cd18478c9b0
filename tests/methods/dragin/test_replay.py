"""Every variant decides on one draft as the method itself would."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import pytest

from rag_repro.engine import Task, run
from rag_repro.methods.dragin.draft_checks import (
    DIFFERENCES,
    EQUATIONS,
    RELEASED,
    VARIANTS,
    ReplaySettings,
    replay,
    variants,
)
from rag_repro.methods.dragin.dynamic_settings import RELEASED as SWITCHES
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings, ReleasedSettings
from rag_repro.methods.dragin.loop import dynamic
from rag_repro.methods.reading import PROMPTS, extract, released_answer
from rag_repro.study import papers
from tests.lm import tiny
from tests.methods.dragin.language import SMALL
from tests.methods.dragin.test_batches import QUESTIONS, Library
from tests.test_readme import ROOT


def answers(method, settings, questions):
    small = partial(method, language=SMALL)
    services = {"reader": tiny.reader(), "retriever": Library()}
    tasks = [Task(question, small, settings) for question in questions]
    return {task.question.id: answer for task, answer in run(tasks, services, batch_size=4)}


@pytest.fixture(scope="module")
def replayed():
    settings = ReplaySettings(threshold=2.0, theta=0.3, max_new_tokens=20, top_n=4)
    return settings, answers(replay, settings, QUESTIONS[:12])


def test_each_variant_differs_from_the_released_code_in_one_setting():
    own = variants(ReplaySettings())
    assert tuple(own) == VARIANTS
    for name, field in DIFFERENCES.items():
        changed = {f for f in SWITCHES if getattr(own[name], f) != getattr(own[RELEASED], f)}
        assert changed == {field}
        assert getattr(own[name], field) == getattr(DynamicSettings(), field)
    assert own[EQUATIONS].threshold == 0.2
    assert type(own[EQUATIONS]) is DynamicSettings


def test_variants_decide_as_the_loop_does_in_its_first_round(replayed):
    _, told = replayed
    loops = {
        RELEASED: ReleasedSettings(threshold=2.0, query_tokens=None),
        "D8": ReleasedSettings(threshold=2.0, query_tokens=None, cut="token"),
        "D12": ReleasedSettings(threshold=2.0, query_tokens=None, context="text"),
        EQUATIONS: DynamicSettings(threshold=0.3),
    }
    found = set()
    for name, of_loop in loops.items():
        own = replace(of_loop, max_new_tokens=20, top_n=4)
        for question, answer in answers(dynamic, own, QUESTIONS[:12]).items():
            first = answer.trace[0]
            [event] = [e for e in told[question].trace if e["name"] == name]
            searched = answer.trace[1]["stage"] == "retrieve"
            assert event["triggered"] == searched
            assert event["keep"] == first["keep"]
            assert event["query"] == (answer.trace[1]["query"] if searched else "")
            found.add((name, searched))
    assert {(RELEASED, True), (EQUATIONS, True)} <= found


def test_nothing_is_searched_and_a_draft_is_written_once(replayed):
    _, told = replayed
    for answer in told.values():
        assert [event["name"] for event in answer.trace] == list(VARIANTS)
        assert (answer.cost.reader_calls, answer.cost.retrievals) == (1, 0)
        assert 1 <= answer.cost.reads <= 1 + len(VARIANTS)


def test_where_the_answer_is_read():
    """D28: the first "the answer is" to the text's end, or the last "So the answer is" in its line.

    Of StrategyQA the released code takes what is not "yes" at once for "no".
    """

    def taken(text, yes_no=False):
        template = PROMPTS["dragin_yes_no" if yes_no else "dragin"]
        return released_answer(text, yes_no), extract(text, template)

    assert taken("Ada was born in Sarnby. So the answer is Sarnby.") == ("Sarnby", "Sarnby")
    assert taken("Ada was born in Sarnby. Thus, the answer is Sarnby.") == ("Sarnby", None)
    twice = "So the answer is Sarnby. So the answer is Old Perrin."
    assert taken(twice) == ("Sarnby. So the answer is Old Perrin", "Old Perrin")
    more = "So the answer is Sarnby. Ada lived there.\nShe wrote."
    assert taken(more) == ("Sarnby. Ada lived there.\nShe wrote", "Sarnby. Ada lived there")
    assert taken("A pear floats. So the answer is no, it would not sink.", True) == ("no", "no")
    assert taken("A stone sinks. So the answer is: yes.", True) == ("no", "no")
    assert released_answer("It is Sarnby.", yes_no=True) is None
    assert released_answer("the answer is yes, so it is.", yes_no=True) == "yes"


def test_chapter_35_lists_each_difference_once_and_counts_them():
    chapter = (ROOT / "notebooks" / "35_dragin_equations.py").read_text(encoding="utf-8")
    listed = [name.removeprefix("D") for name in DIFFERENCES]
    listed += re.findall(r'^(?:# \| |\s+")D(\d+): ', chapter, flags=re.MULTILINE)
    last = int(max(listed, key=int))
    assert sorted(map(int, listed)) == [*range(1, last + 1)]
    assert last == 30
    assert f"# {last} differences were found, D1 to D{last}." in chapter
    assert f"D1 to D{last}: points in which the released code" in papers.load("dragin").legend
