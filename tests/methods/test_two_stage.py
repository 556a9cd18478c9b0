"""Two stages without a classifier, with their choices open."""

from __future__ import annotations

from rag_repro.methods import base
from rag_repro.methods.baselines.controls import single_step
from rag_repro.methods.drrag.concatenation import QDCSettings, TwoStageSettings, qdc, two_stage
from rag_repro.methods.drrag.selection import CFSSettings, cfs
from rag_repro.schema import Gold, Question
from tests.methods.golden import QUESTIONS, World
from tests.methods.scripted import Tables, answer_of, ids

QUESTION = Question("id-q", "q?", (), candidates=("a", "b", "c"))
RANKINGS = {
    "q?": ["a", "b", "h", "c"],
    "q? aa": ["a", "c", "b", "d", "e"],
    "q? bb": ["b", "a", "c", "e", "g"],
    "q? xx": ["x", "b", "d"],
    "q? yy": ["y"],
}


def answer(drawn="bxay", rankings=RANKINGS, **settings):
    configured = base.get("two_stage").configure({"k": 4, **settings})
    return answer_of(
        two_stage,
        QUESTION,
        configured,
        retriever=Tables(rankings),
        random=Tables({"id-q": list(drawn)}),
    )


def test_by_default_it_is_qdc():
    for question in QUESTIONS:
        for k, k1 in ((1, 1), (3, 2), (4, 1), (6, 3)):
            ours = TwoStageSettings(k=k, k1=k1)
            theirs = QDCSettings(k=k, k1=k1)
            one = answer_of(two_stage, question, ours, retriever=World()).hits
            assert ids(one) == ids(answer_of(qdc, question, theirs, retriever=World()).hits)


def test_ranking_after_ranking_the_first_query_fills_the_second_stage():
    assert ids(answer().hits) == ["a", "b", "c", "e"]
    assert ids(answer(first="algorithm").hits) == ["a", "b", "c", "d"]


def test_without_a_second_query_it_is_one_search():
    got = answer(second="next")
    assert ids(got.hits) == ["a", "b", "h", "c"]
    assert got.cost.retrievals == 1
    plain = answer_of(single_step, QUESTION, TwoStageSettings(k=4), retriever=Tables(RANKINGS))
    assert got.hits == plain.hits


def test_random_passages_are_those_outside_the_first_stage():
    got = answer(second="random")
    assert [(e["query"], e["beside"]) for e in got.trace if e["stage"] == "retrieve"] == [
        ("q?", None),
        ("q? xx", "x"),
        ("q? yy", "y"),
    ]
    # Each query finds the passage that stands in it first, which is not handed on.
    assert ids(got.hits) == ["a", "b", "d"]
    # As many as the first stage holds, though more were drawn.
    more = answer("xyzw", second="random")
    assert [e["beside"] for e in more.trace if e["stage"] == "retrieve"] == [None, "x", "y"]


def test_an_empty_corpus_has_nothing_to_draw_from():
    got = answer(rankings={"q?": []}, second="random")
    assert (got.hits, got.cost.retrievals) == ((), 1)


def test_random_passages_of_few_candidates_may_be_fewer():
    # Of a, b and c only c is left to be drawn: one query beside it, which finds nothing else.
    retriever = Tables({**RANKINGS, "q? cc": ["c", "a"]})
    chance = Tables({"id-q": ["c", "b", "d", "a", "e"]})
    settings = TwoStageSettings(k=4, second="random", own_candidates=True)
    got = answer_of(two_stage, QUESTION, settings, retriever=retriever, random=chance)
    assert ids(got.hits) == ["a", "b"]
    assert got.cost.retrievals == 3
    for queries, _, within in retriever.asked + chance.asked:
        assert within == [("a", "b", "c")] * len(queries)


def test_the_trace_ends_with_what_was_kept():
    assert answer().trace[-1] == {
        "stage": "select",
        "by": "rank",
        "kept": ["a", "b", "c", "e"],
        "left_out": ["d"],
    }


def test_without_a_second_stage_no_search_goes_deeper_than_the_first():
    retriever = Tables(RANKINGS)
    settings = CFSSettings(k=2, k1=2, second="next", judge="oracle")
    question = Question("id-q", "q?", (), gold=(Gold("a"),))
    got = answer_of(cfs, question, settings, retriever=retriever)
    assert ids(got.hits) == ["a", "b"]
    assert retriever.asked == [(("q?",), 2, None)]
