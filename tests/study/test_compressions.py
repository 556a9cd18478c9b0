"""What a record keeps of a compressor's trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_repro import engine
from rag_repro.methods import base
from rag_repro.methods.baselines.compressing import compression_event, left
from rag_repro.schema import Answer, Gold, Hit, Question
from rag_repro.schema.dataset import Corpus
from rag_repro.study import line_fields, lines, runner
from rag_repro.study.conditions import Condition
from tests.methods.scripted import Says
from tests.methods.shelf import FILM, MAN, QUESTION, SIZES, SONG, Shares, Shelf, size
from tests.study.scripted import DATASET

GOOD = {"id": "a", "cluster": "a", "hits": [], "scores": {}, "gold": [["static", 1, 2], None]}
GOOD["gold"] = [["static", 1, 2], ["dynamic", 2, None]]
FIELD = {"before": 9, "after": 3, "gold": [[4, 1], None]}
HITS = tuple(Hit(p, 1.0, i) for i, p in enumerate((SONG, FILM), start=1))


def of(*texts, kept=None, question=QUESTION, **more):
    given = {hit.passage.id: hit.passage.text for hit in HITS}
    event = compression_event("x", given, [left(text) for text in texts], kept, **more)
    return line_fields.of_compression(question, Answer(hits=HITS, trace=({"stage": "rank"}, event)))


def test_sizes_gold_and_whether_the_answer_is_left():
    got = of("Ilvo Brannek directed it.", kept={"song": "", "film": "Ilvo Brannek directed it."})
    n = size("Ilvo Brannek directed it.")
    assert got == {
        "compressed": {
            "before": SIZES["song"] + SIZES["film"],
            "after": n,
            # The second gold passage, the man's, was not among those given.
            "gold": [[SIZES["film"], n], None],
            "answer": [True, True],
        }
    }
    lost = of("Brannek Ilvo", kept={"song": "Brannek Ilvo", "film": ""})["compressed"]
    assert (lost["answer"], lost["gold"]) == ([True, False], [[SIZES["film"], 0], None])
    assert of()["compressed"]["after"] == 0


def test_an_answer_that_no_passage_has_may_stand_in_what_a_summary_adds():
    paris = replace(QUESTION, answers=("Paris",))
    assert of("It is Paris.", question=paris)["compressed"]["answer"] == [False, True]
    # An answer counts in whole words, within one text.
    assert of("Ilvo", "Brannek")["compressed"]["answer"] == [True, False]


@pytest.mark.parametrize("answers", [(), ("yes",), ("No",)])
def test_yes_no_and_unknown_answers_are_nowhere(answers):
    asked = replace(QUESTION, answers=answers)
    assert "answer" not in of("yes no", question=asked)["compressed"]


def test_a_summary_does_not_say_whose_words_are_left():
    assert of("Brannek", kept=None)["compressed"]["gold"] == [None, None]


def test_decision_and_tokens_are_kept_where_there_are_any():
    got = of("x", decision="ambiguous", tokens=[9, 4], strips=3, scores=[0.1])["compressed"]
    assert (got["decision"], got["tokens"]) == ("ambiguous", [9, 4])
    assert set(got) == {"before", "after", "gold", "answer", "decision", "tokens"}


def test_other_answers_have_no_such_field():
    assert line_fields.of_compression(QUESTION, Answer(hits=HITS, trace=({"stage": "read"},))) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"before": -1},
        {"before": True},
        {"after": 1.5},
        {"gold": [[4, 1], [1]]},
        {"gold": [[4, 1], [1, -2]]},
        {"gold": {}},
        {"answer": [True]},
        {"answer": [1, 0]},
        {"answer": "ab"},
        {"tokens": [1]},
        {"decision": "perhaps"},
        {"texts": ["secret"]},
    ],
)
def test_a_damaged_field_is_refused(wrong):
    assert not lines._fault({**GOOD, "compressed": FIELD})
    more = {"answer": [True, False], "decision": "correct", "tokens": [3, 2]}
    assert not lines._fault({**GOOD, "compressed": {**FIELD, **more}})
    assert "'compressed" in lines._fault({**GOOD, "compressed": {**FIELD, **wrong}})


def test_a_damaged_field_that_lacks_something_is_refused():
    for name in FIELD:
        entry = {k: v for k, v in FIELD.items() if k != name}
        assert "'compressed" in lines._fault({**GOOD, "compressed": entry})
    assert lines._fault({**GOOD, "compressed": [1]})


def test_a_runs_line_holds_it_and_the_evaluators_view_but_no_text():
    condition = Condition("little", "crag", {"evaluator": "e", "upper": 0.5}, retriever="bm25")
    dataset = replace(DATASET, questions=(QUESTION,), corpus=Corpus("little", (FILM, MAN, SONG)))
    services = {"retriever": Shelf(FILM, MAN), "e": Shares(), "reader": Says("y")}
    task = engine.Task(QUESTION, base.get("crag").run, condition.configured)
    [(_, answer)] = engine.run([task], services)
    line = runner.line_of(QUESTION, answer, dataset, condition)
    # Two strips, a passage each, joined by "; ".
    n = SIZES["film"] + SIZES["man"]
    assert line["compressed"] == {
        "before": n,
        "after": n + 1,
        "gold": [[SIZES["film"]] * 2, [SIZES["man"]] * 2],
        "answer": [True, True],
        "decision": "correct",
    }
    assert line["critique"] == [["film", 0.5, 1], ["man", 0.0, 1]]
    assert not lines._fault(line)
    assert "Glass" not in lines.line_bytes(line).decode()


@pytest.mark.parametrize(("prompt", "scored"), [(None, False), ("short", True)])
def test_a_summary_that_nobody_reads_is_no_wrong_answer(prompt, scored):
    settings = {"kind": "abstractive", "compressor": "c", "prompt": prompt}
    condition = Condition("little", "recomp", settings, retriever="bm25")
    corpus = Corpus("little", (FILM, MAN, SONG))
    services = {"retriever": Shelf(FILM), "c": Says(" Brannek"), "reader": Says("wrong")}
    task = engine.Task(QUESTION, base.get("recomp").run, condition.configured)
    [(_, answer)] = engine.run([task], services)
    dataset = replace(DATASET, questions=(QUESTION,), corpus=corpus)
    line = runner.line_of(QUESTION, answer, dataset, condition)
    assert line["cost"]["reader_calls"] == 1 + scored
    assert ("em" in line["scores"]) == scored
    assert "recall" in line["scores"]


def test_a_question_without_gold_has_an_empty_list():
    nameless = Question("n", "Who?", ("x",), gold=())
    assert of("x", question=nameless)["compressed"]["gold"] == []
    twice = replace(QUESTION, gold=(Gold("song"), Gold("film")))
    kept = {"song": "Ash", "film": ""}
    assert of("Ash", kept=kept, question=twice)["compressed"]["gold"] == [
        [SIZES["song"], 3],
        [SIZES["film"], 0],
    ]
