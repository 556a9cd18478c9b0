"""The call cache: nothing is asked twice, nothing wrong is remembered."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from importlib import metadata

import numpy as np
import pytest

from rag_repro.cache import CachedEncoder, CachedReader, CachedScorer, Store
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
    return Generate(**{"prompt": Prompt.from_segments(text), "max_new_tokens": 5, **changes})


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
    reader.read([Read(Prompt.from_segments("a"), "x")])
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
        Read(Prompt.from_segments("q"), "x", layers=(-1,)),
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


def put_and_get(store):
    store.put([(b"k", b"v")])
    return store.get([b"k", b"other"])


def test_a_cache_that_is_damaged_costs_only_what_it_held(tmp_path, caplog):
    store = Store(tmp_path / "calls.sqlite")
    store.put([(bytes([i, j]), b"value" * 50) for i in range(30) for j in range(30)])
    content = store.path.read_bytes()
    # The first page, with the schema, stays; the table's own pages do not.
    store.path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    assert store.get([bytes([1, 1])]) == [None]
    [told] = caplog.messages
    assert "delete the file if it is damaged" in told


@pytest.mark.parametrize("where", ["a file", "a folder", "another table", "another file"])
def test_where_no_cache_can_be_calls_go_on_without_and_it_is_said_once(tmp_path, caplog, where):
    path = tmp_path / "cache" / "calls.sqlite"
    if where == "a file":
        path.parent.write_text("no folder")
    elif where == "a folder":
        path.mkdir(parents=True)
    elif where == "another file":
        path.parent.mkdir()
        path.write_bytes(b"something else entirely, of some length" * 100)
    else:
        path.parent.mkdir()
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE calls (who TEXT)")
    store = Store(path)
    assert put_and_get(store) == [None, None]
    assert put_and_get(store) == [None, None]
    [told] = caplog.messages
    assert f"the call cache {path} cannot be used" in told
    assert "going on without it" in told


def test_a_full_disk_costs_only_what_would_have_been_kept(tmp_path, caplog):
    store = Store(tmp_path / "calls.sqlite")
    store.put([(b"old", b"value")])
    limited = sqlite3.connect

    def connect(*given, **options):
        db = limited(*given, **options)
        db.execute("PRAGMA max_page_count = 3")  # SQLite's own word for a full disk
        return db

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        store.put([(b"new", b"much" * 10000)])
        assert store.get([b"old", b"new"]) == [b"value", None]
    assert "full" in caplog.text
    assert put_and_get(store) == [b"v", None]


def test_a_value_that_cannot_be_read_any_more_is_asked_anew(store):
    inner = Reader()
    reader = CachedReader(inner, store)
    [first] = reader.generate([ask("a")])
    key, _ = _kept(store)
    for spoilt in (b"", b"\xff", b"[1]", b"[1,2,3,4,5,6,7]", b"null", b"[" * 99_999):
        store.put([(key, spoilt)])
        [again] = reader.generate([ask("a")])
        assert again.text == first.text
    assert len(inner.asked) == 7


def test_a_scorers_items_are_kept_one_by_one(store):
    class Scorer:
        fingerprint = "c"

        def __init__(self):
            self.asked = []

        def score(self, items):
            self.asked.append(list(items))
            return np.array([len(b) / 3 for _, _, b in items], dtype=np.float32)

    scorer = Scorer()
    cached = CachedScorer(scorer, store)
    first = cached.score([("q", "a", "b"), ("q", "a", "bbb")])
    again = cached.score([("q", "a", "bbb"), ("q", "ab", ""), ("q", "a", "b")])
    assert scorer.asked == [[("q", "a", "b"), ("q", "a", "bbb")], [("q", "ab", "")]]
    assert first.dtype == again.dtype == np.float32
    assert again.tolist() == [first[1], 0.0, first[0]]
    assert cached.score([]).shape == (0,)
    other = CachedScorer(scorer, store)
    other.fingerprint = "d"
    other.score([("q", "a", "b")])
    assert scorer.asked[-1] == [("q", "a", "b")]


def _kept(store):
    """Key and value of the one entry, as they lie in the file."""
    with contextlib.closing(sqlite3.connect(store.path)) as db:
        [entry] = db.execute("SELECT key, value FROM calls").fetchall()
    return entry


def _replace(store, key, value):
    with contextlib.closing(sqlite3.connect(store.path)) as db, db:
        db.execute("INSERT OR REPLACE INTO calls (key, value) VALUES (?, ?)", (key, value))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value: value[:-1],
        lambda value: value[:20] + bytes([value[20] ^ 1]) + value[21:],
        lambda value: value.decode("latin-1"),
        lambda value: b"",
        lambda value: None,
        lambda value: 7,
    ],
    ids=["cut", "one bit", "text", "empty", "null", "number"],
)
def test_an_entry_that_changed_on_disk_is_dropped_and_asked_anew(store, spoil):
    encoder = Encoder()
    CachedEncoder(encoder, store).encode(["a"])
    right = _kept(store)
    _replace(store, right[0], spoil(right[1]))
    made = CachedEncoder(encoder, store).encode(["a"])
    assert made.tolist() == Encoder().encode(["a"]).tolist()
    assert encoder.asked == [["a"], ["a"]]
    assert _kept(store) == right


def test_the_value_of_another_key_is_not_taken(store):
    encoder = CachedEncoder(Encoder(), store)
    encoder.encode(["a"])
    key, value = _kept(store)
    encoder.encode(["bbb"])
    with contextlib.closing(sqlite3.connect(store.path)) as db:
        [other] = db.execute("SELECT key FROM calls WHERE key != ?", (key,)).fetchone()
    _replace(store, other, value)
    assert encoder.encode(["bbb"]).tolist() == Encoder().encode(["bbb"]).tolist()


def test_another_version_of_a_library_is_asked_anew_and_an_endpoint_has_none(store, monkeypatch):
    encoder, reader = Encoder(), Reader()
    call = ask("a")
    CachedEncoder(encoder, store).encode(["a"])
    CachedReader(reader, store, libraries=()).generate([call])
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: real(name) + ".post1")
    CachedEncoder(encoder, store).encode(["a"])
    CachedReader(reader, store, libraries=()).generate([call])
    assert encoder.asked == [["a"], ["a"]]
    assert len(reader.asked) == 1
