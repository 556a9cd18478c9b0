"""Passages that share the question's relation word, left out of a ranking written by hand."""

from __future__ import annotations

import pytest

from rag_repro.methods import base
from rag_repro.methods.drrag.probes import dropped, shared_words
from rag_repro.schema import Gold, Hit, Passage, Question
from tests.methods.scripted import answer_of, ids

TEXT = {
    "s": "Peter Heiberg had a son, Johan.",
    "m": "Anna was the spouse of somebody else.",
    "n": "The spouse of Otto was a spouse.",
    "x": "Peter Heiberg Street is a road.",
    "y": "A road in town.",
    "d": "Johan took Johanne as his spouse.",
}
QUESTION = Question(
    "q",
    "Who is the spouse of the son of Peter Heiberg?",
    ("Johanne",),
    gold=(Gold("s", "static", 1), Gold("d", "dynamic", 2)),
)
RANKED = "smxnyd"


class Texts:
    """Ranks the passages as RANKED does."""

    def search(self, queries, k, within=None):
        allowed = [within[i] if within and within[i] is not None else RANKED for i in (0,)]
        kept = [name for name in RANKED if name in allowed[0]][:k]
        return [
            [Hit(Passage(n, n, TEXT[n]), 1.0, rank) for rank, n in enumerate(kept, start=1)]
            for _ in queries
        ]


def answer(question=QUESTION, **settings):
    spec = base.get("uncrowded")
    given = spec.configure({"k": 3, "depth": 6, **settings})
    return answer_of(spec.run, question, given, retriever=Texts())


def test_who_shares_the_word_goes_and_the_dynamic_passage_rises():
    got = answer()
    assert ids(got.hits) == ["s", "x", "y"]
    assert got.trace[-1] == {"stage": "crowd", "words": ["spouse"], "dropped": ["m", "n"]}
    assert ids(answer(k=4).hits) == ["s", "x", "y", "d"]


def test_the_control_drops_as_many_others_the_best_first():
    got = answer(dropped="others", k=4)
    assert ids(got.hits) == ["s", "m", "n", "d"]
    assert got.trace[-1]["dropped"] == ["x", "y"]


def test_what_lies_beyond_the_depth_is_not_seen():
    assert ids(answer(depth=4, k=4).hits) == ["s", "x", "n"]


def test_without_a_dynamic_passage_or_a_shared_word_it_is_plain_search():
    static = Question("q", QUESTION.text, ("x",), gold=(Gold("s", "static", 1),))
    assert ids(answer(static).hits) == ["s", "m", "x"]
    silent = Question("q", "Peter Heiberg?", ("x",), gold=QUESTION.gold)
    assert ids(answer(silent).hits) == ["s", "m", "x"]


def test_names_first_words_and_stop_words_are_no_relation_words():
    passage = Passage(
        "p", "", "Johan, spouse and son, was here before whose Peter. It's road's end"
    )
    assert shared_words("Son of Peter: whose spouse was here before?", [passage]) == {"spouse"}
    assert shared_words("the spouse", []) == set()
    two = [Passage("a", "", "spouse"), Passage("b", "", "director")]
    assert shared_words("the director and his spouse", two) == {"spouse", "director"}


def test_gold_never_goes():
    hits = [Hit(Passage(n, n, TEXT[n]), 1.0, i) for i, n in enumerate(RANKED, start=1)]
    assert dropped(hits, {"spouse", "son"}, ("s", "d"), "sharing") == set("mn")
    assert dropped(hits, {"spouse"}, (), "sharing") == set("mnd")
    assert dropped(hits, {"spouse"}, (), "others") == set("sxy")
    assert dropped(hits, {"somebody"}, ("s",), "others") == {"x"}


def test_of_the_commoner_kind_no_more_go_than_there_are_of_the_rarer():
    hits = [Hit(Passage(n, n, TEXT[n]), 1.0, i) for i, n in enumerate(RANKED, start=1)]
    # Three hold the word, two do not: the last of the three stays.
    two = hits[1:]
    assert dropped(two, {"spouse"}, (), "sharing") == set("mn")
    assert dropped(two, {"spouse"}, (), "others") == set("xy")
    # One holds it, four do not.
    assert dropped(hits, {"somebody"}, ("s",), "sharing") == {"m"}
    # All hold it: there is nothing to compare with, and nothing goes.
    assert dropped([hits[1], hits[3]], {"spouse"}, (), "sharing") == set()


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="dropped is 'other', did you mean 'others'"):
        base.get("uncrowded").configure({"dropped": "other"})
    with pytest.raises(ValueError, match="depth is 2; it must be at least k = 3"):
        base.get("uncrowded").configure({"depth": 2})
