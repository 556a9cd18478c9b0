"""Classifier Forward Selection on rankings and probabilities written by hand."""

from __future__ import annotations

import pytest

from rag_repro import engine
from rag_repro.methods import base
from rag_repro.methods.drrag.concatenation import QDCSettings, qdc
from rag_repro.methods.drrag.selection import CFSSettings, cfs, forward_selection
from rag_repro.schema import Answer, Gold, Hit, Question
from tests.methods.golden import QUESTIONS, World
from tests.methods.scripted import Scores, Tables, answer_of, ids, passage

QUESTION = Question(
    id="id-q",
    text="q?",
    answers=("x",),
    gold=(Gold("b"), Gold("g")),
    candidates=("a", "b", "e", "g"),
)
# k = 4, k1 = k2 = 2. Outside the first stage (a, b): a's ranking c d e f, b's c e g h,
# and the question's own next passages h c d g.
RANKINGS = {
    "q?": ["a", "b", "h", "c", "d", "g"],
    "q? aa": ["a", "c", "b", "d", "e", "f"],
    "q? bb": ["b", "a", "c", "e", "g", "h"],
}
POSITIVE = {"ac": 0.9, "ad": 0.8, "bg": 0.7, "bh": 0.6}
NEGATIVE = {"ae": 0.1, "af": 0.0, "ah": 0.2, "ag": 0.3, "bc": 0.4, "be": 0.2, "bd": 0.1}


def answer(table=None, rankings=RANKINGS, question=QUESTION, **settings):
    """Kept passages, the classifier's calls, and the answer."""
    classifier = Scores({**NEGATIVE, **POSITIVE} if table is None else table)
    configured = base.get("cfs").configure({"k": 4, **settings})
    got = answer_of(
        cfs,
        question,
        configured,
        retriever=Tables(rankings),
        random=Tables({"id-q": ["b", "x", "a", "y", "z"]}),
        **{configured.classifier or "none": classifier},
    )
    return ids(got.hits), classifier.asked, got


def test_equation_4_adds_the_first_positive_of_each_first_stage_passage():
    # a: c is positive. b: c is in Cnt already and not asked, e is negative, g is positive.
    kept, asked, got = answer()
    assert kept == ["a", "b", "c", "g"]
    assert asked == [["ac"], ["be"], ["bg"]]
    assert (got.cost.retrievals, got.cost.scored) == (3, 3)


def test_query_document_concatenation_would_have_taken_the_negative_one():
    qdc_hits = answer_of(qdc, QUESTION, QDCSettings(k=4), retriever=Tables(RANKINGS)).hits
    assert ids(qdc_hits) == ["a", "b", "c", "e"]


def test_gold_that_the_classifier_refused_is_put_back_last_and_beyond_k():
    # g is gold: asked beside b and refused; h takes the last place, g comes back.
    table = {**NEGATIVE, **POSITIVE, "bg": 0.1}
    assert answer(table)[0] == ["a", "b", "c", "h"]
    kept, asked, got = answer(table, put_back=True)
    assert kept == ["a", "b", "c", "h", "g"]
    assert asked == [["ac"], ["be"], ["bg"], ["bh"]]
    assert {"stage": "put back", "passages": ["g"]} in got.trace


def test_gold_that_was_never_asked_about_is_not_put_back():
    # e takes b's place before g is reached: the classifier never refused g.
    table = {**NEGATIVE, **POSITIVE, "be": 0.9}
    assert answer(table, put_back=True)[0] == answer(table)[0] == ["a", "b", "c", "e"]


def test_algorithm_1_takes_every_positive_of_the_first_ranking_before_the_second():
    # Two places, so a's first two can be judged at once; both are positive, and b is never asked.
    kept, asked, _ = answer(first="algorithm", depth=3)
    assert kept == ["a", "b", "c", "d"]
    assert asked == [["ac", "ad"]]


def test_algorithm_1_without_a_cap_adds_all_positives():
    # a: c and d of c, d, e. b: of e and g (c is in Cnt) g.
    kept, asked, _ = answer(first="algorithm", depth=3, cap=False)
    assert kept == ["a", "b", "c", "d", "g"]
    assert asked == [["ac", "ad", "ae"], ["be", "bg"]]


