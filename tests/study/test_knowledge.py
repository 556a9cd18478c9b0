"""What a record keeps of ERM4's trace."""

from __future__ import annotations

import pytest

from rag_repro.schema import Answer, Gold, Hit, Interpretation, Passage, Question
from rag_repro.study import line_fields, lines

PASSAGES = {
    "a": Passage("a", "Quay", "It was built by Ann Lee."),
    "b": Passage("b", "Pier", "Bo Ray built it."),
    "c": Passage("c", "Lamp", "Nobody knows."),
}
READINGS = (Interpretation("quay?", ("Ann Lee",)), Interpretation("pier?", ("Bo Ray", "B. Ray")))
QUESTION = Question(
    "q", "Who?", ("Ann Lee",), gold=(Gold("a", "static", 1),), interpretations=READINGS
)
COUNTS = {"stage": "counts", "queries": 2, "unfollowed": 0, "fetched": 3}


def judged(name, label, probability=0.123456):
    return {"stage": "filter", "passage": name, "label": label, "probability": probability}


def retrieved(found, recalled, popularity, searched=True):
    made = {"stage": "retrieve", "query": "x", "popularity": popularity, "searched": searched}
    return made | {"found": found, "recalled": recalled}


def of(*events, question=QUESTION, hits="abc"):
    shown = tuple(Hit(PASSAGES[name], 1.0, i) for i, name in enumerate(hits, start=1))
    return line_fields.of_knowledge(question, Answer("x", "x", shown, trace=events), PASSAGES)


def test_other_methods_leave_nothing():
    assert of({"stage": "judge"}, judged("a", "entailment")) == {}


def test_counts_without_noughts_and_the_ranks_of_each_readings_answers():
    assert of(COUNTS) == {"counts": {"queries": 2, "fetched": 3}, "held": [[1], [2]]}
    assert of(COUNTS, hits="cbab")["held"] == [[3], [2, 4]]
    assert of(COUNTS, hits="")["held"] == [[], []]


def test_a_judged_passage_is_told_by_its_role_or_its_answer():
    events = (judged("a", "neutral"), judged("b", "entailment", None), judged("c", "contradiction"))
    assert of(COUNTS, *events)["filter"] == [
        ["a", "neutral", 0.1235, "static", 1],
        ["b", "entailment", None, "answer", 1],
        ["c", "contradiction", 0.1235, "other", 0],
    ]


def test_without_gold_the_kind_is_unknown_and_without_open_answers_the_string_is():
    bare = Question("q", "Who?", ("Ann Lee",))
    assert of(COUNTS, judged("a", "yes"), question=bare)["filter"] == [
        ["a", "yes", 0.1235, None, 1]
    ]
    closed = Question("q", "Is it?", ("no",), gold=(Gold("a"),))
    made = of(COUNTS, judged("a", "no"), judged("b", "no"), question=closed)
    assert made["filter"] == [["a", "no", 0.1235, "gold", None], ["b", "no", 0.1235, "other", None]]
    assert "held" not in made
    # A page of a search engine outside, which was dropped, is in no corpus.
    assert of(COUNTS, judged("z", "neutral"))["filter"] == [["z", "neutral", 0.1235, "other", None]]


def test_the_trigger_is_told_where_there_is_a_memory():
    without = retrieved(["a"], [], None)
    assert "trigger" not in of(COUNTS, without)
    events = (retrieved(["b", "c"], ["c", "a"], 7), retrieved([], ["b"], 3, searched=False))
    assert of(COUNTS, *events)["trigger"] == [[7, 1, 2, 2, 1, 1], [3, 0, 0, 1, 0, 0]]
    bare = Question("q", "Who?", ("Ann Lee",))
    assert of(COUNTS, *events, question=bare)["trigger"][0][-1] is None


LINE = {"id": "q", "cluster": "q", "hits": ["a", "b"], "scores": {}}


def test_what_is_made_is_accepted():
    events = (judged("a", "neutral", None), retrieved(["b"], ["c"], 2))
    lines.line_bytes({**LINE, "hits": list("abc"), **of(COUNTS, *events)})


@pytest.mark.parametrize(
    "field",
    [
        {"counts": {"queries": -1}},
        {"counts": {"queries": 1.5}},
        {"counts": []},
        {"filter": [["a", "maybe", 0.5, "gold", 1]]},
        {"filter": [["a", "yes", 1.5, "gold", 1]]},
        {"filter": [["a", "yes", 0.5, "silver", 1]]},
        {"filter": [["a", "yes", 0.5, "gold", 2]]},
        {"filter": [["a", "yes", 0.5, "gold"]]},
        {"filter": [[1, "yes", 0.5, "gold", 1]]},
        {"trigger": [[1, 2, 0, 0, 0, 0]]},
        {"trigger": [[1, 1, 0, 0, 0]]},
        {"trigger": [[1, 1, -1, 0, 0, None]]},
        {"held": [[0]]},
        {"held": [1]},
        {"held": []},
    ],
)
def test_what_cannot_be_is_refused(field):
    with pytest.raises(lines.RecordError, match="cannot be recorded"):
        lines.line_bytes({**LINE, **field})
