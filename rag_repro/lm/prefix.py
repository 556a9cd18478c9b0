"""What prompts share, and keys and values kept for the next ones.

Causal attention makes the keys and values of a prompt's first m tokens the
same whatever follows, so anything that begins alike may reuse them, down to
the token. Two kinds are kept: *prefixes*, which many rows point to at once
(exemplars), and *tails*, a finished row's own tokens, which a later prompt
that begins with the same words copies (a dynamic method that asks again).

A row's own keys and values lie in one slot of a `Slots`; a run of them, as a prefix that several
rows share, is a `Span`. Letters: V key-value heads, D head size.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from torch import Tensor, zeros


class Slots:
    """Keys and values of up to `rows` rows, (rows, V, capacity, D) a layer."""

    def __init__(self, rows: int, capacity: int):
        self.rows = rows
        self.capacity = capacity
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    def layer(self, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The layer's store, made at its first use in the shapes that the model has."""
        if index not in self.keys:
            for store, new in ((self.keys, key), (self.values, value)):
                shape = (self.rows, new.shape[1], self.capacity, new.shape[3])
                # Zeros: what is hidden gets weight 0, and 0 times stale memory could be NaN.
                store[index] = zeros(shape, dtype=new.dtype, device=new.device)
        return self.keys[index], self.values[index]

    def copy(self, source: int, target: int, n: int) -> None:
        """Move a row's first n tokens to another slot."""
        for store in (self.keys, self.values):
            for tensor in store.values():
                tensor[target, :, :n] = tensor[source, :, :n]

    def span(self, row: int, first: int, last: int) -> Span:
        """A view of one row's tokens first..last-1."""
        return Span(self.keys, self.values).each(lambda t: t[row, :, first:last])

    def put(self, row: int, span: Span) -> None:
        """Begin a row with the tokens of a span."""
        for index, key in span.keys.items():
            value = span.values[index]
            keys, values = self.layer(index, key[None], value[None])
            keys[row, :, : key.shape[1]] = key
            values[row, :, : value.shape[1]] = value


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Keys and values of a run of tokens: layer -> (V, tokens, D)."""

    keys: dict[int, Tensor]
    values: dict[int, Tensor]

    def cut(self, first: int, last: int) -> Span:
        """A view of its tokens first..last-1."""
        return self.each(lambda t: t[:, first:last])

    def clone(self) -> Span:
        return self.each(Tensor.clone)

    def each(self, change: Callable[[Tensor], Tensor]) -> Span:
        """The span of what `change` makes of each tensor."""
        return Span(
            {i: change(t) for i, t in self.keys.items()},
            {i: change(t) for i, t in self.values.items()},
        )

    @property
    def nbytes(self) -> int:
        tensors = (*self.keys.values(), *self.values.values())
        return sum(t.numel() * t.element_size() for t in tensors)


LEAST = 32
"""Fewer shared tokens than this are not worth a group of rows."""


def common(left: np.ndarray, right: np.ndarray) -> int:
    """How many leading tokens two id arrays share."""
    n = min(len(left), len(right))
    differ = np.flatnonzero(left[:n] != right[:n])
    return int(differ[0]) if len(differ) else n


def shared_lengths(
    tokens: Sequence[np.ndarray], declared: Sequence[int], least: int = LEAST
) -> list[int]:
    """How many leading tokens each prompt should take from a shared prefix.

    A prompt that declares a prefix shares just that (even alone: the next call
    will need it). The others are grouped so that the tokens saved,
    (rows - 1) x shared tokens summed over groups, are most; shorter than
    `least` is not worth a group. At least one token is left to each prompt.
    """
    lengths = [
        min(n, len(t) - 1) if n >= least else 0 for t, n in zip(tokens, declared, strict=True)
    ]
    order = sorted(
        (i for i in range(len(tokens)) if not lengths[i]), key=lambda i: tokens[i].tolist()
    )
    room = [len(tokens[i]) - 1 for i in order]
    links = [common(tokens[a], tokens[b]) for a, b in pairwise(order)]

    def best(first: int, last: int) -> tuple[int, list[tuple[int, int, int]]]:
        """The most tokens saved by rows first..last of the sorted ones, with the groups."""
        if first >= last:
            return 0, []
        weakest = min(range(first, last), key=links.__getitem__)
        whole = min([links[weakest], *room[first : last + 1]])
        if links[weakest] == max(links[first:last]) and whole >= least:
            return (last - first) * whole, [(first, last, whole)]
        apart, left = best(first, weakest)
        right_saved, right = best(weakest + 1, last)
        apart += right_saved
        saved = (last - first) * whole if whole >= least else 0
        if saved and saved >= apart:
            return saved, [(first, last, whole)]
        return apart, left + right

    for first, last, whole in best(0, len(order) - 1)[1]:
        for place in range(first, last + 1):
            lengths[order[place]] = whole
    return lengths


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """Keys and values of tokens[base:], kept under all of `tokens`."""

    tokens: np.ndarray
    base: int
    span: Span


class Store:
    """The least recently used entries go when they outgrow `budget` bytes."""

    def __init__(self, budget: int):
        self.budget = budget
        self.used = 0
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._next = 0

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        for key in list(self._entries):
            self._drop(key)

    def _drop(self, key: int) -> None:
        self.used -= self._entries.pop(key).span.nbytes

    def add(self, tokens: np.ndarray, base: int, span: Span) -> None:
        """Keep a span (the caller's copy), in place of what it extends."""
        for key, old in list(self._entries.items()):
            if old.base == base and common(old.tokens, tokens) == len(old.tokens):
                self._drop(key)
        self._entries[self._next] = Entry(tokens, base, span)
        self._next += 1
        self.used += span.nbytes
        while self.used > self.budget and self._entries:
            self._drop(next(iter(self._entries)))

    def longest(self, tokens: np.ndarray, base: int = 0) -> tuple[int, Span | None]:
        """The longest kept run of tokens[base:]: up to which token, and its span."""
        found, length = None, base
        for key, entry in self._entries.items():
            # An entry that begins earlier holds what we need too, further in.
            if entry.base <= base:
                same = common(entry.tokens, tokens)
                if same > length:
                    found, length = key, same
        if found is None:
            return base, None
        self._entries.move_to_end(found)
        entry = self._entries[found]
        return length, entry.span.cut(base - entry.base, length - entry.base)
