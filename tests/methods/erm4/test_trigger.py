"""Searches, memory and the order of what they bring."""

from __future__ import annotations

import pytest

from rag_repro.methods import base
from rag_repro.methods.erm4.pipeline import erm4
from rag_repro.schema import Hit
from tests.methods.erm4.desk import QUESTION, RANKINGS, Desk, counts, events, run
from tests.methods.scripted import Tables, answer_of, ids, passage


class Memory:
    """Reservoir: query -> passages with their similarities, the most similar first."""

    def __init__(self, table, ordered=False):
        self.table, self.ordered = table, ordered
        self.asked, self.kept = [], []

    def recall(self, query, k):
        self.asked.append((query, k))
        pairs = sorted(self.table.get(query, {}).items(), key=lambda pair: -pair[1])
        return [Hit(passage(name), score, n) for n, (name, score) in enumerate(pairs[:k], 1)]

    def remember(self, passages):
        self.kept += [p.id for p in passages]


# "one" has three titles at 0.6 or more, "two" two of them, "three" none.
KNOWN = {
    "one": {"u": 0.9, "v": 0.7, "w": 0.6, "x": 0.5},
    "two": {"v": 0.95, "d": 0.6, "y": 0.59},
    "three": {"x": 0.2},
}
FILLED = {"memory": "filled"}


def remembered(settings=None, table=KNOWN, **more):
    memory = Memory(table, ordered=(settings or {}).get("memory") == "online")
    answer, _, tables = run({**FILLED, **(settings or {})}, reservoir=memory, **more)
    return answer, memory, [q for queries, _, _ in tables.asked for q in queries]


def test_in_mixed_order_the_queries_best_come_in_turn():
    answer, _, tables = run()
    # one: abc, two: cbd, three: ecf.
    assert ids(answer.hits) == ["a", "c", "e", "b", "d", "f"]
    assert counts(answer, "fetched", "external", "shown") == (9, 6, 6)
    assert tables.asked == [(("one", "two", "three"), 3, None)]


def test_in_sequential_order_query_follows_query():
    answer, _, _ = run({"order": "sequential"})
    assert ids(answer.hits) == ["a", "b", "c", "d", "e", "f"]
    assert ids(run({"order": "sequential", "queries": 1})[0].hits) == ["a", "b", "c"]


def test_only_k_stay_and_the_filter_judges_no_more():
    answer, _, _ = run({"k": 4})
    assert ids(answer.hits) == ["a", "c", "e", "b"]
    assert counts(answer, "external", "shown") == (6, 4)
    answer, _, _ = run(
        {"k": 4, "order": "sequential", "filter": "nli"}, reader=Desk(entailed="adf")
    )
    assert ids(answer.hits) == ["a", "d"]
    assert counts(answer, "judged", "irrelevant") == (4, 2)


def test_each_query_brings_so_many():
    answer, _, tables = run({"per_query": 1})
    assert (tables.asked[0][1], ids(answer.hits)) == (1, ["a", "c", "e"])


def test_one_query_brings_as_many_as_all_together():
    answer, _, tables = run({"matched": True, "queries": 2}, rankings=RANKINGS | {"one": "abcdef"})
    # one: abc and two: cbd are four passages.
    assert tables.asked == [(("one", "two"), 3, None), (("one",), 4, None)]
    assert ids(answer.hits) == ["a", "b", "c", "d"]
    assert [(e["query"], e["found"]) for e in events(answer, "retrieve")] == [
        ("one", list("abcd")),
        ("two", []),
    ]
    assert counts(answer, "searches", "external", "queries") == (3, 4, 2)
    nothing = dict.fromkeys(RANKINGS, "")
    answer, _, tables = run({"matched": True}, rankings=nothing)
    assert (len(tables.asked), answer.hits) == (1, ())


def test_without_search_the_reader_is_asked_the_rewritten_question_alone():
    answer, reader, tables = run({"search": False, "per_query": None, "prompt": "short"})
    assert (tables.asked, answer.hits) == ([], ())
    assert reader.prompts[1].endswith("\n\nQuestion: Who made the thing?\nAnswer:")
    assert counts(answer, "queries", "searches", "outputs", "shown") == (0, 0, 1, 0)


