"""Who tells gold passages apart, the retriever's features or the reader's attention (r2ag.c01)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro.report import attention_areas, lists

LAYERS = 3


def made(number, rng, r_knows=0.0, layer_knows=0.0, length_knows=0):
    """A list of five passages, one of them gold, and its record's line."""
    gold = int(rng.integers(5))
    is_gold = np.arange(5) == gold
    ids = [f"{number}-{i}" for i in range(5)]
    asked = SimpleNamespace(id=f"q{number}", unit=f"q{number}", gold=[1], gold_ids=[ids[gold]])
    hits = tuple(SimpleNamespace(passage=SimpleNamespace(id=name)) for name in ids)
    rows = np.column_stack([rng.random(5) + r_knows * is_gold, np.ones(5), np.ones(5)])
    words = rng.integers(100, 300, (LAYERS, 5))
    words[1] = words[1] + layer_knows * is_gold
    tokens = [[10, int(n)] for n in rng.integers(50, 100, 5) + length_knows * is_gold]
    line = {"id": asked.id, "hits": ids, "attention": {"tokens": tokens, "words": words.tolist()}}
    return lists.Listed(asked, hits, rows.astype(np.float32)), line


def pages(n=80, **knows):
    rng = np.random.default_rng(0)
    held = [made(i, rng, **knows) for i in range(n)]
    fits = attention_areas.fits({"nq10": held})
    table = attention_areas.table(fits)
    areas = {row[1]: float(row[2].split()[0]) for row in table.body}
    return areas, attention_areas.outcome(fits).text


def test_what_the_reader_alone_knows_is_seen():
    areas, said = pages(layer_knows=500)
    assert areas[attention_areas.READER] > 95
    assert areas[attention_areas.RETRIEVER] < 65
    assert "points to attention, in which nothing shows" in said
    assert "to the features, which shows" in said


def test_what_the_retriever_alone_knows_is_seen():
    areas, said = pages(r_knows=3.0)
    assert areas["r"] == 100
    assert areas[attention_areas.READER] < 65
    assert "points to attention, which shows" in said


def test_a_longer_passage_is_nothing_that_the_reader_recovers():
    areas, said = pages(length_knows=200)
    assert areas[attention_areas.BARE] == 100
    assert "to the features, which shows" not in said


def test_nothing_is_found_where_nothing_is_known():
    areas, said = pages()
    assert max(areas.values()) < 65
    assert "the features add " in said


def test_a_layer_is_compared_within_its_list():
    line = {"attention": {"words": [[1, 3], [9, 9]]}}
    found = attention_areas.looks(line)
    assert found.shape == (2, 2)  # passages, layers
    assert found[:, 0] == pytest.approx([-np.log(2) / 2, np.log(2) / 2])
    assert found[:, 1] == pytest.approx([0, 0])


def test_a_record_of_other_passages_is_refused():
    listed, line = made(0, np.random.default_rng(0))
    assert attention_areas.seen([listed], [line]) == [(listed, line)]
    assert attention_areas.seen([listed], [{**line, "attention": None}]) == []
    with pytest.raises(ValueError, match="question 'q0': its record has other passages"):
        attention_areas.seen([listed], [{**line, "hits": line["hits"][::-1]}])


def test_of_few_lists_nothing_is_said():
    held = [made(i, np.random.default_rng(0)) for i in range(3)]
    fits = attention_areas.fits({"nq10": held})
    assert attention_areas.outcome(fits) is None
    assert repr(attention_areas.table(fits, "Areas")).startswith("Areas: not shown")
