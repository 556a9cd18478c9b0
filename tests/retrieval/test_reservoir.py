"""The reservoir: which pairs it holds, which it finds, and what it is when it is frozen."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.retrieval import Reservoir, RetrievalError
from rag_repro.retrieval.reservoir import QueryCache
from rag_repro.schema import Passage


class Table:
    """Encoder: a vector by text; `asked` are the texts of each call."""

    fingerprint = "table"

    def __init__(self, **vectors):
        self.vectors = {"Ash": (1, 0), "ash": (0, 1), "Oak": (3, 4), "Elm": (4, 3), **vectors}
        self.asked = []

    def encode(self, texts):
        self.asked.append(list(texts))
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


def pair(name, title, text=""):
    return Passage(name, title, text or f"text of {name}")


ASH, OAK, ELM = pair("a", "Ash"), pair("o", "Oak"), pair("e", "Elm")


def filled(*passages, encoder=None, **settings):
    made = Reservoir(encoder or Table(), **settings)
    made.remember(passages)
    return made


def names(passages):
    return [passage.id for passage in passages]


def test_titles_are_found_by_their_cosine_with_the_query():
    hits = filled(ASH, OAK, ELM).recall("Oak", 9)
    # (3, 4) with (3, 4), (4, 3), (1, 0): lengths do not count.
    assert [(h.passage.id, h.score, h.rank) for h in hits] == [
        ("o", 1.0, 1), ("e", 0.96, 2), ("a", 0.6, 3)
    ]  # fmt: skip
    assert names(h.passage for h in filled(ASH, OAK, ELM).recall("Oak", 2)) == ["o", "e"]


def test_equal_titles_have_a_cosine_of_one():
    rough = np.float32(0.1), np.float32(0.7), np.float32(0.3)
    made = filled(pair("r", "Rough"), encoder=Table(Rough=rough))
    assert made.recall("Rough", 1)[0].score == 1.0


def test_ties_stand_by_id():
    hits = filled(pair("z", "Ash"), pair("b", "Oak"), encoder=Table(Oak=(2, 0))).recall("Ash", 2)
    assert [(h.passage.id, h.score) for h in hits] == [("b", 1.0), ("z", 1.0)]


def test_the_newest_of_a_title_replaces_the_older():
    newer = pair("n", "Ash", "something else")
    made = filled(ASH, OAK, newer)
    assert names(made.passages) == ["o", "n"]
    assert [h.passage.text for h in made.recall("Ash", 1)] == ["something else"]
    # Also within one call, and written again it is new.
    assert names(filled(ASH, newer).passages) == ["n"]
    assert names(filled(ASH, OAK, ASH).passages) == ["o", "a"]


def test_titles_that_differ_in_case():
    other = pair("l", "ash")
    assert names(filled(ASH, other).passages) == ["a", "l"]
    assert names(filled(ASH, other, same="folded").passages) == ["l"]
    spaced = pair("s", " ASH ")
    assert names(filled(ASH, spaced, same="folded").passages) == ["s"]
    assert names(filled(ASH, spaced).passages) == ["a", "s"]


def test_the_same_title_with_other_content():
    page, copy = pair("p", "Ash", "second paragraph"), pair("c", "Ash", ASH.text)
    assert names(filled(ASH, page).passages) == ["p"]
    assert names(filled(ASH, page, same="passage").passages) == ["a", "p"]
    assert names(filled(ASH, page, copy, same="passage").passages) == ["p", "c"]
    assert len(filled(ASH, page, same="passage").recall("Ash", 9)) == 2


def test_beyond_its_capacity_what_was_written_longest_ago_leaves():
    assert names(filled(ASH, OAK, ELM, capacity=2).passages) == ["o", "e"]
    assert names(filled(ASH, OAK, ELM, capacity=1).passages) == ["e"]
    # Written again, Ash is newer than Oak.
    assert names(filled(ASH, OAK, ASH, ELM, capacity=2).passages) == ["a", "e"]
    # Recalling is no writing.
    made = filled(ASH, OAK, capacity=2)
    made.recall("Ash", 1)
    made.remember([ELM])
    assert names(made.passages) == ["o", "e"]
    assert len(made) == 2


def test_what_comes_later_is_found_and_titles_are_encoded_once():
    encoder = Table()
    made = filled(ASH, encoder=encoder)
    made.recall("Oak", 1)
    made.remember([ELM, pair("a2", "Ash")])
    assert names(h.passage for h in made.recall("Elm", 2)) == ["e", "a2"]
    made.recall("Ash", 1)
    assert encoder.asked == [["Ash"], ["Oak"], ["Elm"], ["Elm"], ["Ash"]]


def test_an_empty_one_finds_nothing_and_asks_nobody():
    encoder = Table()
    assert filled(encoder=encoder).recall("Ash", 3) == []
    assert filled(encoder=encoder).freeze().recall("Ash", 3) == []
    assert encoder.asked == []


def test_frozen_it_is_constant():
    encoder = Table()
    made = filled(ASH, OAK, encoder=encoder)
    assert made.ordered
    frozen = made.freeze()
    assert not frozen.ordered
    assert encoder.asked == [["Ash", "Oak"]]
    with pytest.raises(RetrievalError, match="frozen"):
        frozen.remember([ELM])
    assert names(frozen.passages) == ["a", "o"]
    assert [h.passage.id for h in frozen.recall("Elm", 1)] == ["o"]


def test_a_fingerprint_tells_what_is_held_once_it_is_frozen():
    def frozen(*passages, **settings):
        return filled(*passages, **settings).freeze().fingerprint

    assert frozen(ASH, OAK) == frozen(ASH, OAK)
    assert len({
        frozen(ASH, OAK),
        frozen(OAK, ASH),
        frozen(ASH),
        frozen(ASH, pair("o", "Oak", "other")),
        frozen(ASH, pair("o2", "Oak", OAK.text)),
        frozen(ASH, OAK, same="folded"),
        frozen(ASH, OAK, capacity=3),
        filled(ASH, OAK).fingerprint,
    }) == 8  # fmt: skip
    # What it holds now does not tell an online one apart: its record does.
    assert filled(ASH).fingerprint == filled(OAK).fingerprint
    other = Table()
    other.fingerprint = "another"
    assert filled(ASH, encoder=other).fingerprint != filled(ASH).fingerprint


def test_a_query_cache_knows_the_very_same_query_alone():
    cache = QueryCache({"Ash": [OAK, ELM], "": [ASH]})
    assert [(h.passage.id, h.score, h.rank) for h in cache.recall("Ash", 9)] == [
        ("o", 1.0, 1), ("e", 1.0, 2)
    ]  # fmt: skip
    assert names(h.passage for h in cache.recall("Ash", 1)) == ["o"]
    assert cache.recall("ash", 9) == cache.recall("Ash ", 9) == []
    assert (len(cache), cache.ordered) == (2, False)
    with pytest.raises(RetrievalError, match="takes up nothing"):
        cache.remember([ASH])


def test_a_query_caches_fingerprint_tells_queries_and_what_they_found():
    prints = [
        QueryCache(found).fingerprint
        for found in ({"Ash": [OAK]}, {"ash": [OAK]}, {"Ash": [ELM]}, {"Ash": [OAK, ELM]}, {})
    ]
    assert len(set(prints)) == 5
    both = {"Ash": [OAK], "Oak": [ELM]}
    turned = dict(reversed(both.items()))
    assert QueryCache(both).fingerprint == QueryCache(turned).fingerprint
