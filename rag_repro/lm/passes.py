"""Forward passes over rows of unequal length: what decoding and reading share.

A plain float32 linear layer rearranges its weights at every product; oneDNN
can keep them as its kernels want them. That takes the memory of the weights a
second time (the plain ones stay: adapters, training and single rows use them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from rag_repro.lm.attention import Group, Piece, Ragged, Step, register
from rag_repro.lm.prefix import Slots, Span
from rag_repro.plain import shortened
from rag_repro.schema.errors import ReaderError

FEW = 4
"""Up to so many rows only memory's speed counts, and the plain layer is the faster."""

LAID_OUT_FOR = 1024
"""Rows that oneDNN is told to expect; the layout serves other numbers as well."""


def _state(layer: nn.Linear) -> tuple[int, int]:
    """What changes when weights are written in place, or are given other memory."""
    return layer.weight._version, layer.weight.data_ptr()


class _Packed:
    """One layer's `forward`, with the state of the weights that it was made from."""

    __slots__ = ("bias", "packed", "state", "weight")

    def __init__(self, layer: nn.Linear):
        self.weight, self.bias = layer.weight, layer.bias
        self.state = _state(layer)
        self.packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), LAID_OUT_FOR)

    def fits(self, layer: nn.Linear) -> bool:
        """Whether the layer's weights are still those (training changes them in place)."""
        return self.state == _state(layer)

    def __call__(self, x: Tensor) -> Tensor:
        if x.numel() <= FEW * x.shape[-1]:
            return linear(x, self.weight, self.bias)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")


_MADE: WeakKeyDictionary[nn.Linear, _Packed] = WeakKeyDictionary()
"""By layer, so that readers of one model share them, and they go with the model."""


class PackedLinears:
    """The layers of a model that are packed while `used`; none where that cannot be.

    limit: bytes that the packed weights may take; layers beyond stay plain.
    """

    def __init__(self, model: nn.Module, limit: int):
        self.layers: list[nn.Linear] = []
        if model.device.type != "cpu" or not torch.backends.mkldnn.is_available():
            return
        for layer in model.modules():
            # Not subclasses: those of quantised weights or of adapters compute something else.
            if type(layer) is nn.Linear and layer.weight.dtype is torch.float32:
                limit -= layer.weight.nbytes
                if limit < 0:
                    break
                self.layers.append(layer)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Within this block the layers compute with packed weights; outside they are PyTorch's."""
        for layer in self.layers:
            made = _MADE.get(layer)
            if made is None or not made.fits(layer):
                made = _MADE[layer] = _Packed(layer)
            # Past nn.Module.__setattr__, which takes longer than all that it is for here.
            layer.__dict__["forward"] = made
        try:
            yield
        finally:
            for layer in self.layers:
                del layer.__dict__["forward"]


_WINDOW = 4


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
        config = model.config.get_text_config()
        self.layers = config.num_hidden_layers
        self.heads = config.num_attention_heads
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

    def verify(self) -> None:
        """Raise ReaderError where the logits of our passes are not the model's own.

        Two short rows are read together and one token after each; windows are narrowed to
        `_WINDOW` tokens meanwhile, so that layers that have one hide something from these, too.
        """
        words = len(self._embedding.weight)
        rows = [[(31 * i * i + 7 * i + 3 * n) % words for i in range(1, n)] for n in (13, 9)]
        name = type(self.model).__name__
        try:
            with torch.no_grad(), self._narrow():
                pairs = [*zip(map(self._plain, rows), self._both(rows), strict=True)]
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # a model's own code, which may raise anything
            words = shortened(" ".join(str(error).split()) or type(error).__name__)
            raise ReaderError(
                f"{name}: its layers cannot be computed with our attention ({words}); "
                "take another reader"
            ) from error
        exact = self._embedding.weight.dtype is torch.float32
        for wanted, found in pairs:
            off = ((found - wanted).norm() / (wanted - wanted.mean()).norm()).item()
            if not off <= (1e-3 if exact else 0.2):
                raise ReaderError(
                    f"{name}: with our attention it computes something else than its own "
                    f"plain pass (off by {off:.2g} of the spread); take another reader"
                )

    @contextmanager
    def _narrow(self):
        """Every window of the model is `_WINDOW` tokens wide for this block."""
        holders = [self.model.config.get_text_config(), *self.model.modules()]
        wide = [(h, w) for h in holders if type(w := getattr(h, "sliding_window", None)) is int]
        for holder, _ in wide:
            holder.sliding_window = _WINDOW
        try:
            yield
        finally:
            for holder, width in wide:
                holder.sliding_window = width

    def _plain(self, ids: Sequence[int]) -> Tensor:
        """The model's own logits (n, vocabulary)."""
        config = self.model.config
        before, config._attn_implementation = config._attn_implementation, "eager"
        try:
            given = torch.tensor([list(ids)], device=self.device)
            return self.model(input_ids=given, use_cache=False).logits[0].float()
        finally:
            config._attn_implementation = before

    def _both(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        """As `_plain` for rows together: all tokens but the last in one pass, then these."""
        slots = Slots(len(rows), max(map(len, rows)))
        own = [len(ids) - 1 for ids in rows]
        todos = [
            Todo(np.array(ids[:-1]), {}, slots, row, whole=n)
            for row, (ids, n) in enumerate(zip(rows, own, strict=True))
        ]
        read = [logits for _, logits, _ in self.ragged(todos)]
        logits, _, _ = self.step(
            [ids[-1] for ids in rows], own, [(None, 0)] * len(rows), slots, traced=False
        )
        return [torch.cat([seen, logits[row : row + 1]]) for row, seen in enumerate(read)]

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
