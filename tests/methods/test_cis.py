"""Classifier Inverse Selection on rankings and probabilities written by hand."""

from __future__ import annotations

import pytest

from rag_repro import engine
from rag_repro.methods import base
from rag_repro.methods.drrag.selection import CISSettings, cis, inverse_selection
from rag_repro.schema import Answer, Gold, Hit, Question
from tests.methods.golden import QUESTIONS, World
from tests.methods.scripted import Scores, Tables, answer_of, ids, passage

QUESTION = Question(id="id-q", text="q?", answers=(), gold=(Gold("b"), Gold("e")))
# k = 4: equation 1 makes Cnt = a b, then a's c, then b's first that is new: e.
RANKINGS = {
    "q?": ["a", "b", "h", "c"],
    "q? aa": ["a", "c", "b", "d", "e"],
    "q? bb": ["b", "a", "c", "e", "g"],
}
TABLE = {"ac": 0.9, "bc": 0.2, "ae": 0.1, "be": 0.4, "ab": 0.3, "ce": 0.6}


def answer(table=TABLE, rankings=RANKINGS, question=QUESTION, bm25=None, **settings):
    """Kept passages, the classifier's calls, and the answer."""
    classifier = Scores(table)
    configured = base.get("cis").configure({"k": 4, **settings})
    got = answer_of(
        cis,
        question,
        configured,
        retriever=Tables(rankings),
        random=Tables({"id-q": ["b", "x", "y"]}),
        bm25=bm25,
        **{configured.classifier or "none": classifier},
    )
    return ids(got.hits), classifier.asked, got


def test_equation_3_drops_second_stage_passages_without_a_positive_first_stage_one():
    # c is positive beside a. e is negative beside a and b, and goes, whatever c makes of it.
    kept, asked, got = answer()
    assert kept == ["a", "b", "c"]
    assert asked == [["ac", "bc", "ae", "be"]]
    assert got.calls == ("Retrieve", "Retrieve", "Retrieve", "Score")
    assert got.cost.scored == 4


def test_any_first_stage_passage_may_save_not_only_the_one_that_found_it():
    # c came from a's query; b alone is positive with it.
    assert answer({**TABLE, "ac": 0.0, "bc": 0.5})[0] == ["a", "b", "c"]


def test_the_text_judges_all_pairs_and_may_drop_the_first_stage_too():
    # C(4, 2) = 6 pairs. b is negative with a, c and e: it goes. c saves e.
    kept, asked, got = answer(pairs="text")
    assert kept == ["a", "c", "e"]
    assert asked == [["ab", "ac", "ae", "bc", "be", "ce"]]
    assert got.cost.scored == 6


def test_the_text_may_drop_everything_and_equation_3_never_the_first_stage():
    none = dict.fromkeys(TABLE, 0.49)
    assert answer(none)[0] == ["a", "b"]
    assert answer(none, pairs="text")[0] == []


def test_the_text_without_a_second_stage_judges_the_first():
    # k1 = k = 2: nothing for equation 3 to judge; by the text one pair, negative.
    kept, asked, got = answer(k=2, k1=2)
    assert (kept, asked, got.calls) == (["a", "b"], [], ("Retrieve",))
    kept, asked, got = answer(k=2, k1=2, pairs="text")
    assert (kept, asked, got.calls) == ([], [["ab"]], ("Retrieve", "Score"))


@pytest.mark.parametrize("pairs", ["equation", "text"])
def test_a_passage_that_nobody_stands_beside_is_kept(pairs):
    assert answer(k=1, pairs=pairs)[:2] == (["a"], [])
    assert answer(rankings={"q?": []}, pairs=pairs)[:2] == ([], [])


def test_a_short_corpus_gives_what_there_is():
    rankings = {"q?": ["a", "b"], "q? aa": ["a", "b"], "q? bb": ["b", "a", "c"]}
    assert answer(rankings=rankings)[:2] == (["a", "b", "c"], [["ac", "bc"]])


def test_a_passage_of_both_rankings_is_judged_once():
    rankings = {**RANKINGS, "q? bb": ["c"]}
    kept, asked, _ = answer({**TABLE, "ad": 0.0, "bd": 0.5}, rankings)
    # a's c; b has nothing else; a's second, d.
    assert asked == [["ac", "bc", "ad", "bd"]]
    assert kept == ["a", "b", "c", "d"]