def test_algorithm_1_adds_at_most_k1_times_k2():
    everything = dict.fromkeys(("ac", "ad", "bc", "be", "bg"), 1.0)
    rankings = {**RANKINGS, "q? bb": ["e", "g", "h"]}
    kept, _, _ = answer(everything, rankings, first="algorithm", cap=False)
    assert kept == ["a", "b", "c", "d", "e", "g"]


def test_a_place_that_algorithm_1_could_not_fill_is_offered_to_the_next_passage():
    # a: c and d together, one is positive; the one place left: e, f, negative. b: g is positive.
    kept, asked, _ = answer({**NEGATIVE, **POSITIVE, "ad": 0.4}, first="algorithm", depth=4)
    assert kept == ["a", "b", "c", "g"]
    assert asked == [["ac", "ad"], ["ae"], ["af"], ["be"], ["bg"]]


def test_a_passage_refused_beside_one_may_be_accepted_beside_another():
    kept, asked, _ = answer({**NEGATIVE, **POSITIVE, "ac": 0.0, "bc": 0.5})
    assert kept == ["a", "b", "d", "c"]
    assert asked == [["ac"], ["ad"], ["bc"]]


def test_no_positive_leaves_the_first_stage_alone_and_reads_to_the_depth():
    table = dict.fromkeys((*NEGATIVE, *POSITIVE), 0.49)
    kept, asked, got = answer(table, depth=3)
    assert kept == ["a", "b"]
    assert asked == [["ac"], ["ad"], ["ae"], ["bc"], ["be"], ["bg"]]
    assert got.cost.scored == 6


def test_a_passage_without_a_partner_leaves_its_place_to_no_other():
    # a finds none. b has two, g and h; equation 4 lets in the first.
    table = {**dict.fromkeys((*NEGATIVE, *POSITIVE), 0.0), "bg": 0.9, "bh": 0.9}
    kept, asked, _ = answer(table)
    assert kept == ["a", "b", "g"]
    assert asked[-1] == ["bg"]
    # Algorithm 1 takes both.
    assert answer(table, first="algorithm", depth=4)[0] == ["a", "b", "g", "h"]


def test_depth_counts_only_passages_outside_the_first_stage():
    # b stands among a's first three, and is no candidate of the second stage.
    kept, asked, got = answer(dict.fromkeys((*NEGATIVE, *POSITIVE), 0.0), depth=2)
    assert asked == [["ac"], ["ad"], ["bc"], ["be"]]
    assert kept == ["a", "b"]
    found = [event["found"] for event in got.trace if event["stage"] == "retrieve"]
    assert found == [["a", "b"], ["c", "d"], ["c", "e"]]


def test_depth_by_default_is_ten_and_for_algorithm_1_its_own_k2():
    assert CFSSettings(k=4).depth == 10
    assert CFSSettings(k=6, k1=2, first="algorithm").depth == 4


def test_the_threshold_itself_is_positive_in_the_classifiers_own_precision():
    # 0.7 as float32 lies below 0.7: the comparison must be made in float32.
    just = {**NEGATIVE, "ac": 0.7, "ad": 0.69, "bg": 0.7, "bh": 0.0}
    assert answer(just, threshold=0.7)[0] == ["a", "b", "c", "g"]
    assert answer(just, threshold=0.71, depth=3)[0] == ["a", "b"]


def test_threshold_zero_is_query_document_concatenation():
    table = dict.fromkeys((*NEGATIVE, *POSITIVE, "ab"), 0.0)
    for k, k1 in ((3, 2), (4, 2), (4, 1)):
        qdc_hits = answer_of(
            qdc, QUESTION, QDCSettings(k=k, k1=k1), retriever=Tables(RANKINGS)
        ).hits
        assert answer(table, k=k, k1=k1, threshold=0.0)[0] == ids(qdc_hits)


def test_a_small_first_stage_goes_round_again_and_repeats_no_pair():
    # k1 = 1: b is a candidate now. c, then d, go in; e and f are negative.
    table = {"ac": 0.9, "ab": 0.2, "ad": 0.8, "ae": 0.1, "af": 0.3}
    kept, asked, _ = answer(table, k1=1)
    assert kept == ["a", "c", "d"]
    assert asked == [["ac"], ["ab"], ["ad"], ["ae"], ["af"]]


