"""Embeddings placed in a prompt, made of a passage's features by a small module."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rag_repro.schema import Soft
from rag_repro.schema.errors import CallError, ReaderError
from rag_repro.words import nearest


class SoftModules:
    """Modules by name, each (passages, n_features) -> (passages, width)."""

    def __init__(self, width: int, device: torch.device):
        self.width = width
        self.device = device
        self._modules: dict[str, torch.nn.Module] = {}

    def add(self, name: str, module: torch.nn.Module) -> None:
        self._modules[name] = module.to(self.device)

    def digests(self) -> dict[str, str]:
        """Name -> hash of the module's parameters as they are now."""
        return {name: _digest(module) for name, module in sorted(self._modules.items())}

    def rows(self, segments: Sequence[Soft]) -> list[Tensor]:
        """The embedding (width,) of each segment; gradients flow to modules and features.

        Segments that hold the same array share one run of their module.
        """
        made: dict[tuple[str, int], Tensor] = {}
        rows = []
        for segment in segments:
            key = segment.name, id(segment.features)
            if key not in made:
                made[key] = self._apply(segment)
            if not 0 <= segment.index < len(made[key]):
                raise CallError(
                    f"soft segment {segment.name!r}: row {segment.index} of {len(made[key])}"
                )
            rows.append(made[key][segment.index])
        return rows

    def still(self, segments: Sequence[Soft]) -> list[Tensor]:
        """`rows` for decoding: no gradients, modules in evaluation mode."""
        before = {name: m.training for name, m in self._modules.items()}
        try:
            for module in self._modules.values():
                module.eval()
            with torch.no_grad():
                return self.rows(segments)
        finally:
            for name, module in self._modules.items():
                module.train(before[name])

    def _apply(self, segment: Soft) -> Tensor:
        if segment.name not in self._modules:
            hint = nearest(segment.name, self._modules)
            raise CallError(f"no soft module {segment.name!r}{hint}; add it with reader.add_soft")
        features = torch.as_tensor(segment.features, dtype=torch.float32, device=self.device)
        out = self._modules[segment.name](features)
        if out.shape != (len(features), self.width):
            raise ReaderError(
                f"soft module {segment.name!r} made {tuple(out.shape)} of "
                f"{tuple(features.shape)} features: {(len(features), self.width)} wanted"
            )
        return out


def content_id(vector: Tensor) -> int:
    """A negative id that two vectors share only if they are the same, bit for bit."""
    data = vector.detach().to("cpu", torch.float32).numpy().tobytes()
    return -1 - (int.from_bytes(hashlib.sha256(data).digest()[:8]) >> 2)


def _digest(module: torch.nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensor.detach().float().cpu().numpy()).tobytes())
    return digest.hexdigest()
