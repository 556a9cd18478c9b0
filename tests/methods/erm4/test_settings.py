"""Settings: what they become where they are left out, and what is refused."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from rag_repro.methods import base

CONFIGURE = base.get("erm4").configure


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"rewrite": "pluss"}, "did you mean 'plus'"),
        ({"rewrite": "none", "rewriter": "r"}, "rewriter would do nothing with rewrite 'none'"),
        ({"rewrite": "query", "queries": 2}, "queries would do nothing with rewrite 'query'"),
        ({"rewrite": "query", "asked": "original"}, "asked would do nothing"),
        ({"asked": "orignal"}, "did you mean 'original'"),
        ({"queries": 0}, "queries is 0"),
        ({"rewriter_tokens": 0}, "rewriter_tokens is 0"),
        ({"order": "mix"}, "did you mean 'mixed'"),
        ({"per_query": 0}, "per_query is 0"),
        ({"matched": True, "rewrite": "query"}, "matched compares"),
        ({"matched": True, "memory": "online"}, "matched compares"),
        ({"search": False, "per_query": 5}, "per_query would do nothing with search off"),
        ({"search": False, "filter": "nli"}, "filter would do nothing with search off"),
        ({"search": False, "memory": "online"}, "memory would do nothing with search off"),
        ({"search": False, "own_candidates": True}, "own_candidates would do nothing"),
        ({"search": False, "rewrite": "query"}, "is the method no_retrieval"),
        ({"filter": "nl"}, "did you mean 'nli'"),
        ({"hypothesis": "weak"}, "hypothesis would do nothing with filter 'none'"),
        ({"filter": "gold", "label": "scored"}, "label would do nothing with filter 'gold'"),
        ({"back_off": "all"}, "back_off would do nothing with filter 'none'"),
        ({"filter": "nli", "hypothesis": "strongest"}, "hypothesis is 'strongest'"),
        ({"filter": "nli", "label": "score"}, "did you mean 'scored'"),
        ({"filter": "nli", "back_off": "none"}, "back_off is 'none'"),
        ({"filter": "nli", "keep": "rand"}, "did you mean 'random'"),
        ({"filter": "nli", "seed": 1}, "seed would do nothing with keep 'entailed'"),
        ({"filter": "nli", "explanation_tokens": 9}, "would do nothing with explain off"),
        ({"filter": "nli", "k": 70}, "k is 70"),
        ({"filter": "nli", "k": 50, "explain": True}, "k is 50"),
        ({"memory": "full"}, "did you mean 'filled'"),
        ({"tau": 0.5}, "tau would do nothing with no memory"),
        ({"memory": "online", "fill_n": 9}, "fill_n would do nothing with memory 'online'"),
        ({"memory": "online", "trigger": "exact"}, "take memory: filled"),
        ({"memory": "filled", "trigger": "exact", "tau": 0.5}, "tau would do nothing with trigger"),
        ({"memory": "filled", "trigger": "popular"}, "did you mean 'popularity'"),
        ({"memory": "filled", "content": "filtered"}, "name a filter"),
        ({"memory": "filled", "content": "row"}, "did you mean 'raw'"),
        ({"memory": "filled", "same": "titel"}, "did you mean 'title'"),
        ({"memory": "filled", "tau": 1.1}, "tau is 1.1"),
        ({"memory": "filled", "fill": "world-X"}, "no data set 'world-X'"),
        ({"memory": "filled", "theta": 0}, "theta is 0"),
        ({"memory": "filled", "capacity": 0}, "capacity is 0"),
        ({"memory": "filled", "recalled": 0}, "recalled is 0"),
        ({"memory": "filled", "filter_memory": True}, "filter_memory would do nothing"),
        ({"rewriter": "reservoir", "memory": "online"}, "'reservoir' is the memory"),
    ],
)
def test_what_cannot_be_or_would_do_nothing_is_refused(given, wrong):
    with pytest.raises(ValueError, match=wrong):
        CONFIGURE(given)


@pytest.mark.parametrize(
    ("given", "spelt"),
    [
        ({}, {"rewrite": "plus", "queries": 3, "asked": "rewritten", "per_query": 10, "k": 30}),
        ({"filter": "nli"}, {"hypothesis": "strong", "label": "scored", "back_off": "nothing"}),
        ({"filter": "nli", "keep": "random"}, {"keep": "random", "seed": 0}),
        ({"filter": "ask", "explain": True}, {"explain": True, "explanation_tokens": 60}),
        ({"memory": "online"}, {"tau": 0.6, "theta": 3, "recalled": 10, "same": "title"}),
        ({"memory": "filled"}, {"fill": None, "fill_n": 100, "fill_split": "tune"}),
    ],
)
def test_defaults_spelt_out_are_the_same_condition(given, spelt):
    assert asdict(CONFIGURE(given)) == asdict(CONFIGURE(given | spelt))


def test_services_that_are_needed():
    assert CONFIGURE({}).needs == {}
    given = {"rewriter": "r", "filter": "nli", "judge": "j", "memory": "online", "encoder": "e"}
    assert CONFIGURE(given).needs == {
        **{"r": "reader", "j": "reader", "e": "encoder"},
        "reservoir": "reservoir",
    }
    assert CONFIGURE({"memory": "filled", "trigger": "exact"}).needs == {"reservoir": "reservoir"}


def test_a_memory_is_filled_by_other_questions():
    assert CONFIGURE({"memory": "filled"}).fill_split == "tune"
    named = CONFIGURE({"memory": "filled", "fill": "world-B"})
    assert (named.fill, named.fill_split, named.fill_n) == ("world-B", "test", 100)


def test_filling_is_the_same_pipeline_without_memory_and_reading():
    given = {"rewriter": "r", "per_query": 5, "order": "sequential", "queries": 2}
    fills = CONFIGURE(given)
    for more in ({}, {"tau": 0.2}, {"trigger": "exact"}, {"k": 10}, {"prompt": "short"},
                 {"asked": "original"}, {"filter": "nli"}, {"fill_n": 7}):  # fmt: skip
        assert CONFIGURE({**given, "memory": "filled", **more}).filling() == fills
    assert CONFIGURE({"memory": "filled", "per_query": 5}).filling() != fills
    # What the filter keeps depends on all that the filter sees.
    filters = {**given, "filter": "nli", "explain": True, "k": 10, "asked": "original"}
    made = CONFIGURE({**filters, "memory": "filled", "content": "filtered", "prompt": "short"})
    assert made.filling() == CONFIGURE(filters)


def test_whose_reader_is_asked():
    for given, asks in (
        ({}, True),
        ({"rewrite": "none"}, False),
        ({"rewriter": "r"}, False),
        ({"rewriter": "r", "filter": "nli"}, True),
        ({"rewriter": "r", "filter": "nli", "judge": "j"}, False),
        ({"rewrite": "none", "filter": "gold"}, False),
    ):
        assert CONFIGURE(given).asks_reader is asks
