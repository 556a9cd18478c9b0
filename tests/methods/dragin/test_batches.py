"""A question's whole trace does not depend on what is answered beside it."""

from __future__ import annotations

from functools import partial

import pytest

from rag_repro.engine import Task, run
from rag_repro.methods.dragin.dynamic_settings import DynamicSettings, ReleasedSettings
from rag_repro.methods.dragin.loop import dynamic
from rag_repro.schema import Hit, Passage, Question
from tests.lm import tiny
from tests.methods.dragin.language import SMALL

QUESTIONS = [
    Question(
        f"q{i}", f"Who was born in {town}, and when? {'Was it so? ' * (i % 4)}{500 + i}", ("x",)
    )
    for i, town in enumerate(["Paris", "Rome", "Łódź", "Zürich", "Italy"] * 20)
]


class Library:
    def search(self, queries, k, within=None):
        return [
            [Hit(Passage(f"p{len(q)}", "T", f"The capital is {q[:9]}."), 1.0, 1)] for q in queries
        ]


def answers(settings, batch_size: int):
    reader = tiny.reader(batch_size=batch_size)
    services = {"reader": reader, "retriever": Library()}
    method = partial(dynamic, language=SMALL)
    tasks = [Task(question, method, settings) for question in QUESTIONS]
    return {t.question.id: a for t, a in run(tasks, services, batch_size=batch_size)}, reader


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        DynamicSettings(threshold=0.4, max_new_tokens=16, top_n=4),
        ReleasedSettings(threshold=4.0, max_new_tokens=16, top_n=4),
        DynamicSettings(timing="flare", query="sure_sentence", doubt=0.05, max_new_tokens=16),
    ],
    ids=["equations", "released", "flare"],
)
def test_whole_traces_are_equal_at_any_batch_size(settings):
    alone, reader = answers(settings, 1)
    assert reader.ties == 0
    assert not [a.error for a in alone.values() if a.error]
    searched = sum(a.cost.retrievals > settings.asks_first for a in alone.values())
    assert searched > 10
    for size in (5, 16):
        together, _ = answers(settings, size)
        for name, answer in alone.items():
            other = together[name]
            assert other.text == answer.text
            assert [h.passage.id for h in other.hits] == [h.passage.id for h in answer.hits]
            assert len(other.trace) == len(answer.trace)
            for mine, theirs in zip(answer.trace, other.trace, strict=True):
                assert mine.keys() == theirs.keys()
                for key, value in mine.items():
                    if key in ("entropy", "attention", "surprise", "score", "probability"):
                        assert theirs[key] == pytest.approx(value, abs=2e-3)
                    else:
                        assert theirs[key] == value
