"""The call cache: nothing is asked twice, nothing wrong is remembered."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from rag_repro.cache import CachedEncoder, CachedReader, Store
from rag_repro.schema import Generate, Generation, Prompt, Read, Trace

DONE = Generation(
    "né", (5, 6), (0, 1), "eos", 3, 2, Trace(np.float32([0.5, 0.25]), np.float32([1.5, 0]))
)


class Reader:
    fingerprint = "weights@float32"
    extra = "passed through"

    def __init__(self):
        self.asked = []

    def key(self, call):
        if call.prompt.segments == ("unspeakable",):
            raise ValueError("this prompt cannot be encoded")
        return hashlib.sha256(repr(call).encode()).hexdigest()

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


def test_calls_that_the_reader_names_differently_are_kept_apart(store):
    inner = Reader()
    reader = CachedReader(inner, store)
    reader.generate([ask("a"), ask("a", max_new_tokens=6)])
    reader.read([Read(Prompt.of("a"), "x")])
    assert [len(batch) for batch in inner.asked] == [2, 1]


def test_a_call_that_the_reader_cannot_name_is_left_to_it(store):
    inner = Reader()
    reader = CachedReader(inner, store)
    for _ in range(2):
        assert reader.generate([ask("unspeakable")]) == [DONE]
    assert len(inner.asked) == 2


@pytest.mark.parametrize(
    "call",
    [
        ask(trace=True),
        ask(watch=("yes",)),
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