def test_each_has_as_many_turns_as_the_second_stage_needs():
    # k1 = 2, k2 = 3: two rounds. a: c. b: e no, g. a again: d. Now there are five.
    kept, asked, _ = answer(k=5, k1=2)
    assert kept == ["a", "b", "c", "g", "d"]
    assert asked == [["ac"], ["be"], ["bg"], ["ad"]]
    # Two turns are the most: of c, d, e the third stays out, though b brings nothing.
    table = {**dict.fromkeys((*NEGATIVE, *POSITIVE), 0.0), "ac": 0.9, "ad": 0.9, "ae": 0.9}
    assert answer(table, k=5, k1=2)[0] == ["a", "b", "c", "d"]


def test_one_place_goes_to_the_first_passage_that_finds_a_partner():
    assert answer(k=3)[:2] == (["a", "b", "c"], [["ac"]])


@pytest.mark.parametrize("first", ["equation", "algorithm"])
def test_k1_equal_to_k_asks_for_no_second_stage(first):
    kept, asked, got = answer({}, k=2, k1=2, first=first)
    assert (kept, asked) == (["a", "b"], [])
    assert got.calls == ("Retrieve",)


def test_a_short_corpus_gives_what_there_is():
    rankings = {"q?": ["a"], "q? aa": ["a"]}
    assert answer({}, rankings)[:2] == (["a"], [])
    assert answer({}, {"q?": []})[:2] == ([], [])


def test_own_candidates_limit_both_stages():
    kept, asked, _ = answer(own_candidates=True)
    assert kept == ["a", "b", "g"]
    assert asked == [["ae"], ["be"], ["bg"]]


def test_without_concatenation_the_questions_next_passages_are_candidates_of_all():
    # h c d g follow a b. a: h no, c yes. b: h yes.
    kept, asked, got = answer(second="next")
    assert kept == ["a", "b", "c", "h"]
    assert asked == [["ah"], ["ac"], ["bh"]]
    assert got.calls == ("Retrieve", "Score", "Score", "Score")


def test_without_concatenation_depth_reads_so_many_next_passages():
    kept, asked, _ = answer(second="next", depth=1)
    assert (kept, asked) == (["a", "b", "h"], [["ah"], ["bh"]])


def test_random_passages_take_the_place_of_the_first_stage_in_the_second_queries():
    # Drawn for the question: b x a y. a and b are in the first stage, so x and y are taken.
    rankings = {"q?": ["a", "b"], "q? xx": ["x", "d"], "q? yy": ["a", "c", "h"]}
    table = {"ax": 0.1, "ad": 0.8, "bc": 0.4, "bh": 0.6}
    kept, asked, got = answer(table, rankings, second="random")
    assert kept == ["a", "b", "d", "h"]
    assert asked == [["ad"], ["bc"], ["bh"]]  # x stands in the query: no find
    beside = [event["beside"] for event in got.trace if event["stage"] == "retrieve"]
    assert beside == [None, "x", "y"]
    assert got.cost.retrievals == 4


def test_the_oracle_takes_gold_pairs_and_asks_no_classifier():
    # b and g are gold. a's candidates never pair with it; b finds g.
    kept, asked, got = answer({}, judge="oracle")
    assert (kept, asked) == (["a", "b", "g"], [])
    assert got.cost.scored == 0
    judged = [event for event in got.trace if event["stage"] == "judge"]
    assert {event["by"] for event in judged} == {"oracle"}
    assert [event["pair"] for event in judged if event["positive"]] == [["b", "g"]]


def test_the_oracle_needs_labels():
    bare = Question(id="bare", text="q?", answers=())
    settings = CFSSettings(k=4, judge="oracle")
    task = engine.Task(bare, cfs, settings)
    [(_, got)] = engine.run([task], {"retriever": Tables(RANKINGS)})
    assert "question 'bare' names no gold passages; judge 'oracle' needs them" in got.error


