"""Attention by layer and place, out of records written by hand."""

from __future__ import annotations

import pytest

from rag_repro.analysis import gold_signals

PLAIN = {"tokens": [[2, 10], [2, 30]], "marks": [400, 800], "words": [[1000, 2000], [0, 4000]]}
OURS = {**PLAIN, "embeddings": [[300, 100], [500, 500]]}
LINES = [{"attention": OURS}, {"attention": OURS}, {"scores": {}}]


def line(words, gold, embeddings=None):
    told = {"tokens": [[2, 10]] * len(words[0]), "marks": [0] * len(words), "words": words}
    if embeddings:
        told["embeddings"] = embeddings
    return {
        "attention": told,
        "gold": [["static", 1, rank] for rank in gold],
        "hits": [*"abcdef"[: len(words[0])]],
    }


def test_what_one_token_of_a_kind_gets_in_percent_by_layer():
    # 300 and 100 ten-thousandths over two embeddings; 3000 over forty words; 400 over four marks
    assert gold_signals.by_kind(LINES, "embeddings") == pytest.approx({(1,): 2.0, (2,): 5.0})
    assert gold_signals.by_kind(LINES, "words") == pytest.approx({(1,): 0.75, (2,): 1.0})
    assert gold_signals.by_kind(LINES, "marks") == pytest.approx({(1,): 1.0, (2,): 2.0})
    assert gold_signals.by_kind([{"attention": PLAIN}], "embeddings") == {}


def test_an_embedding_stands_before_its_passages_words():
    found = gold_signals.by_passage(LINES, shown=2)
    assert [found[1, place] for place in ("1e", "1w", "2e", "2w")] == pytest.approx([3, 10, 1, 20])
    assert (2, "1e") in found
    assert {at for _, at in gold_signals.by_passage([{"attention": PLAIN}], 2)} == {"1w", "2w"}
    assert gold_signals.by_passage(LINES, shown=3) == {}  # lists of two


def test_gold_above_the_best_other_with_its_embedding():
    # Two layers, three passages, the second gold: the first is the best other.
    lines = [line([[1000, 3000, 5000], [500, 200, 0]], [2])]
    found = gold_signals.gold_over_best_other(lines)
    assert found == pytest.approx({(1,): 20.0, (2,): -3.0})
    lines = [line([[1000, 3000]], [2], embeddings=[[500, 1000]])]
    assert gold_signals.gold_over_best_other(lines) == pytest.approx({(1,): 25.0})
    lines = [line([[1, 2]], []), line([[1, 2]], [1, 2]), {"scores": {}, "hits": []}]
    assert gold_signals.gold_over_best_other(lines) == {}