def test_by_the_algorithms_reading_the_first_query_fills_the_second_stage():
    # Equation 1 without a break: a's c and d, and b's query adds nothing.
    kept, asked, _ = answer({"ac": 0.9, "bc": 0.0, "ad": 0.1, "bd": 0.2}, first="algorithm")
    assert asked == [["ac", "bc", "ad", "bd"]]
    assert kept == ["a", "b", "c"]


def test_the_threshold_itself_is_positive():
    assert answer(threshold=0.4)[0] == ["a", "b", "c", "e"]
    assert answer(threshold=0.41)[0] == ["a", "b", "c"]
    assert answer(threshold=0.0)[0] == ["a", "b", "c", "e"]


def test_without_concatenation_it_judges_the_questions_own_top_k():
    # q? gives a b h c.
    kept, asked, got = answer({"ah": 0.0, "bh": 0.1, "ac": 0.9, "bc": 0.2}, second="next")
    assert kept == ["a", "b", "c"]
    assert asked == [["ah", "bh", "ac", "bc"]]
    assert got.calls == ("Retrieve", "Score")


def test_random_passages_take_the_place_of_the_first_stage_in_the_second_queries():
    rankings = {"q?": ["a", "b"], "q? xx": ["x"], "q? yy": ["a", "c", "h"]}
    # x stands in a query, and is no find of it.
    kept, asked, _ = answer({"ah": 0.1, "bh": 0.0, "ac": 0.9, "bc": 0.2}, rankings, second="random")
    assert kept == ["a", "b", "c"]
    assert asked == [["ac", "bc", "ah", "bh"]]


def test_the_oracle_keeps_what_pairs_with_gold():
    # b and e are gold.
    assert answer({}, judge="oracle")[:2] == (["a", "b", "e"], [])
    assert answer({}, judge="oracle", pairs="text")[:2] == (["b", "e"], [])


def test_gold_that_the_classifier_refused_is_put_back_in_its_place():
    # e is gold and negative beside both; by the text b is gold and negative with all.
    kept, asked, got = answer(put_back=True)
    assert kept == ["a", "b", "c", "e"]
    assert asked == [["ac", "bc", "ae", "be"]]
    assert {"stage": "put back", "passages": ["e"]} in got.trace
    assert answer(put_back=True, pairs="text")[0] == ["a", "b", "c", "e"]
    assert answer(dict.fromkeys(TABLE, 0.0), put_back=True, pairs="text")[0] == ["b", "e"]


def test_nothing_is_put_back_where_no_gold_was_refused():
    question = Question(id="id-q", text="q?", answers=(), gold=(Gold("a"), Gold("c"), Gold("z")))
    kept, _, got = answer(question=question, put_back=True)
    assert kept == ["a", "b", "c"]
    assert {"stage": "put back", "passages": []} in got.trace


def test_putting_back_needs_labels_and_a_classifier():
    with pytest.raises(AssertionError, match="names no gold passages; put_back needs them"):
        answer(question=Question(id="id-q", text="q?", answers=()), put_back=True)
    with pytest.raises(ValueError, match="put_back is on, and judge is 'oracle'"):
        CISSettings(put_back=True, judge="oracle")


@pytest.mark.parametrize(("pairs", "kept_for_sure"), [("equation", ["a", "b"]), ("text", [])])
def test_random_removal_takes_as_many_as_the_classifier_from_the_same_passages(
    pairs, kept_for_sure
):
    lost = set()
    for n in range(40):
        question = Question(id=f"q{n}", text="q?", answers=())
        kept, asked, got = answer(question=question, judge="random", pairs=pairs)
        assert len(kept) == 3
        assert kept == sorted(kept)
        assert kept == answer(question=question, judge="random", pairs=pairs)[0]
        assert got.cost.scored == len(asked[0])
        lost |= set("abce") - set(kept)
    assert lost == set("abce") - set(kept_for_sure)


def test_similarity_reads_as_many_passages_of_the_plain_ranking():
    assert answer(judge="similarity")[0] == ["a", "b", "h"]
    none = dict.fromkeys(TABLE, 0.0)
    kept, _, got = answer(none, judge="similarity", pairs="text")
    assert kept == []
    assert got.cost.retrievals == 3


