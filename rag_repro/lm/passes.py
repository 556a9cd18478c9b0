"""Forward passes over rows of unequal length: what decoding and reading share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from rag_repro.lm.attention import Group, Piece, Ragged, Step, register
from rag_repro.lm.packed import PackedLinears
from rag_repro.lm.slots import Slots, Span


@dataclass(slots=True, eq=False)
class Todo:
    """A row's tokens, of which the first `done` are already in its keys and values.

    The last `whole` tokens stay in one pass; their logits are handed out. Of
    the last `traced` tokens the attention is wanted.
    """

    tokens: np.ndarray
    soft: Mapping[int, Tensor]
    slots: Slots
    slot: int
    done: int = 0
    shared: Span | None = None
    n_shared: int = 0
    whole: int = 1
    traced: int = 0


@dataclass(slots=True)
class _Pack:
    """Pieces that go through the model together, with their rows' numbers."""

    size: int = 0
    pieces: list[Piece] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)


class Passes:
    """A causal model run on packed rows.

    limit: tokens in one packed pass; more only costs memory (on a processor
    also cache misses), less leaves matrix products small.
    packed_bytes: memory that packed weights may take beside the plain ones.
    """

    def __init__(self, model, limit: int, packed_bytes: int = 0):
        self.model = model
        self.limit = limit
        self._linears = PackedLinears(model, packed_bytes)
        self.device = model.device
        self.layers = model.config.num_hidden_layers
        self.heads = model.config.num_attention_heads
        self._embedding = model.get_input_embeddings()
        self._name = register()

    @contextmanager
    def _ours(self):
        """Our attention and linear layers for this pass only: outside, all is transformers' own."""
        config = self.model.config
        before = config._attn_implementation
        config._attn_implementation = self._name
        try:
            with self._linears.used():
                yield
        finally:
            config._attn_implementation = before

    def forward(self, ids, soft: Sequence[tuple[int, Tensor]], positions, plan, keep) -> Tensor:
        """Logits, float32 (len(keep), vocabulary), of one packed pass.

        soft: (place, embedding (width,)): what stands there in place of the token's own (R²AG,
        equation 5).
        """
        ids = torch.as_tensor(ids, device=self.device)
        embeds = self._embedding(ids[None])
        for place, vector in soft:
            embeds[0, place] = vector.to(embeds)
        with self._ours():
            out = self.model(
                inputs_embeds=embeds,
                position_ids=torch.as_tensor(positions, device=self.device)[None],
                use_cache=False,
                logits_to_keep=torch.as_tensor(keep, dtype=torch.long, device=self.device),
                plan=plan,
            )
        return out.logits[0].float()

    def ragged(
        self, todos: Sequence[Todo], layers: frozenset[int] = frozenset()
    ) -> Iterator[tuple[int, Tensor, dict[int, Tensor]]]:
        """Fill the rows' keys and values.

        -> (number of the row, logits (whole, vocabulary), layer -> attention
        (H, traced, all its tokens)), each row once, in order.
        """
        for pack in self._packs(todos):
            plan = Ragged(pack.pieces, layers)
            ids = np.concatenate(
                [todos[r].tokens[a:b] for r, (a, b) in zip(pack.rows, pack.spans, strict=True)]
            )
            soft, keep, positions, last = [], [], [], []
            for number, (row, piece) in enumerate(zip(pack.rows, pack.pieces, strict=True)):
                todo, (first, end) = todos[row], pack.spans[number]
                positions.append(np.arange(first, end))
                soft += [
                    (piece.first + place - first, vector)
                    for place, vector in todo.soft.items()
                    if first <= place < end
                ]
                if end == len(todo.tokens):
                    last.append((number, row, len(keep)))
                    keep.extend(range(piece.last - todo.whole, piece.last))
            ids = np.maximum(ids, 0)
            logits = self.forward(ids, soft, np.concatenate(positions), plan, keep)
            for number, row, at in last:
                captured = {i: plan.captured[i, number] for i in layers if todos[row].traced}
                yield row, logits[at : at + todos[row].whole], captured

    def _packs(self, todos: Sequence[Todo]) -> Iterator[_Pack]:
        pack = _Pack()
        for row, todo in enumerate(todos):
            end = len(todo.tokens)
            cuts = [*range(todo.done, end - todo.whole, self.limit), end]
            if len(cuts) > 2 and end - cuts[-2] > self.limit:
                cuts.insert(-1, end - todo.whole)
            if cuts[0] != todo.done:
                cuts.insert(0, todo.done)
            for first, last in pairwise(cuts):
                n = last - first
                if pack.size and pack.size + n > self.limit:
                    yield pack
                    pack = _Pack()
                pack.pieces.append(
                    Piece(
                        pack.size,
                        pack.size + n,
                        todo.slots,
                        todo.slot,
                        first - todo.n_shared,
                        todo.shared,
                        todo.n_shared,
                        todo.traced if last == end else 0,
                    )
                )
                pack.rows.append(row)
                pack.spans.append((first, last))
                pack.size += n
        if pack.size:
            yield pack

    def step(
        self,
        tokens: Sequence[int],
        own: Sequence[int],
        shared: Sequence[tuple[Span | None, int]],
        slots: Slots,
        traced: bool,
    ) -> tuple[Tensor, Tensor | None, int]:
        """One token for each of the first rows of `slots`.

        -> logits (A, vocabulary); if traced the last layer's attention
        (A, H, shared columns + own columns); the number of shared columns.
        """
        plan = Step(
            slots,
            torch.tensor(own, device=self.device),
            torch.tensor([n for _, n in shared], device=self.device),
            self._groups(shared),
            width=max(n for _, n in shared),
            longest=max(own) + 1,
            layer=self.layers - 1 if traced else None,
        )
        positions = [a + n for a, (_, n) in zip(own, shared, strict=True)]
        logits = self.forward(tokens, (), positions, plan, range(len(tokens)))
        return logits, plan.captured, plan.width

    def _groups(self, shared: Sequence[tuple[Span | None, int]]) -> list[Group]:
        members: dict[int, list[int]] = {}
        for row, (span, _) in enumerate(shared):
            if span is not None:
                members.setdefault(id(span), []).append(row)
        groups = []
        for rows in members.values():
            span, n = shared[rows[0]]
            whole = len(rows) == len(shared)
            index = None if whole else torch.tensor(rows, device=self.device)
            groups.append(Group(span, n, index))
        return groups