def test_own_candidates_limit_every_search():
    question = type(QUESTION)("q", QUESTION.text, (), candidates=("b", "d"))
    answer, _, tables = run({"own_candidates": True}, question=question)
    assert tables.asked[0][2] == [("b", "d")] * 3
    assert ids(answer.hits) == ["b", "d"]


def test_a_query_within_the_knowledge_is_answered_from_memory_alone():
    answer, memory, searched = remembered()
    # Pop("one") is 3 with theta 3; "two" has 2, "three" none.
    assert searched == ["two", "three"]
    assert memory.asked == [("one", 10_000), ("two", 10_000), ("three", 10_000)]
    told = [(e["popularity"], e["searched"], e["recalled"]) for e in events(answer, "retrieve")]
    assert told == [(3, False, ["u", "v", "w"]), (2, True, []), (0, True, [])]
    # u v w, c b d, e c f in turn.
    assert ids(answer.hits) == ["u", "c", "e", "v", "b", "f", "w", "d"]
    assert counts(answer, "queries", "searches", "fetched", "external", "memory") == (3, 2, 6, 5, 3)
    # Recalls count as retrievals, as searches do: the counts tell them apart.
    assert answer.cost.retrievals == 5


@pytest.mark.parametrize(
    ("tau", "theta", "searched"),
    [
        (0.6, 2, ["three"]),
        (0.6, 3, ["two", "three"]),
        (0.6, 4, ["one", "two", "three"]),
        (0.61, 3, ["one", "two", "three"]),
        (0.5, 4, ["two", "three"]),
        (0.2, 1, []),
        (0.21, 1, ["three"]),
        (1.0, 1, ["one", "two", "three"]),
        (-1.0, 3, ["three"]),
        (0.95, 1, ["one", "three"]),
    ],
)
def test_tau_and_theta_are_reached_by_equality(tau, theta, searched):
    assert remembered({"tau": tau, "theta": theta})[2] == searched


def test_popularity_counts_all_and_so_many_are_brought():
    answer, _, searched = remembered({"recalled": 2})
    assert searched == ["two", "three"]
    assert [e["recalled"] for e in events(answer, "retrieve")] == [["u", "v"], [], []]
    assert [e["popularity"] for e in events(answer, "retrieve")] == [3, 2, 0]


def test_memory_beside_what_is_searched_for():
    answer, _, searched = remembered({"beside": True, "order": "sequential"})
    assert searched == ["two", "three"]
    told = [(e["found"], e["recalled"]) for e in events(answer, "retrieve")]
    assert told == [([], ["u", "v", "w"]), (list("cbd"), ["v", "d"]), (list("ecf"), [])]
    # Behind what the query found; d was found, so that it is no item of memory.
    assert ids(answer.hits) == ["u", "v", "w", "c", "b", "d", "e", "f"]
    assert counts(answer, "external", "memory") == (5, 3)


def test_an_empty_memory_changes_nothing():
    plain, _, _ = run()
    answer, _, searched = remembered(table={})
    assert ids(answer.hits) == ids(plain.hits)
    assert searched == ["one", "two", "three"]


def test_what_memory_brings_is_filtered_or_spared():
    given = {"filter": "nli", "order": "sequential"}
    answer, _, _ = remembered(given, reader=Desk(entailed="uc"))
    assert ids(answer.hits) == ["u", "c"]
    assert counts(answer, "judged", "irrelevant") == (8, 6)
    answer, _, _ = remembered({**given, "filter_memory": False}, reader=Desk(entailed="uc"))
    assert ids(answer.hits) == ["u", "v", "w", "c"]
    assert counts(answer, "judged", "irrelevant") == (5, 4)
    # What memory brings is knowledge: there is nothing to back off from.
    given = {**given, "back_off": "all"}
    answer, _, _ = remembered({**given, "filter_memory": False}, reader=Desk(entailed=""))
    assert (ids(answer.hits), counts(answer, "backed_off")) == (["u", "v", "w"], (0,))
    answer, _, _ = remembered(given, reader=Desk(entailed=""))
    assert (len(answer.hits), counts(answer, "backed_off")) == (8, (1,))


def test_a_query_cache_answers_the_queries_that_it_knows():
    table = {"two": {"v": 1.0, "u": 1.0}}
    answer, memory, searched = remembered({"trigger": "exact"}, table=table)
    assert searched == ["one", "three"]
    assert memory.asked == [("one", 3), ("two", 3), ("three", 3)]
    assert ids(answer.hits) == ["a", "v", "e", "b", "u", "c", "f"]
    assert counts(answer, "searches", "memory") == (2, 2)


