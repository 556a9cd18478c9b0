"""A timing rule that never gives an alarm says so when its answers are there."""

from __future__ import annotations

import logging
from functools import partial
from itertools import cycle

import rag_repro
from rag_repro.engine import Task, run
from rag_repro.lm.local import LocalReader
from rag_repro.methods import base
from rag_repro.methods.dragin.alarms import watched
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings
from rag_repro.methods.dragin.loop import dynamic
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus
from rag_repro.study import runner
from tests.lm import tiny
from tests.lm.scripted_reader import ScriptedReader
from tests.methods.dragin.language import SMALL
from tests.methods.dragin.test_loop import QUESTION, Library
from tests.methods.scripted import said
from tests.study.scripted import QUESTIONS, Shop, condition

DOUBTS = {"Bank": 3.0, "4,250": 2.0}
TEXT = " It is Bank Hall. It seats 4,250 men in all."
AGAIN = (" It is", " Bank Hall.", " It seats", " 4,250 men.", " And all.", " More.")


def remark(texts=(TEXT,), doubts=DOUBTS, **settings) -> str | None:
    configured = DynamicSettings(**{"ask_again": "never", **settings})
    alarms = watched(configured)
    script = cycle(texts)
    reader = ScriptedReader(lambda prompt: said(next(script), doubts))
    services = {"reader": reader, "retriever": Library()}
    task = Task(QUESTION, partial(dynamic, language=SMALL), configured)
    [(_, answer)] = run([task], services)
    assert answer.error is None
    alarms.add(answer)
    return alarms.remark()


def test_a_threshold_that_no_score_reaches():
    told = remark(threshold=9.0)
    assert told.startswith("no alarm in the only draft: the highest score is ")
    value = float(told.partition("; try threshold ")[2])
    assert remark((TEXT, *AGAIN), threshold=value) is None
    assert "take a prompt that asks for sentences" in remark((" Bank",), threshold=9.0)


def test_the_other_rules():
    assert remark(timing="never") is None
    for timing, knob, value in (("flare", "doubt", 0.0), ("window", "window", 99)):
        given = {"timing": timing, "query": "question", "max_new_tokens": 30}
        told = remark((TEXT, *AGAIN), **given, **{knob: value})
        advised = type(value)(told.partition(f"; try {knob} ")[2])
        assert remark((TEXT, *AGAIN), **given, **{knob: advised}) is None
    assert "its first sentence" in remark((" Bank Hall.",), timing="sentence", query="question")
    assert "rate is 0; raise rate" in remark(timing="random", query="question", rate=0.0)
    assert remark(timing="random", query="question", rate=1.0, max_new_tokens=9) is None


def test_what_it_is_composed_of_counts_and_other_methods_give_none():
    composed = base.get("composed").configure({"prompt": "drrag", "dragin": {"threshold": 0.3}})
    assert watched(composed).settings.threshold == 0.3
    assert watched(base.get("single_step").configure({})) is None


def test_a_run_says_it_at_its_end(tmp_path, caplog):
    class Sure(Shop):
        def services(self, condition):
            made = ScriptedReader(lambda prompt: said(TEXT, DOUBTS))
            return super().services(condition) | {"reader": made}

    caplog.set_level(logging.WARNING)
    for threshold, heard in (("9.0", 1), ("0.05", 0)):
        caplog.clear()
        settings = {"threshold": float(threshold), "max_new_tokens": 30}
        of = condition("dynamic", settings=settings)
        assert runner.run(of, Sure(), tmp_path) == len(QUESTIONS)
        assert len(caplog.records) == heard
        if heard:
            assert f"{of.path}: no alarm in 6 drafts: the highest score is " in caplog.text


def test_one_question_says_it(caplog):
    class Made:
        def reader(self, name):
            return LocalReader(tiny.loaded())

        def retriever(self, name, corpus):
            return Library()

    corpus = Corpus("c", (Passage("p", "Rome", "It is in Italy."),))
    caplog.set_level(logging.WARNING)
    rag_repro.ask("Who was it?", corpus, method="dynamic", services=Made(), threshold=99.0)
    assert "dynamic: no alarm in the only draft: the highest score is" in caplog.text
