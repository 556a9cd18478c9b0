"""Attention over rows of unequal length, without padding and without masks.

A forward pass gets all rows' new tokens as ONE sequence (1, T, d_model), so
that linear layers spend nothing on padding; only attention has to know which
token belongs to which row. The model calls `attend` in each layer
(`transformers.AttentionInterface`) and hands it the *plan* of the pass:

- `Ragged`: stretches of new tokens of several rows (prefill, `Read`);
- `Step`: one new token for each row (decoding).

A row's past is a shared prefix, held once for all rows that begin with it,
and its own tokens, in one slot of a `Slots`. Letters: H query heads, V
key-value heads, G = H / V, D head size, P shared and N own tokens of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from rag_repro.lm.prefix import Slots, Span

NAME = "rag_repro_ragged"


def weights_of(
    query: Tensor, key: Tensor, scale: float, softcap: float | None, mask: Tensor
) -> Tensor:
    """Attention weights (V, G, n, m) of (V, G, n, D) over (V, m, D), in float32.

    mask: (n, m), added to the scores: -inf where a query must not look, else 0.
    """
    v, g, n, d = query.shape
    scores = (query.reshape(v, g * n, d) @ key.transpose(1, 2)).view(v, g, n, -1).float() * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    return (scores + mask).softmax(-1)


def _mask(hidden: Tensor, dtype: torch.dtype) -> Tensor:
    """-inf where hidden, else 0: added, since filling by a broadcast mask is slow."""
    return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(
        hidden, -torch.inf
    )


@dataclass(slots=True)
class Piece:
    """A row's stretch of new tokens: first..last-1 of the pass.

    They follow the row's `n_shared` shared and `start` own tokens. Of its last
    `traced` tokens the attention is wanted in the pass's traced layers.
    """

    first: int
    last: int
    slots: Slots
    slot: int
    start: int
    shared: Span | None = None
    n_shared: int = 0
    traced: int = 0
    masks: dict[int | None, Tensor] = field(default_factory=dict)

    def mask(self, window: int | None, like: Tensor) -> Tensor:
        """(n, past + n): -inf where its tokens must not look, else 0."""
        if window not in self.masks:
            n, past = self.last - self.first, self.n_shared + self.start
            queries = torch.arange(past, past + n, device=like.device)[:, None]
            keys = torch.arange(past + n, device=like.device)[None, :]
            hidden = keys > queries
            if window is not None:
                hidden |= queries - keys >= window
            self.masks[window] = _mask(hidden, like.dtype)
        return self.masks[window]

    def plain(self, window: int | None) -> bool:
        """Whether it is causal from its row's first token on, which needs no mask."""
        n = self.last - self.first
        return self.n_shared + self.start == 0 and (window is None or n <= window)


@dataclass(slots=True)
class Ragged:
    """The plan of a pass over stretches of several rows.

    captured: (layer, piece) -> attention of the piece's traced tokens,
    (H, traced, past + n), filled during the pass.
    """

    pieces: Sequence[Piece]
    layers: frozenset[int] = frozenset()
    captured: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    def attend(self, layer, query, key, value, scale, softcap, window) -> Tensor:
        heads, groups = query.shape[1], query.shape[1] // key.shape[1]
        parts = []
        for number, piece in enumerate(self.pieces):
            new = slice(piece.first, piece.last)
            n = piece.last - piece.first
            keys, values = piece.slots.layer(layer, key, value)
            end = piece.start + n
            keys[piece.slot, :, piece.start : end] = key[0, :, new]
            values[piece.slot, :, piece.start : end] = value[0, :, new]
            k, v = keys[piece.slot, :, :end], values[piece.slot, :, :end]
            if piece.shared is not None:
                k = torch.cat([piece.shared.keys[layer], k], dim=1)
                v = torch.cat([piece.shared.values[layer], v], dim=1)
            q = query[0, :, new].unflatten(0, (-1, groups))  # (V, G, n, D)
            if softcap is None:
                plain = piece.plain(window)
                # Key-value heads stand as the batch: their group's copies are views, not memory.
                out = scaled_dot_product_attention(
                    q,
                    k[:, None].expand(-1, groups, -1, -1),
                    v[:, None].expand(-1, groups, -1, -1),
                    attn_mask=None if plain else piece.mask(window, q),
                    is_causal=plain,
                    scale=scale,
                )
            else:
                weights = weights_of(q, k, scale, softcap, piece.mask(window, q)).to(v.dtype)
                out = (weights.flatten(1, 2) @ v).unflatten(1, (groups, n))
            if layer in self.layers and piece.traced:
                rows = slice(n - piece.traced, n)
                mask = piece.mask(window, q)[rows]
                traced = weights_of(q[:, :, rows], k, scale, softcap, mask)
                self.captured[layer, number] = traced.reshape(heads, piece.traced, -1)
            parts.append(out.flatten(0, 1).transpose(0, 1))  # (n, H, D)
        return torch.cat(parts)[None]


