"""Adaptive-RAG: the class picks the method."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro import engine
from rag_repro.methods import base
from rag_repro.methods.baselines.adaptive_rag import (
    AdaptiveRAGSettings,
    adaptive_rag,
)
from rag_repro.methods.baselines.ircot import IRCoTSettings, ircot
from rag_repro.schema import Question
from tests.lm.scripted_reader import ScriptedReader
from tests.methods.golden import World
from tests.methods.scripted import Tables, answer_of, ids

QUESTION = Question("q", "q?", ("y",))
RANKINGS = {"q?": ["a", "b", "c", "d"], "It was Orr.": ["d", "e"]}
CHAIN = (" It was Orr. Mo", " So the answer is: y. z", "read")
CLASSIFIER = "complexity-testbed"


class Classes:
    """Scorer: the probabilities of A, B, C for any question; remembers its items."""

    def __init__(self, *probabilities):
        self.probabilities = dict(zip("ABC", probabilities, strict=False))
        self.asked = []

    def score(self, items):
        self.asked.append(items)
        return np.array([self.probabilities[i[-1]] for i in items if i[-1] in self.probabilities])


def answer(probabilities, script=("read",), **settings):
    scorer, reader = Classes(*probabilities), ScriptedReader(list(script))
    configured = base.get("adaptive_rag").configure({"k": 3, "prompt": "short", **settings})
    retriever = Tables(RANKINGS)
    got = answer_of(
        adaptive_rag, QUESTION, configured,
        retriever=retriever, reader=reader, **{configured.classifier or "none": scorer},
    )  # fmt: skip
    return got, scorer, retriever


def test_class_a_is_the_reader_alone():
    got, scorer, _ = answer((0.5, 0.25, 0.25))
    assert got.calls == ("Score", "Generate")
    assert scorer.asked == [[("q?", "A"), ("q?", "B"), ("q?", "C")]]
    assert (got.hits, got.prediction) == ((), "read")
    assert (got.cost.scored, got.cost.reader_calls, got.cost.retrievals) == (3, 1, 0)
    assert list(got.trace) == [
        {"stage": "classify", "by": "classifier", "probabilities": [0.5, 0.25, 0.25], "class": "A"}
    ]


def test_class_b_is_one_search():
    got, _, retriever = answer((0.25, 0.5, 0.25))
    assert got.calls == ("Score", "Retrieve", "Generate")
    assert retriever.asked == [(("q?",), 3, None)]
    assert ids(got.hits) == ["a", "b", "c"]
    assert got.trace[0]["class"] == "B"


def test_class_c_is_multi_step_with_its_settings_and_events():
    settings = {"per_step": 2, "chain": "cot", "sentence_tokens": 9}
    got, _, _ = answer((0.25, 0.25, 0.5), CHAIN, **settings)
    assert got.calls == ("Score", *("Retrieve", "Generate") * 2, "Generate")
    assert ids(got.hits) == ["a", "b", "d"]
    alone = answer_of(
        ircot, QUESTION, IRCoTSettings(k=3, prompt="short", **settings),
        retriever=Tables(RANKINGS), reader=ScriptedReader(list(CHAIN)),
    )  # fmt: skip
    assert got.trace[1:] == alone.trace
    assert (got.text, got.prediction, got.hits) == (alone.text, alone.prediction, alone.hits)
    assert got.trace[0]["class"] == "C"


def test_ties_go_to_the_simpler_class():
    assert answer((0.4, 0.4, 0.2))[0].trace[0]["class"] == "A"
    assert answer((0.2, 0.4, 0.4))[0].trace[0]["class"] == "B"


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ((0.5, 0.5, 1.5), f"'{CLASSIFIER}' gave 1.5, which is no probability"),
        ((float("nan"), 0.5, 0.5), "gave nan, which is no probability"),
    ],
)
def test_a_classifier_that_gives_no_probabilities_fails_the_question(probabilities, message):
    with pytest.raises(AssertionError, match=message):
        answer(probabilities)


def test_a_classifier_that_gives_too_few_probabilities_stops_the_run():
    with pytest.raises(engine.ServiceError, match="gave 2 results for 3 texts"):
        answer((0.5, 0.5))


def test_the_classifier_is_a_service_by_its_name():
    assert base.get("adaptive_rag").configure({}).needs == {CLASSIFIER: "scorer"}
    assert base.get("adaptive_rag").configure({"classifier": "c"}).needs == {"c": "scorer"}
    assert answer((0, 1, 0), classifier="c")[0].trace[0]["class"] == "B"
    chance = {"judge": "random", "shares": shares(0, 1, 0)}
    assert base.get("adaptive_rag").configure(chance).needs == {}


def shares(*three):
    return dict(zip("ABC", three, strict=False))


def drawn(three, seed=0):
    settings = AdaptiveRAGSettings(judge="random", shares=shares(*three), seed=seed, prompt="short")
    tasks = [engine.Task(Question(f"q{n}", "q?", ()), adaptive_rag, settings) for n in range(600)]
    reader = ScriptedReader(lambda prompt: " The answer is y. z")
    done = engine.run(tasks, {"retriever": Tables(RANKINGS), "reader": reader})
    classes = {task.question.id: got.trace[0]["class"] for task, got in done}
    return [classes[f"q{n}"] for n in range(600)]


def test_the_random_control_keeps_the_shares_and_loses_the_question():
    classes = drawn((0.5, 0.2, 0.3))
    # Four standard deviations about 300, 120 and 180.
    assert 251 < classes.count("A") < 349
    assert 81 < classes.count("B") < 159
    assert 135 < classes.count("C") < 225
    assert drawn((0.5, 0.2, 0.3)) == classes != drawn((0.5, 0.2, 0.3), seed=1)
    assert set(drawn((0, 0, 1))) == {"C"}
    assert set(drawn((0, 1, 0))) == {"B"}


def test_the_random_control_asks_no_classifier():
    got, scorer, _ = answer((1, 0, 0), judge="random", shares=shares(0, 1, 0))
    assert scorer.asked == []
    assert list(got.trace) == [
        {"stage": "classify", "by": "random", "probabilities": None, "class": "B"}
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"judge": "rand"}, r"judge is 'rand', did you mean 'random'\?"),
        ({"classifier": ""}, "needs a classifier's name"),
        ({"shares": shares(1, 0, 0)}, "shares would do nothing with judge 'classifier'"),
        ({"seed": 1}, "seed would do nothing with judge 'classifier'"),
        ({"judge": "random"}, "shares is None; judge 'random' needs how often"),
        ({"judge": "random", "shares": shares(0.5, 0.5)}, "add up to 1"),
        ({"judge": "random", "shares": shares(0.5, 0.5, 0.5)}, "add up to 1"),
        ({"judge": "random", "shares": shares(1.5, -1, 0.5)}, "add up to 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        base.get("adaptive_rag").configure(settings)


def test_the_control_is_one_condition_however_it_is_written():
    given = {"judge": "random", "shares": {"C": 0.25, "B": 0.25, "A": 0.5}}
    one = base.get("adaptive_rag").configure(given)
    again = {**given, "shares": shares(0.5, 0.25, 0.25), "classifier": "c", "seed": 0}
    assert one == base.get("adaptive_rag").configure(again)
    assert list(one.shares) == ["A", "B", "C"]


def test_results_are_equal_at_any_batch_size():
    tasks = [
        engine.Task(
            Question(f"q{n}", "Who made" + " very" * n + " Glass Harbour?", ()),
            adaptive_rag,
            AdaptiveRAGSettings(prompt="short", k=4),
        )
        for n in range(20)
    ]

    def script(prompt):
        return " The answer is y. z" if "external" in prompt else str(len(prompt))

    def answers(batch_size):
        services = {"retriever": World(), "reader": ScriptedReader(script), CLASSIFIER: World()}
        done = engine.run(tasks, services, batch_size=batch_size)
        return {task.question.id: got for task, got in done}

    one = answers(1)
    assert answers(5) == answers(16) == one
    assert all(got.error is None for got in one.values())
    assert {got.trace[0]["class"] for got in one.values()} == set("ABC")