def test_random_selection_keeps_as_many_as_the_classifier():
    # The classifier adds one of the candidates c d e g h f; chance may add any of them.
    table = {**dict.fromkeys((*NEGATIVE, *POSITIVE), 0.0), "bg": 0.9}
    added = set()
    for n in range(30):
        question = Question(id=f"q{n}", text="q?", answers=())
        kept, asked, got = answer(table, question=question, judge="random", depth=4)
        assert kept[:2] == ["a", "b"]
        assert len(kept) == 3
        assert kept == answer(table, question=question, judge="random", depth=4)[0]
        assert len(asked) == got.cost.scored == 7  # a: c d e f, b: c e g
        added.add(kept[2])
    assert added == set("cdefgh")


def test_random_selection_stands_in_the_order_of_the_candidates():
    for n in range(10):
        question = Question(id=f"q{n}", text="q?", answers=())
        kept = answer(question=question, judge="random", depth=4)[0]
        assert len(kept) == 4
        assert kept[2:] == sorted(kept[2:], key="cdefgh".index)


@pytest.mark.parametrize("k", [3, 4, 5])
def test_ranked_reads_as_many_as_the_classifier_keeps_of_those_that_qdc_takes(k):
    kept, asked, got = answer(judge="ranked", k=k, k1=2)
    chosen, *_ = answer(k=k, k1=2)
    first = answer_of(
        qdc, QUESTION, base.get("qdc").configure({"k": k, "k1": 2}), retriever=Tables(RANKINGS)
    )
    assert kept == ids(first.hits)[: len(chosen)]
    assert asked == answer(k=k, k1=2)[1]
    assert got.trace[-1]["by"] == "ranked"


def test_ranked_keeps_the_first_stage_where_the_classifier_keeps_nothing_else():
    none = dict.fromkeys({**NEGATIVE, **POSITIVE}, 0.0)
    assert answer(none, judge="ranked")[0] == ["a", "b"]
    # Algorithm 1 reads the rankings one after the other.
    assert (
        answer(judge="ranked", first="algorithm", depth=3)[0]
        == (answer(judge="ranked", first="algorithm", depth=3, cap=False)[0][:4])
    )


def test_similarity_reads_as_many_passages_of_the_plain_ranking():
    # The classifier keeps a b c g: four, so similarity reads its own first four.
    kept, asked, got = answer(judge="similarity")
    assert kept == ["a", "b", "h", "c"]
    assert asked == [["ac"], ["be"], ["bg"]]
    assert got.cost.retrievals == 4
    none = dict.fromkeys((*NEGATIVE, *POSITIVE), 0.0)
    assert answer(none, judge="similarity")[0] == ["a", "b"]


def test_the_trace_tells_each_search_each_pair_and_what_was_kept():
    _, _, got = answer(depth=3)
    assert list(got.trace) == [
        {"stage": "retrieve", "query": "q?", "beside": None, "found": ["a", "b"]},
        {"stage": "retrieve", "query": "q? aa", "beside": "a", "found": ["c", "d", "e"]},
        {"stage": "retrieve", "query": "q? bb", "beside": "b", "found": ["c", "e", "g"]},
        pair("a", "c", 0.9, True),
        pair("b", "e", 0.2, False),
        pair("b", "g", 0.7, True),
        {"stage": "select", "by": "classifier", "kept": list("abcg"), "left_out": list("de")},
    ]


def pair(a, b, probability, positive):
    return {
        "stage": "judge",
        "by": "classifier",
        "pair": [a, b],
        "probability": pytest.approx(probability),
        "positive": positive,
    }


def test_the_trace_of_a_control_says_which_control_chose():
    for judge in ("random", "similarity"):
        last = answer(judge=judge)[2].trace[-1]
        assert (last["stage"], last["by"]) == ("select", judge)
        assert {e["by"] for e in answer(judge=judge)[2].trace if e["stage"] == "judge"} == {
            "classifier"
        }


@pytest.mark.parametrize("bad", [float("nan"), 1.2, -0.1])
def test_a_score_that_is_no_probability_fails_the_question_by_name(bad):
    with pytest.raises(AssertionError, match=r"'drrag-classifier' gave .* no probability"):
        answer({**POSITIVE, **NEGATIVE, "be": bad})


