"""Which prompts share what, and what is kept for the next ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rag_repro.lm.prefix import Span, Store, common, shared_lengths


def ids(text: str) -> np.ndarray:
    return np.array([ord(c) for c in text], dtype=np.int64)


def shared(*texts: str, declared=None, least=2) -> list[int]:
    return shared_lengths([ids(t) for t in texts], declared or [0] * len(texts), least)


def test_common_by_hand():
    assert common(ids("abcd"), ids("abx")) == 2
    assert common(ids("abcd"), ids("ab")) == 2
    assert common(ids("abcd"), ids("abcd")) == 4
    assert common(ids("x"), ids("abcd")) == 0
    assert common(ids(""), ids("abcd")) == 0


def test_one_group():
    assert shared("exemplars one", "exemplars two", "exemplars") == [8, 8, 8]
    assert shared("exemplars one", "exemplars two") == [10, 10]


def test_a_prompt_keeps_a_token_of_its_own():
    assert shared("same", "same", "same") == [3, 3, 3]


def test_two_groups_save_more_than_one():
    """Two pairs of 8 shared tokens save 8 + 8; all four with one token save 3."""
    assert shared("aaaaaaaa1", "aXXXXXXX1", "aaaaaaaa2", "aXXXXXXX2", least=1) == [8, 8, 8, 8]


def test_one_group_saves_more_than_two():
    """Four rows of 10 shared tokens save 30; two pairs of 11 save 22."""
    head = "0123456789"
    assert shared(head + "a1", head + "a2", head + "b1", head + "b2") == [10] * 4


def test_too_little_to_share():
    assert shared("ab1", "ab2", least=3) == [0, 0]
    assert shared("one") == [0]
    assert shared() == []


def test_declared_prefixes_stand_apart():
    """They share what they say, even alone; a declared one that fills its prompt leaves one."""
    assert shared("abcdef", "abcxyz", declared=[4, 0]) == [4, 0]
    assert shared("abcdef", declared=[6]) == [5]
    assert shared("abcdef", declared=[1]) == [0]


def test_many_prompts_that_grow_into_each_other():
    texts = ["x" * n + "." for n in range(3, 203)]
    lengths = shared(*texts)
    assert all(0 <= n < len(t) for n, t in zip(lengths, texts, strict=True))
    for n in set(lengths) - {0}:
        heads = {t[:n] for t, length in zip(texts, lengths, strict=True) if length == n}
        assert len(heads) == 1


# ----------------------------------------------------------------------- store


def span(n: int, start: int = 0) -> Span:
    """Keys that count their tokens, (1 head, n, 1): 8 bytes a token with the values."""
    keys = torch.arange(start, start + n, dtype=torch.float32)[None, :, None]
    return Span({0: keys}, {0: -keys})


def test_the_longest_kept_beginning_is_found():
    store = Store(10_000)
    store.add(ids("abcdef"), 0, span(6))
    store.add(ids("abXY"), 0, span(4))
    n, found = store.longest(ids("abcdxx"), 0)
    assert n == 4
    assert found.keys[0][0, :, 0].tolist() == [0, 1, 2, 3]
    assert store.longest(ids("zzz"), 0) == (0, None)


def test_nothing_is_kept_of_what_is_cleared():
    store = Store(10_000)
    store.add(ids("abcdef"), 0, span(6))
    store.clear()
    assert (len(store), store.used) == (0, 0)


def test_a_tail_is_found_behind_its_prefix_only():
    store = Store(10_000)
    store.add(ids("exemplarsWho"), 9, span(3, start=9))
    n, found = store.longest(ids("exemplarsWhy"), 9)
    assert n == 11
    assert found.keys[0][0, :, 0].tolist() == [9, 10]
    assert store.longest(ids("exemplarsWhy"), 0) == (0, None)
    assert store.longest(ids("exemplars!"), 9) == (9, None)


def test_an_entry_that_begins_earlier_serves_further_in():
    store = Store(10_000)
    store.add(ids("abcdef"), 0, span(6))
    n, found = store.longest(ids("abcdeX"), 3)
    assert n == 5
    assert found.keys[0][0, :, 0].tolist() == [3, 4]


def test_what_is_extended_is_replaced():
    store = Store(10_000)
    store.add(ids("abc"), 0, span(3))
    store.add(ids("abcdef"), 0, span(6))
    assert (len(store), store.used) == (1, 48)


def test_the_least_recently_used_goes_first():
    store = Store(100)
    store.add(ids("aaaaa"), 0, span(5))
    store.add(ids("bbbbb"), 0, span(5))
    assert store.longest(ids("aaaaa"), 0)[0] == 5
    store.add(ids("ccccc"), 0, span(5))
    assert store.used == 80
    assert store.longest(ids("bbbbb"), 0)[0] == 0
    assert store.longest(ids("aaaaa"), 0)[0] == 5


@pytest.mark.parametrize("budget", [0, 30])
def test_what_does_not_fit_is_not_kept(budget: int):
    store = Store(budget)
    store.add(ids("aaaaa"), 0, span(5))
    assert (len(store), store.used) == (0, 0)
