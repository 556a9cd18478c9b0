"""Keys and values of the tokens that rows have had.

A row's own lie in one slot of a `Slots`; a run of them, as a prefix that several rows share, is a
`Span`. Letters: V key-value heads, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        return Span(
            {i: t[row, :, first:last] for i, t in self.keys.items()},
            {i: t[row, :, first:last] for i, t in self.values.items()},
        )

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
        return Span(
            {i: t[:, first:last] for i, t in self.keys.items()},
            {i: t[:, first:last] for i, t in self.values.items()},
        )

    def clone(self) -> Span:
        return Span(
            {i: t.clone() for i, t in self.keys.items()},
            {i: t.clone() for i, t in self.values.items()},
        )

    @property
    def nbytes(self) -> int:
        tensors = (*self.keys.values(), *self.values.values())
        return sum(t.numel() * t.element_size() for t in tensors)