@dataclass(slots=True, eq=False)
class Group:
    """Rows (indices into the step's rows; None: all of them) with one shared prefix."""

    shared: Span
    n_shared: int
    rows: Tensor | None = None


@dataclass(slots=True)
class Step:
    """The plan of a pass of one new token for each of the first A slots.

    own: (A,) own tokens already stored, so the new token's place in its slot.
    Columns of the attention are `width` shared ones, then own ones; what a row
    does not have is hidden. captured: (A, H, columns) of the traced layer.
    """

    slots: Slots
    own: Tensor
    n_shared: Tensor
    groups: Sequence[Group]
    width: int
    longest: int
    layer: int | None = None
    captured: Tensor | None = None
    masks: dict[int | None, Tensor] = field(default_factory=dict)

    def mask(self, window: int | None) -> Tensor:
        """(A, 1, 1, columns): -inf where a row must not look, else 0."""
        if window not in self.masks:
            device, own, shared = self.own.device, self.own[:, None], self.n_shared[:, None]
            left = torch.arange(self.width, device=device)[None, :]
            right = torch.arange(self.longest, device=device)[None, :]
            hidden = torch.cat([left >= shared, right > own], dim=1)
            if window is not None:
                place = torch.cat([left.expand(len(own), -1), right + shared], dim=1)
                hidden |= shared + own - place >= window
            self.masks[window] = _mask(hidden, torch.float32)[:, None, None, :]
        return self.masks[window]

    def attend(self, layer, query, key, value, scale, softcap, window) -> Tensor:
        rows, heads = query.shape[2], query.shape[1]
        keys, values = self.slots.layer(layer, key, value)
        index = torch.arange(rows, device=query.device)
        keys[index, :, self.own] = key[0].transpose(0, 1)
        values[index, :, self.own] = value[0].transpose(0, 1)
        k, v = keys[:rows, :, : self.longest], values[:rows, :, : self.longest]

        q = query[0].transpose(0, 1).unflatten(1, (key.shape[1], -1)) * scale  # (A, V, G, D)
        scores = q.new_zeros(*q.shape[:3], self.width + self.longest)
        scores[..., self.width :] = q @ k.transpose(2, 3)
        for group in self.groups:
            # One product for all the group's rows: the prefix is read once, not once a row.
            some = q if group.rows is None else q[group.rows]
            some = some.transpose(0, 1)  # (V, rows, G, D)
            left = some.flatten(1, 2) @ group.shared.keys[layer].transpose(1, 2)
            left = left.view(*some.shape[:3], -1).transpose(0, 1)
            where = slice(None) if group.rows is None else group.rows
            scores[where, :, :, : group.n_shared] = left
        scores = scores.float()
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        weights = (scores + self.mask(window)).softmax(-1)
        if layer == self.layer:
            self.captured = weights.flatten(1, 2)
        weights = weights.to(v.dtype)

        out = weights[..., self.width :] @ v
        for group in self.groups:
            where = slice(None) if group.rows is None else group.rows
            some = weights[where, :, :, : group.n_shared].transpose(0, 1)
            left = some.flatten(1, 2) @ group.shared.values[layer]
            out[where] += left.view(*some.shape[:3], -1).transpose(0, 1)
        return out.reshape(1, rows, heads, -1)


def attend(
    module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    sliding_window: int | None = None,
    plan: Ragged | Step | None = None,
    **extras,
) -> tuple[Tensor, None]:
    """What each layer calls: query (1, H, T, D), key and value (1, V, T, D)."""
    if plan is None:
        raise RuntimeError(f"{type(module).__name__} did not hand on the plan of the pass")
    if extras.get("s_aux") is not None or extras.get("position_bias") is not None:
        raise RuntimeError(f"{type(module).__name__} adds terms to its attention that we lack")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return plan.attend(module.layer_idx, query, key, value, scale, softcap, sliding_window), None


@cache
def register() -> str:
    """Make `attend` known to transformers, which then builds no masks for it. -> its name"""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attend)
    return NAME