def test_a_scorer_that_gives_too_few_scores_stops_the_run():
    """Of several questions' pairs nobody could say whose score is missing."""

    class Short(Scores):
        def score(self, items):
            return super().score(items)[:-1]

    task = engine.Task(QUESTION, cfs, CFSSettings(k=4))
    services = {"retriever": Tables(RANKINGS), "drrag-classifier": Short(POSITIVE)}
    with pytest.raises(engine.ServiceError, match="gave 0 results for 1 texts"):
        list(engine.run([task], services))


def test_the_classifier_is_a_service_by_its_name():
    configured = base.get("cfs").configure({"classifier": "other"})
    assert configured.needs == {"other": "scorer"}
    assert answer(classifier="other")[0] == ["a", "b", "c", "g"]
    assert base.get("cfs").configure({"second": "random"}).needs == {
        "random": "retriever",
        "drrag-classifier": "scorer",
    }
    assert base.get("cfs").configure({"judge": "oracle"}).needs == {}


def test_it_selects_from_any_ranked_list_without_retrieving():
    # As a stage of its own: other methods hand in hits, split where they like.
    def method(question, settings):
        hits = [Hit(passage(n), 0.0, i) for i, n in enumerate("abdcg", start=1)]
        trace = []
        # First-stage passages among the candidates are passed over.
        kept = yield from forward_selection(question, hits[:2], [hits] * 2, settings, trace)
        return Answer(hits=kept, trace=tuple(trace))

    scorer = Scores({**POSITIVE, **NEGATIVE})
    got = answer_of(method, QUESTION, CFSSettings(k=4), **{"drrag-classifier": scorer})
    assert ids(got.hits) == ["a", "b", "d", "g"]
    assert scorer.asked == [["ad"], ["bc"], ["bg"]]
    assert got.trace[-1]["left_out"] == ["c"]
    for n in range(10):  # nor are they drawn by chance
        question = Question(id=f"q{n}", text="q?", answers=())
        settings = CFSSettings(k=4, judge="random")
        drawn = answer_of(method, question, settings, **{"drrag-classifier": scorer})
        assert len(set(ids(drawn.hits))) == 4


def test_more_first_stage_passages_than_k_leave_no_place():
    def method(question, settings):
        hits = [Hit(passage(n), 0.0, i) for i, n in enumerate("abdc", start=1)]
        kept = yield from forward_selection(question, hits[:3], [hits[3:]] * 3, settings, [])
        return Answer(hits=kept)

    got = answer_of(method, QUESTION, CFSSettings(k=2), **{"drrag-classifier": Scores({})})
    assert ids(got.hits) == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"first": "algoritm"}, r"first is 'algoritm', did you mean 'algorithm'\?; it is one of"),
        ({"second": "rand"}, r"second is 'rand', did you mean 'random'\?"),
        ({"judge": "gold"}, r"judge is 'gold'.*one of: classifier, oracle, random, similarity"),
        ({"threshold": 1.1}, r"threshold is 1.1; it must lie between 0 and 1"),
        ({"threshold": float("nan")}, r"threshold is nan"),
        ({"depth": 0}, r"depth is 0; it must be at least 1"),
        ({"cap": False}, r"cap is off, which equation 4 cannot mean.*first: algorithm"),
        ({"judge": "oracle", "threshold": 0.3}, r"threshold 0.3 would do nothing.*'oracle'"),
        ({"depth": 80}, r"160 pairs.*depth of at most 75"),
        ({"k1": 5}, r"k1 is 5; it must lie between 1 and k = 4"),
        ({"classifier": ""}, r"judge 'classifier' needs a classifier's name"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        base.get("cfs").configure({"k": 4, **settings})


def test_algorithm_1_may_read_deeper_than_equation_4():
    # It asks a ranking's pairs together, so that the engine's limit of calls is far.
    assert CFSSettings(k=4, first="algorithm", depth=80).depth == 80


@pytest.mark.parametrize("first", ["equation", "algorithm"])
@pytest.mark.parametrize("judge", ["classifier", "random", "similarity"])
def test_results_are_equal_at_any_batch_size(first, judge):
    settings = CFSSettings(k=4, first=first, judge=judge, threshold=0.6)
    tasks = [
        engine.Task(Question(f"{q.id}{n}", q.text + " very" * n, ()), cfs, settings)
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
    assert {len(got.hits) for got in one.values()} > {4}  # some find too few positives
