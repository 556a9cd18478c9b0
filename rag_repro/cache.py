"""The call cache: what readers and encoders answered, stored by content.

Many conditions end in the same prompt, and a resumed run should pay nothing
twice. A call's key is a hash of weights, dtype, backend and of everything in
the call that can change its result: a reader names its own (`reader.key`). The versions of
the libraries that compute it are in the key as well. What comes back is checked: a checksum of
key and value, then kind, shape and range; what does not fit is asked anew.
Costs count as if the call had been made. Attention is too large to keep:
traced calls pass through, as do those that watch tokens.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from rag_repro.digest import installed
from rag_repro.schema import Generate, Generation, Read, Trace

Keep = Callable[[int, Any], None]
"""keep(place, result): what takes a result before the others of its batch are there."""

log = logging.getLogger(__name__)

LIBRARIES = ("torch", "transformers", "tokenizers", "sentence-transformers", "peft", "numpy")
"""What computes results on this machine; an endpoint's come from elsewhere."""
CHECK = 16  # bytes of the checksum before each value


class Store:
    """Values by key in one SQLite file, which several processes may share.

    It is only a cache, and no run is lost over it: where its file is damaged or no cache, the
    disk takes no more, or the folder cannot be written, calls go on without it. That is told once.
    """

    def __init__(self, path: Path):
        self.path = path
        self._told = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._tell(error)
        self._use(lambda db: None)

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of these keys, None where there is none, or not what was kept under it."""
        found: dict[bytes, Any] = {}

        def look(db: sqlite3.Connection) -> None:
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, value FROM calls WHERE key IN ({marks})"
                found.update(db.execute(query, part))

        self._use(look)
        return [_checked(key, found.get(key)) for key in keys]

    def put(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep these values, all or none of them."""
        if pairs:
            query = "INSERT OR REPLACE INTO calls (key, value) VALUES (?, ?)"
            rows = [(key, _checksum(key, value) + value) for key, value in pairs]
            self._use(lambda db: db.executemany(query, rows))

    def _use(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        """Have work(db) done, or say once that it cannot be."""
        try:
            with closing(sqlite3.connect(self.path, timeout=60)) as db, db:
                db.execute("CREATE TABLE IF NOT EXISTS calls (key BLOB PRIMARY KEY, value BLOB)")
                work(db)
        except sqlite3.DatabaseError as error:
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        if not self._told:
            self._told = True
            log.warning(
                "the call cache %s cannot be used (%s); going on without it: calls are made anew "
                "(delete the file if it is damaged)",
                *(self.path, error),
            )


def _checksum(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=CHECK, key=key[:64]).digest()


def _checked(key: bytes, stored: Any) -> bytes | None:
    """The value, where its checksum says that it was kept under this key."""
    if not isinstance(stored, bytes):
        return None
    value = stored[CHECK:]
    return value if stored[:CHECK] == _checksum(key, value) else None


def through(
    store: Store,
    keys: Sequence[bytes | None],
    ask: Callable[[list[int], Keep], Sequence[Any]],
    pack: Callable[[Any], bytes | None],
    unpack: Callable[[bytes], Any],
) -> list[Any]:
    """Results in order: from the store where they are, else from ask(places, keep), then stored.

    ask may hand results to keep one by one, which stores them at once: they are then there
    though others of the batch fail, or the process ends. A key of None is never looked up; equal
    keys are asked once.
    """
    known = iter(store.get([key for key in keys if key is not None]))
    held = [None if key is None else _held(next(known), unpack) for key in keys]
    first: dict[bytes, int] = {}
    wanted = [
        i
        for i, key in enumerate(keys)
        if held[i] is None and (key is None or first.setdefault(key, i) == i)
    ]
    kept: set[int] = set()

    def put(results: Iterable[tuple[int, Any]]) -> None:
        packed = [(keys[i], pack(result)) for i, result in results if keys[i] is not None]
        store.put([(key, value) for key, value in packed if value is not None])

    def keep(place: int, result: Any) -> None:
        put([(wanted[place], result)])
        kept.add(wanted[place])

    fresh = dict(zip(wanted, ask(wanted, keep), strict=True)) if wanted else {}
    put((i, result) for i, result in fresh.items() if i not in kept)
    return [
        held[i] if held[i] is not None else fresh[i if key is None else first[key]]
        for i, key in enumerate(keys)
    ]


def _held(value: bytes | None, unpack: Callable[[bytes], Any]) -> Any:
    """What was stored; None for what nobody can read any more, which is asked anew."""
    try:
        return None if value is None else unpack(value)
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None


def _bytes(numbers: Any) -> bytes:
    return np.asarray(numbers, dtype="<f4").tobytes()


def _floats(data: bytes) -> np.ndarray:
    """float32 (n,)."""
    return np.frombuffer(data, dtype="<f4").astype(np.float32)


class CachedEncoder:
    """An encoder whose vectors are kept. Same fingerprint, same results."""

    def __init__(self, encoder: Any, store: Store):
        self.encoder, self.store = encoder, store
        self._with = json.dumps(installed(LIBRARIES))
        self.fingerprint: str = encoder.fingerprint
        self.name: str = getattr(encoder, "name", "")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (texts, d)."""
        if not len(texts):
            return self.encoder.encode(texts)
        rows = through(
            self.store,
            [key_of([self._with, self.fingerprint, text]) for text in texts],
            lambda places, keep: list(self.encoder.encode([texts[i] for i in places])),
            _bytes,
            _floats,
        )
        return np.stack(rows)


class CachedScorer:
    """A scorer whose probabilities are kept, each by its item's texts."""

    def __init__(self, scorer: Any, store: Store):
        self.scorer, self.store = scorer, store
        self._with = json.dumps(installed(LIBRARIES))
        self.fingerprint: str = scorer.fingerprint

    def score(self, items: Sequence[tuple[str, ...]]) -> np.ndarray:
        """float32 (items,)."""
        values = through(
            self.store,
            [key_of([self._with, self.fingerprint, *item]) for item in items],
            lambda places, keep: list(self.scorer.score([items[i] for i in places])),
            _bytes,
            lambda data: _floats(data)[0],
        )
        return np.array(values, dtype=np.float32)


class CachedReader:
    """A reader whose greedy or seeded texts are kept. All else goes through.

    Of a reader that hands out its results one by one (`generate_each`) each is kept before
    the rest of its batch is there. libraries: what computes its results; none of an endpoint's.
    """

    def __init__(self, reader: Any, store: Store, libraries: Sequence[str] = LIBRARIES):
        self.reader, self.store = reader, store
        self._with = json.dumps(installed(libraries))
        self.fingerprint: str = reader.fingerprint

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    def generate(self, calls: Sequence[Generate]) -> list[Any]:
        """As the reader's own."""
        each = getattr(self.reader, "generate_each", None)
        return self._asked(each or (lambda calls, keep: self.reader.generate(calls)), calls)

    def read(self, calls: Sequence[Read]) -> list[Any]:
        """As the reader's own."""
        return self._asked(lambda calls, keep: self.reader.read(calls), calls)

    def _asked(self, ask: Callable, calls: Sequence[Generate | Read]) -> list[Any]:
        return through(
            self.store,
            [self._key(call) for call in calls],
            lambda places, keep: ask([calls[i] for i in places], keep),
            _pack,
            _unpack,
        )

    def _key(self, call: Generate | Read) -> bytes | None:
        """None where the result is not to be kept."""
        if call.layers if isinstance(call, Read) else call.trace or call.watch:
            return None
        try:
            return key_of([self._with, self.reader.key(call)])
        except ValueError:  # the reader refuses the call, and will say why in its place
            return None


def key_of(facts: list) -> bytes:
    return hashlib.sha256(json.dumps(facts).encode()).digest()


def _pack(result: Any) -> bytes | None:
    """A generation as bytes; a refused call is not kept."""
    if not isinstance(result, Generation):
        return None
    trace = result.trace and [result.trace.probability.tolist(), result.trace.entropy.tolist()]
    fields = [result.text, result.tokens, result.offsets, result.finish]
    counts = [result.prompt_tokens, result.prefilled]
    return json.dumps([*fields, *counts, trace, result.written]).encode()


def _unpack(data: bytes) -> Generation:
    text, tokens, offsets, finish, prompt_tokens, prefilled, trace, written = json.loads(data)
    return Generation(
        text,
        tuple(tokens),
        tuple(offsets),
        finish,
        prompt_tokens,
        prefilled,
        None if trace is None else Trace(*(np.array(one, dtype=np.float32) for one in trace)),
        written=written,
    )
