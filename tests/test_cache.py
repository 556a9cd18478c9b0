"""The call cache: nothing is asked twice, nothing wrong is remembered."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.cache import CachedEncoder, CachedReader, Store, key_of
from rag_repro.schema import (
    Generate,
    Generation,
    Kept,
    Prefix,
    Prompt,
    Read,
    Reply,
    Sampling,
    Soft,
    Trace,
    Until,
)

DONE = Generation(
    "né", (5, 6), (0, 1), "eos", 3, 2, Trace(np.float32([0.5, 0.25]), np.float32([1.5, 0]))
)


class Reader:
    fingerprint = "weights@float32"
    extra = "passed through"

    def __init__(self):
        self.asked = []

    def generate(self, calls):
        self.asked.append([c.prompt for c in calls])
        return [ValueError("too long") if c.max_new_tokens == 99 else DONE for c in calls]

    def read(self, calls):
        self.asked.append([c.text for c in calls])
        return [DONE for c in calls]


class Encoder:
    fingerprint = "encoder"

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked.append(list(texts))
        return np.array([[len(t), 1 / 3] for t in texts], dtype=np.float32).reshape(-1, 2)


def ask(text="q", **changes):
    return Generate(**{"prompt": Prompt.of(text), "max_new_tokens": 5, **changes})


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "calls.sqlite")


def test_vectors_come_back_the_same_and_are_made_once(store):
    inner = Encoder()
    first = CachedEncoder(inner, store).encode(["aa", "b", "aa"])
    again = CachedEncoder(inner, store).encode(["b", "ccc", "aa"])
    assert inner.asked == [["aa", "b"], ["ccc"]]
    np.testing.assert_array_equal(first, np.float32([[2, 1 / 3], [1, 1 / 3], [2, 1 / 3]]))
    np.testing.assert_array_equal(again[:, 0], [1, 3, 2])
    assert again.dtype == np.float32
    assert CachedEncoder(inner, store).encode([]).shape == (0, 2)


def test_a_text_is_generated_once_and_comes_back_whole(store):
    inner = Reader()
    reader = CachedReader(inner, store)
    reader.generate([ask("a"), ask("b"), ask("a")])
    [again] = CachedReader(inner, store).generate([ask("a")])
    assert len(inner.asked) == 1
    assert len(inner.asked[0]) == 2
    assert (again.text, again.tokens, again.offsets) == (DONE.text, DONE.tokens, DONE.offsets)
    assert (again.finish, again.prompt_tokens, again.prefilled) == ("eos", 3, 2)
    np.testing.assert_array_equal(again.trace.probability, DONE.trace.probability)
    np.testing.assert_array_equal(again.trace.entropy, DONE.trace.entropy)
    assert reader.extra == "passed through"


@pytest.mark.parametrize(
    "other",
    [
        ask("other"),
        ask(max_new_tokens=6),
        ask(stop=("\n",)),
        ask(stop=(Until("\n", str.isupper),)),
        ask(sampling=Sampling(1)),
        ask(sampling=Sampling(2)),
        ask(adapter="a"),
        ask(prompt=Prompt.of("q", chat=True)),
        ask(prompt=Prompt.of(Reply("q"))),
        ask(prompt=Prompt.of("q", Kept(DONE, 1))),
        ask(prompt=Prompt.of("q", Kept(DONE, 2))),
        Read(Prompt.of("q"), "x"),
        Read(Prompt.of("q"), "y"),
    ],
)
def test_whatever_can_change_a_result_changes_its_key(other):
    assert key_of("f", other) != key_of("f", ask())
    assert key_of("f", other) != key_of("g", other)


def test_what_is_read_with_a_prefix_has_its_own_key():
    assert key_of("f", ask(prompt=Prompt.of(Prefix("a"), "b"))) != key_of("f", ask("ab"))


@pytest.mark.parametrize(
    "call",
    [
        ask(trace=True),
        ask(watch=("yes",)),
        ask(prompt=Prompt.of(Soft("r2", np.ones((1, 3)), 0))),
        Read(Prompt.of("q"), "x", layers=(-1,)),
    ],
)
def test_what_is_too_large_to_keep_is_asked_each_time(store, call):
    inner = Reader()
    reader = CachedReader(inner, store)
    for _ in range(2):
        (reader.read if isinstance(call, Read) else reader.generate)([call])
    assert len(inner.asked) == 2


def test_refused_calls_are_not_remembered(store):
    inner = Reader()
    reader = CachedReader(inner, store)
    for _ in range(2):
        [result] = reader.generate([ask(max_new_tokens=99)])
        assert isinstance(result, ValueError)
    assert len(inner.asked) == 2


def test_a_file_that_is_no_cache_is_named(tmp_path):
    path = tmp_path / "calls.sqlite"
    path.write_bytes(b"something else entirely, of some length" * 100)
    with pytest.raises(ValueError, match=r"calls\.sqlite cannot be used"):
        Store(path)
