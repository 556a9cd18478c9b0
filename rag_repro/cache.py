"""The call cache: what readers and encoders answered, stored by content.

Many conditions end in the same prompt, and a resumed run should pay nothing
twice. A call's key is a hash of weights, dtype, backend and of everything in
the call that can change its result: a reader names its own (`reader.key`).
Costs count as if the call had been made. Attention is too large to keep:
traced calls pass through, as do those that watch tokens.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .schema import Generate, Generation, Read, Trace


class Store:
    """Values by key in one SQLite file, which several processes may share.

    A file that is no cache is refused by name; deleting it loses only time.
    """

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as db:
            db.execute("CREATE TABLE IF NOT EXISTS calls (key BLOB PRIMARY KEY, value BLOB)")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path, timeout=60)
        try:
            with db:
                yield db
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"the call cache {self.path} cannot be used ({error}); delete it"
            ) from error
        finally:
            db.close()

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of these keys, None where there is none."""
        found: dict[bytes, bytes] = {}
        with self._open() as db:
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                marks = ",".join("?" * len(part))
                found |= dict(db.execute(f"SELECT * FROM calls WHERE key IN ({marks})", part))
        return [found.get(key) for key in keys]

    def put(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        with self._open() as db:
            db.executemany("INSERT OR REPLACE INTO calls VALUES (?, ?)", pairs)


def _through(
    store: Store,
    keys: Sequence[bytes | None],
    ask: Callable[[list[int]], Sequence[Any]],
    pack: Callable[[Any], bytes | None],
    unpack: Callable[[bytes], Any],
) -> list[Any]:
    """Results in order: from the store where they are, else from ask(places), then stored.

    A key of None is never looked up; equal keys are asked once.
    """
    known = iter(store.get([key for key in keys if key is not None]))
    held = [None if key is None else next(known) for key in keys]
    first: dict[bytes, int] = {}
    wanted = [
        i
        for i, key in enumerate(keys)
        if held[i] is None and (key is None or first.setdefault(key, i) == i)
    ]
    fresh = dict(zip(wanted, ask(wanted), strict=True)) if wanted else {}
    packed = [(keys[i], pack(result)) for i, result in fresh.items() if keys[i] is not None]
    store.put([(key, value) for key, value in packed if value is not None])
    return [
        unpack(held[i]) if held[i] is not None else fresh[i if key is None else first[key]]
        for i, key in enumerate(keys)
    ]


class CachedEncoder:
    """An encoder whose vectors are kept. Same fingerprint, same results."""

    def __init__(self, encoder: Any, store: Store):
        self.encoder, self.store = encoder, store
        self.fingerprint: str = encoder.fingerprint

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (texts, d)."""
        if not len(texts):
            return self.encoder.encode(texts)
        rows = _through(
            self.store,
            [hashlib.sha256(f"{self.fingerprint}\n{text}".encode()).digest() for text in texts],
            lambda places: list(self.encoder.encode([texts[i] for i in places])),
            lambda row: np.asarray(row, dtype="<f4").tobytes(),
            lambda data: np.frombuffer(data, dtype="<f4").astype(np.float32),
        )
        return np.stack(rows)


class CachedReader:
    """A reader whose greedy or seeded texts are kept. All else goes through."""

    def __init__(self, reader: Any, store: Store):
        self.reader, self.store = reader, store
        self.fingerprint: str = reader.fingerprint

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    def generate(self, calls: Sequence[Generate]) -> list[Any]:
        """As the reader's own."""
        return self._asked(self.reader.generate, calls)

    def read(self, calls: Sequence[Read]) -> list[Any]:
        """As the reader's own."""
        return self._asked(self.reader.read, calls)

    def _asked(self, ask: Callable, calls: Sequence[Generate | Read]) -> list[Any]:
        return _through(
            self.store,
            [self._key(call) for call in calls],
            lambda places: ask([calls[i] for i in places]),
            _pack,
            _unpack,
        )

    def _key(self, call: Generate | Read) -> bytes | None:
        """None where the result is not to be kept."""
        if call.layers if isinstance(call, Read) else call.trace or call.watch:
            return None
        try:
            return bytes.fromhex(self.reader.key(call))
        except ValueError:  # the reader refuses the call, and will say why in its place
            return None


def _pack(result: Any) -> bytes | None:
    """A generation as bytes; a refused call is not kept."""
    if not isinstance(result, Generation):
        return None
    trace = result.trace and [result.trace.probability.tolist(), result.trace.entropy.tolist()]
    fields = [result.text, result.tokens, result.offsets, result.finish]
    return json.dumps([*fields, result.prompt_tokens, result.prefilled, trace]).encode()


def _unpack(data: bytes) -> Generation:
    text, tokens, offsets, finish, prompt_tokens, prefilled, trace = json.loads(data)
    kept = trace and Trace(*(np.array(values, dtype=np.float32) for values in trace))
    return Generation(
        text, tuple(tokens), tuple(offsets), finish, prompt_tokens, prefilled, kept or None
    )