ONLINE = {"memory": "online", "order": "sequential"}


def test_what_was_fetched_is_remembered_the_best_last():
    answer, memory, _ = remembered(ONLINE)
    # Of u v w only memory knows: nothing new. c b d e f were found, in this order.
    assert memory.kept == ["f", "e", "d", "b", "c"]
    assert [p.id for p in answer.remembered] == memory.kept
    # All that was fetched, beyond the k that are read.
    _, memory, _ = remembered({**ONLINE, "k": 2}, table={})
    assert memory.kept == ["f", "e", "d", "c", "b", "a"]
    _, memory, _ = remembered({**ONLINE, "order": "mixed"}, table={})
    assert memory.kept == ["f", "d", "b", "e", "c", "a"]


def test_raw_or_filtered_content():
    given = {**ONLINE, "filter": "nli"}
    _, memory, _ = remembered(given, reader=Desk(entailed="ub"))
    assert memory.kept == ["f", "e", "d", "b", "c"]
    answer, memory, _ = remembered({**given, "content": "filtered"}, reader=Desk(entailed="ube"))
    assert ids(answer.hits) == ["u", "b", "e"]
    assert memory.kept == ["e", "b"]


def test_nothing_is_remembered_where_all_is_known_or_memory_is_filled():
    every = {"u": 0.9, "v": 0.8, "w": 0.7}
    answer, memory, searched = remembered(
        ONLINE, table=dict.fromkeys(("one", "two", "three"), every)
    )
    assert (searched, memory.kept, "Remember" in answer.calls) == ([], [], False)
    _, memory, _ = remembered()
    assert memory.kept == []


def test_nothing_is_asked_of_a_memory_that_is_not_there():
    settings = base.get("erm4").configure({"per_query": 3})
    answer = answer_of(erm4, QUESTION, settings, reader=Desk(), retriever=Tables(RANKINGS))
    assert "Recall" not in answer.calls
    assert [e["popularity"] for e in events(answer, "retrieve")] == [None] * 3


# ------------------------------------------------------------------- noise that is set (c41)


def noisy(noise, reader=None, question=QUESTION, **more):
    given = {"rewrite": "none", "noise": noise, "k": 30, "per_query": None, **more}
    return run(given, question=question, reader=reader)


def test_gold_and_so_much_noise_is_what_is_read():
    answer, _, tables = noisy(0)
    assert sorted(ids(answer.hits)) == ["a", "d"]
    assert tables.asked == [(("who made it?",), 2, [("a", "d")])]
    answer, _, tables = noisy(3)
    assert sorted(ids(answer.hits)) == ["a", "b", "c", "d", "e"]
    assert tables.asked[1] == (("who made it?",), 5, None)
    # The nearest; and more noise is that of before and further passages.
    assert set(ids(noisy(2)[0].hits)) == set("adbc")
    assert counts(answer, "queries", "searches", "outputs", "shown") == (0, 0, 0, 5)


def test_the_filter_sees_the_noise_and_the_order_is_the_questions_own():
    plain, _, _ = noisy(3)
    answer, _, _ = noisy(3, Desk(entailed="ab"), filter="nli")
    assert ids(answer.hits) == [name for name in ids(plain.hits) if name in "ab"]
    assert counts(answer, "judged", "irrelevant") == (5, 3)
    orders = set()
    for name in ("q1", "q2", "q3", "q4"):
        question = type(QUESTION)(name, QUESTION.text, (), gold=QUESTION.gold)
        orders.add(tuple(ids(noisy(3, question=question)[0].hits)))
    assert len(orders) > 1


def test_noise_needs_gold_and_stands_alone():
    with pytest.raises(AssertionError, match="names no gold passages"):
        noisy(1, question=type(QUESTION)("q", "x?", ()))
    configure = base.get("erm4").configure
    for wrong in (
        {"rewrite": "plus"},
        {"memory": "filled"},
        {"k": 5},
        {"per_query": 5},
        {"order": "mixed"},
        {"noise": -1},
        {"search": False},
    ):
        with pytest.raises(ValueError, match=r"noise|order|per_query|search"):
            configure({"rewrite": "none", "noise": 2, **wrong})