def test_nearest_removal_takes_as_many_and_those_least_like_the_question():
    # The question's ranking has e before c; the classifier keeps one of the two, and means c.
    rankings = {**RANKINGS, "q?": ["a", "b", "h", "e", "c"]}
    assert answer(rankings=rankings)[0] == ["a", "b", "c"]
    kept, asked, got = answer(rankings=rankings, judge="nearest")
    assert kept == ["a", "b", "e"]
    assert len(asked) == 1
    assert got.trace[-1] == {
        "stage": "select", "by": "nearest", "kept": ["a", "b", "e"], "left_out": ["c"]
    }  # fmt: skip
    # By the text any may go, of the first stage too; three of a b c e are kept, in their order.
    assert answer(rankings=rankings, judge="nearest", pairs="text")[0] == ["a", "b", "e"]
    none = dict.fromkeys(TABLE, 0.0)
    kept, _, got = answer(none, rankings, judge="nearest")
    assert (kept, got.cost.retrievals) == (["a", "b"], 3)


def test_ranked_removal_takes_as_many_from_the_end():
    table = {**TABLE, "ac": 0.0, "bc": 0.0, "be": 1.0}
    assert answer(table)[0] == ["a", "b", "e"]
    kept, asked, got = answer(table, judge="ranked")
    assert (kept, asked) == (["a", "b", "c"], answer(table)[1])
    assert got.trace[-1] == {
        "stage": "select", "by": "ranked", "kept": ["a", "b", "c"], "left_out": ["e"]
    }  # fmt: skip


def test_bm25_reads_as_many_passages_of_its_own_ranking():
    lexical = Tables({"q?": ["x", "a", "y", "z"]})
    kept, asked, _ = answer(judge="bm25", bm25=lexical)
    assert kept == ["x", "a", "y"]
    assert len(asked) == 1
    assert lexical.asked == [(("q?",), 3, None)]
    configured = base.get("cis").configure({"judge": "bm25"})
    assert configured.needs == {"drrag-classifier": "scorer", "bm25": "retriever"}


def test_the_trace_tells_each_pair_and_what_was_left_out():
    _, _, got = answer()
    assert [e["found"] for e in got.trace if e["stage"] == "retrieve"] == [
        ["a", "b"],
        ["c", "d"],
        ["c", "e"],
    ]
    judged = [e for e in got.trace if e["stage"] == "judge"]
    assert [(e["pair"], round(e["probability"], 4), e["positive"]) for e in judged] == [
        (["a", "c"], 0.9, True),
        (["b", "c"], 0.2, False),
        (["a", "e"], 0.1, False),
        (["b", "e"], 0.4, False),
    ]
    assert got.trace[-1] == {
        "stage": "select",
        "by": "classifier",
        "kept": ["a", "b", "c"],
        "left_out": ["e"],
    }


def test_it_selects_from_any_hits_without_retrieving():
    def method(question, settings):
        hits = [Hit(passage(n), 0.0, i) for i, n in enumerate("abce", start=1)]
        kept = yield from inverse_selection(question, hits[:2], hits[2:], settings, [])
        return Answer(hits=kept)

    got = answer_of(method, QUESTION, CISSettings(k=4), **{"drrag-classifier": Scores(TABLE)})
    assert ids(got.hits) == ["a", "b", "c"]


def test_pairs_that_nobody_knows_are_refused():
    with pytest.raises(ValueError, match=r"pairs is 'equations', did you mean 'equation'\?"):
        CISSettings(pairs="equations")
    with pytest.raises(ValueError, match="no setting 'depth'"):
        base.get("cis").configure({"depth": 3})


@pytest.mark.parametrize("pairs", ["equation", "text"])
@pytest.mark.parametrize("judge", ["classifier", "random"])
def test_results_are_equal_at_any_batch_size(pairs, judge):
    settings = CISSettings(k=4, pairs=pairs, judge=judge, threshold=0.6)
    tasks = [
        engine.Task(Question(f"{q.id}{n}", q.text + " very" * n, ()), cis, settings)
        for q in QUESTIONS
        for n in range(10)
    ]

    def answers(batch_size):
        world = World()
        services = {"retriever": world, "drrag-classifier": world}
        done = engine.run(tasks, services, batch_size=batch_size)
        return {task.question.id: got for task, got in done}

    one = answers(1)
    assert answers(5) == answers(16) == one
    assert all(got.error is None for got in one.values())
    assert len({len(got.hits) for got in one.values()}) > 1
