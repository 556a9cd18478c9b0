"""Where a prompt's last token looks, on a line written by hand."""

from __future__ import annotations

import pytest

from rag_repro.evaluation import metrics

# Six layers, three passages, of which the second and a lost one are gold.
LINE = {
    "hits": ["a", "b", "c"],
    "gold": [["static", 1, 2], ["dynamic", 2, None]],
    "scores": {},
    "attention": {
        "tokens": [[5, 10], [5, 20], [10, 30]],
        "marks": [400, 400, 400, 200, 200, 200],
        "words": [[100, 200, 300]] * 4 + [[0, 600, 600]] * 2,
        "embeddings": [[10, 20, 30]] * 3 + [[40, 50, 60]] * 3,
    },
}
BARE = {**LINE, "attention": {k: v for k, v in LINE["attention"].items() if k != "embeddings"}}


def told(name, line=LINE):
    return metrics.of_line(f"attention_{name}", line)


def test_one_token_of_each_kind():
    assert told("embedding") == pytest.approx((0.0020 + 0.0050) / 2)
    assert told("embedding_deep") == pytest.approx(0.0050)
    assert told("word") == pytest.approx((4 * 0.06 + 2 * 0.12) / 6 / 60)
    assert told("word_deep") == pytest.approx((0.06 + 2 * 0.12) / 3 / 60)
    assert told("mark") == pytest.approx(0.03 / 20)
    assert told("mark_deep") == pytest.approx(0.02 / 20)


def test_golds_part_and_the_first_four_layers():
    # Words and embedding together: layers 1 to 3, 4, 5 and 6.
    parts = [220 / 660] * 3 + [250 / 750] + [650 / 1350] * 2
    assert told("gold") == pytest.approx(sum(parts) / 6)
    assert told("gold_early") == pytest.approx((3 * 0.0220 + 0.0250) / 4)
    assert told("other_early") == pytest.approx((3 * 0.0110 + 0.0140) / 4)


def test_golds_part_of_the_words_leaves_embeddings_out():
    assert told("gold_words") == pytest.approx((4 * 200 / 600 + 2 * 600 / 1200) / 6)
    assert told("gold_words") == told("gold", BARE) == told("gold_words", BARE)


def test_gold_beside_its_neighbours():
    # The second is gold, the first and the third are not.
    assert told("gold_near") == told("gold_early")
    assert told("other_near") == pytest.approx((3 * (0.0110 + 0.0330) + (0.0140 + 0.0360)) / 8)
    # Of four passages in one layer the first, second and last are gold: the first has no other
    # beside it, and the third is beside both of the rest.
    attention = {"tokens": [[1, 1]] * 4, "marks": [0], "words": [[100, 200, 400, 800]]}
    line = {**LINE, "hits": list("abcd"), "attention": attention}
    line["gold"] = [["static", 1, 1], ["static", 2, 2], ["dynamic", 3, 4]]
    assert told("gold_near", line) == pytest.approx((0.02 + 0.08) / 2)
    assert told("other_near", line) == pytest.approx(0.04)


def test_without_embeddings_words_stand_alone():
    assert told("embedding", BARE) is None
    assert told("word", BARE) == told("word")
    assert told("gold", BARE) == pytest.approx((4 * 200 / 600 + 2 * 600 / 1200) / 6)
    assert told("gold_early", BARE) == pytest.approx(0.02)
    assert told("other_early", BARE) == pytest.approx(0.01)


def test_gold_is_compared_with_the_best_other_passage():
    first = {**LINE, "gold": [["static", 1, 1], ["static", 1, 3]]}
    assert told("other_early", first) == pytest.approx((3 * 0.0220 + 0.0250) / 4)
    assert told("gold_early", first) == pytest.approx(
        (3 * (0.0110 + 0.0330) + (0.0140 + 0.0360)) / 8
    )


@pytest.mark.parametrize("gold", [[], [["static", 1, None]], [["static", 1, i] for i in (1, 2, 3)]])
def test_absent_where_there_is_nothing_to_compare(gold):
    line = {**LINE, "gold": gold}
    assert told("gold_early", line) is None
    assert told("other_early", line) is None
    assert told("gold_near", line) is None
    assert told("other_near", line) is None
    assert (told("gold", line) is None) == (len(gold) < 3)


def test_absent_where_nothing_was_measured():
    bare = {"hits": ["a"], "gold": [["static", 1, 1]], "scores": {}}
    empty = {"tokens": [], "marks": [0, 0], "words": [[], []]}
    for line in (bare, {**bare, "hits": [], "gold": [], "attention": empty}):
        for name in ("embedding", "word", "word_deep", "mark", "gold", "gold_early", "other_early"):
            assert told(name, line) is None
