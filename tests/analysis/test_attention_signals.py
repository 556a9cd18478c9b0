"""Who tells gold passages apart, the retriever's features or the reader's attention (r2ag.c01)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro.analysis import gold_signals

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
    return gold_signals.RankedList(asked, hits, rows.astype(np.float32)), line


def areas(n=80, **knows):
    rng = np.random.default_rng(0)
    lists, lines = zip(*(made(i, rng, **knows) for i in range(n)), strict=True)
    lists, signals = gold_signals.attention_signals(lists, lines)
    bases = gold_signals.READER, gold_signals.RETRIEVER
    return {name: row for name, *row in gold_signals.areas(signals, lists, *bases)}


def test_what_the_reader_alone_knows_is_seen():
    found = areas(layer_knows=500)
    assert found[gold_signals.READER][0].estimate > 95
    assert found[gold_signals.RETRIEVER][0].estimate < 65
    _, over_attention, over_features = found[gold_signals.BOTH]
    assert over_attention.lo <= 0 < over_features.lo


def test_what_the_retriever_alone_knows_is_seen():
    found = areas(r_knows=3.0)
    assert found["r"][0].estimate == 100
    assert found[gold_signals.READER][0].estimate < 65
    assert found[gold_signals.BOTH][1].lo > 0


def test_a_longer_passage_is_nothing_that_the_reader_recovers():
    found = areas(length_knows=200)
    assert found[gold_signals.BARE][0].estimate == 100
    assert found[gold_signals.BOTH][2].lo <= 0


def test_nothing_is_found_where_nothing_is_known():
    assert max(area.estimate for area, *_ in areas().values()) < 65


def test_a_layer_is_compared_within_its_list():
    line = {"attention": {"words": [[1, 3], [9, 9]]}}
    found = gold_signals.centred_attention(line)
    assert found.shape == (2, 2)  # passages, layers
    assert found[:, 0] == pytest.approx([-np.log(2) / 2, np.log(2) / 2])
    assert found[:, 1] == pytest.approx([0, 0])


def test_a_record_of_other_passages_is_refused():
    listed, line = made(0, np.random.default_rng(0))
    assert gold_signals.attention_signals([listed], [line]) == ([listed], {})  # too few to fit
    assert gold_signals.attention_signals([listed], [{**line, "attention": None}]) == ([], {})
    with pytest.raises(ValueError, match="question 'q0': its record has other passages"):
        gold_signals.attention_signals([listed], [{**line, "hits": line["hits"][::-1]}])
