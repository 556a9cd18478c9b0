"""Query Rewriter and Query Rewriter+: what is asked, how strictly it is taken, what is sent."""

from __future__ import annotations

import pytest

from rag_repro.methods.erm4.rewriter import once_each, parse, rewriting_prompt, written
from rag_repro.schema import Generation, Question
from tests.methods.erm4.desk import QUESTION, Desk, asked, counts, events, run


def said(text, finish="stop"):
    return Generation(text, (1,), (0,), finish, 1, 1)


@pytest.mark.parametrize(
    ("text", "task", "parts"),
    [
        (" s**a**b", "plus", ("s", "a", "b")),
        (" s ** a ", "plus", ("s", "a")),
        ("a", "query", ("a",)),
        (" s", "rewriting", ("s",)),
        ("a", "queries", ("a",)),
        ("a**b", "queries", ("a", "b")),
        ("2 * 3", "query", ("2 * 3",)),
    ],
)
def test_an_output_in_the_format_is_taken_apart(text, task, parts):
    assert parse(said(text), task) == (parts, "")


@pytest.mark.parametrize(
    ("text", "task", "fault"),
    [
        ("", "plus", "empty"),
        (" \n", "query", "empty"),
        ("s", "plus", "no query"),
        ("s**", "plus", "an empty part"),
        ("**a", "plus", "an empty part"),
        ("s****a", "plus", "an empty part"),
        ("s** **a", "plus", "an empty part"),
        ("a**b", "query", "more than one part"),
        ("s**a", "rewriting", "more than one part"),
        ("a**", "queries", "an empty part"),
    ],
)
def test_any_other_output_is_refused_with_the_reason(text, task, fault):
    assert parse(said(text), task) == ((), fault)


def test_an_output_without_an_end_is_refused():
    assert parse(said("s**a", "length"), "plus") == ((), "cut short")
    assert parse(said("s**a", "eos"), "plus") == (("s", "a"), "")


def test_what_a_rewriter_is_taught_is_in_the_format():
    assert written("s", ["a", "b"]) == " s**a**b"
    assert parse(said(written("s", ["a"])), "plus") == (("s", "a"), "")
    for task in ("query", "rewriting", "queries"):
        assert parse(said(written("s", ["a", "b"], task)), task)[1] == ""


def test_the_exemplars_of_every_task_are_in_its_format():
    for task in ("plus", "query", "rewriting", "queries"):
        lead, shots = rewriting_prompt(task, QUESTION, True).segments[0].text.split("\n\n", 1)
        own = rewriting_prompt(task, QUESTION, False)
        assert own.segments[0].text == f"{lead}\n\n"
        asked_for = own.segments[1].rpartition("\n")[2]
        lines = [line for line in shots.split("\n") if line.startswith(asked_for)]
        assert len(lines) == 4
        assert {parse(said(line.removeprefix(asked_for)), task)[1] for line in lines} == {""}


def test_rewriter_plus_rewrites_and_queries_in_one_pass():
    answer, reader, tables = run({"prompt": "short"})
    assert asked(reader)[0] == "Question: who made it?\nClear question and queries:"
    assert [call.stop for call in reader.calls] == [("\n",), ("\n",)]
    assert reader.calls[0].max_new_tokens == 100
    assert [queries for queries, _, _ in tables.asked] == [("one", "two", "three")]
    [event] = events(answer, "rewrite")
    assert event["parts"] == ["Who made the thing?", "one", "two", "three"]
    assert (event["by"], event["fault"]) == ("plus", "")
    # The reader answers the rewritten question.
    assert asked(reader)[1].endswith("Question: Who made the thing?\nAnswer:")
    assert counts(answer, "queries", "outputs", "unfollowed", "searches") == (3, 1, 0, 3)


def test_several_queries_with_the_original_question():
    _, reader, tables = run({"prompt": "short", "asked": "original"})
    assert tables.asked[0][0] == ("one", "two", "three")
    assert asked(reader)[1].endswith("Question: who made it?\nAnswer:")


def test_query_rewriter_sends_one_query_and_keeps_the_question():
    _, reader, tables = run({"rewrite": "query", "prompt": "short"}, reader=Desk(" two"))
    assert asked(reader)[0] == "Question: who made it?\nQuery:"
    assert tables.asked[0][0] == ("two",)
    assert asked(reader)[1].endswith("Question: who made it?\nAnswer:")


def test_without_a_rewriter_the_question_is_the_query():
    answer, reader, tables = run({"rewrite": "none"})
    assert (reader.calls, tables.asked[0][0]) == ([], ("who made it?",))
    assert counts(answer, "queries", "outputs") == (1, 0)


def test_rewriting_apart_takes_two_generations():
    lines = {"Clear question:": " Who made the thing?", "Queries:": " one**two"}
    answer, reader, tables = run({"rewrite": "apart", "prompt": "short"}, reader=Desk(lines))
    assert [e["by"] for e in events(answer, "rewrite")] == ["rewriting", "queries"]
    assert tables.asked[0][0] == ("one", "two")
    assert asked(reader)[2].endswith("Question: Who made the thing?\nAnswer:")
    # One that fails does not spoil the other.
    for broken, text, queries in (
        ("Clear question:", "who made it?", ("one", "two")),
        ("Queries:", "Who made the thing?", ("who made it?",)),
    ):
        answer, reader, tables = run(
            {"rewrite": "apart", "prompt": "short"}, reader=Desk(lines | {broken: " a** "})
        )
        assert tables.asked[0][0] == queries
        assert asked(reader)[2].endswith(f"Question: {text}\nAnswer:")
        assert counts(answer, "outputs", "unfollowed") == (2, 1)


def test_an_output_out_of_format_is_counted_and_replaced_by_the_question():
    answer, reader, tables = run({"prompt": "short"}, reader=Desk(" no queries here"))
    [event] = events(answer, "rewrite")
    assert (event["wrote"], event["parts"], event["fault"]) == (" no queries here", [], "no query")
    assert counts(answer, "outputs", "unfollowed", "queries") == (1, 1, 1)
    assert tables.asked[0][0] == ("who made it?",)
    assert asked(reader)[1].endswith("Question: who made it?\nAnswer:")
    # One that fills its room was cut.
    answer, _, tables = run({"rewriter_tokens": 2}, reader=Desk(" s**one and **two"))
    assert [e["fault"] for e in events(answer, "rewrite")] == ["cut short"]
    assert tables.asked[0][0] == ("who made it?",)


def test_only_so_many_queries_are_sent_and_each_once():
    assert once_each(["a", "b", "A", "a", "c"]) == ("a", "b", "c")
    _, _, tables = run({"queries": 2}, reader=Desk(" s**one**One**two**three"))
    assert tables.asked[0][0] == ("one", "two")
    _, _, tables = run({"queries": 1})
    assert tables.asked[0][0] == ("one",)


def test_a_named_rewriter_is_asked_without_exemplars():
    _, reader, _ = run({"rewriter": "taught"})
    [call] = reader.calls
    assert call.service == "taught"
    assert reader.prompts[0].count("Question:") == 1
    _, reader, _ = run()
    assert reader.calls[0].service == "reader"
    assert reader.prompts[0].count("Question:") == 5
    _, reader, _ = run({"rewriter": "taught", "rewriter_shots": True})
    assert reader.prompts[0].count("Question:") == 5


def test_a_question_of_several_lines_takes_one():
    question = Question("q", "who\nQuestion: {x} made it?", ())
    _, reader, _ = run({"search": False, "per_query": None}, question=question)
    assert asked(reader)[0].startswith("Question: who Question: {x} made it?\nClear")
