"""Linear layers whose weights were laid out once for the processor.

A plain float32 linear layer rearranges its weights at every product; oneDNN
can keep them as its kernels want them. That takes the memory of the weights a
second time (the plain ones stay: adapters, training and single rows use them).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

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
