"""R²-Former: from a ranked list's retrieval features to one embedding a passage (R²AG, 3.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rag_repro.digest import replacing
from rag_repro.lm.weights import FORMER
from rag_repro.schema import Soft
from rag_repro.schema.errors import CallError, ReaderError, WeightsError
from rag_repro.words import nearest


class R2Former(nn.Module):
    """Equations 2, 3 and 7 over lists of passages, of which any may have fewer than the longest.

    One encoder layer of PyTorch's own kind (post-norm, ReLU), in which every place looks at
    every other; the paper's f without more, so that its "linear projection via an MLP" is one
    linear layer. Sizes of the authors' code.

    position_start: the spread that positions are drawn with. Cosines of one list differ by a
    tenth or less, which is little beside positions drawn with 1.
    """

    def __init__(
        self,
        n_features: int,
        width: int,
        hidden: int = 256,
        heads: int = 4,
        feed_forward: int = 2048,
        layers: int = 1,
        dropout: float = 0.1,
        places: int = 20,
        position_start: float = 0.02,
    ):
        super().__init__()
        self.n_features, self.places = n_features, places
        self.lift = nn.Linear(n_features, hidden)
        self.positions = nn.Parameter(position_start * torch.randn(places, hidden))
        layer = nn.TransformerEncoderLayer(hidden, heads, feed_forward, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.projection = nn.Linear(hidden, width)
        self.head = nn.Linear(hidden, 1)

    def attend(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """H (B, k, hidden) of features (B, k, n_features): equation 2.

        mask: bool (B, k), True where there is a passage; what stands elsewhere changes nothing.
        CallError: more passages than places, or another number of columns than the module's.
        """
        k = _places(features, self.places)
        if features.shape[-1] != self.n_features:
            raise CallError(
                f"a former of {self.n_features} columns was given {features.shape[-1]}: "
                "name in the condition's `columns` those that it was trained with"
            )
        lifted = self.lift(features) + self.positions[:k]
        return self.encoder(lifted, src_key_padding_mask=None if mask is None else ~mask)

    def project(self, hidden: Tensor) -> Tensor:
        """H in the reader's width, (..., width): equation 3."""
        return self.projection(hidden)

    def relevance(self, hidden: Tensor) -> Tensor:
        """A logit a passage, (...,), that it is gold: equation 7."""
        return self.head(hidden).squeeze(-1)

    def forward(self, features: Tensor) -> Tensor:
        """(k, n_features) -> (k, width), as soft segments want it."""
        return self.project(self.attend(features[None]))[0]

    def start_as(self, embeddings: Tensor) -> None:
        """Begin with vectors as long as the reader's own (vocabulary, width), as `met`, on average.

        What PyTorch draws is several times longer, and the frozen reader met no such token.
        """
        # Layer norm makes each place of H as long as sqrt(hidden), whatever went in.
        spread = embeddings.detach().float().pow(2).mean().sqrt().cpu()
        with torch.no_grad():
            self.projection.weight *= spread / self.projection.weight.pow(2).sum(1).mean().sqrt()
            self.projection.bias.zero_()


class FreeTokens(nn.Module):
    """A vector a place in the place of H: the learnable tokens of the paper's figure 3.

    Behind them stands a former's projection, so that both learn at one pace. A step moves each
    number by the learning rate at most: in a projection 256 numbers move each entry of an
    embedding together, and vectors in the reader's own width would stay where they began.
    """

    def __init__(self, places: int, width: int, hidden: int = 256):
        super().__init__()
        self.places = places
        self.vectors = nn.Parameter(torch.randn(places, hidden))
        self.projection = nn.Linear(hidden, width)

    def forward(self, features: Tensor) -> Tensor:
        """(k, anything) -> (k, width). CallError: more passages than places."""
        return self.projection(self.vectors[: _places(features[None], self.places)])

    start_as = R2Former.start_as  # what is drawn is as long as a place of H, on average


KINDS = {"r2": R2Former, "free": FreeTokens}


def build_module(kind: str, seed: int, **settings: Any) -> nn.Module:
    """A module of a kind with fresh weights, the same for the same seed and settings."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return KINDS[kind](**settings)


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def save(module: nn.Module, folder: Path) -> None:
    """Its weights in half precision, as `former.safetensors`; what they are, says the card."""
    from safetensors.torch import save_file

    state = module.state_dict()
    halved = {name: t.detach().to("cpu", torch.float16).contiguous() for name, t in state.items()}
    with replacing(folder / FORMER) as part:
        save_file(halved, part, metadata={"format": "pt"})


def load(folder: Path, card: Mapping[str, Any]) -> tuple[str, nn.Module]:
    """The module in an artifact's folder, and the name by which soft segments call it.

    card: of the folder, whose `former` has {"soft": name, "kind": .., "settings": ..}.
    WeightsError: a card or a file that is not a former's.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        told = card["former"]
        module = KINDS[told["kind"]](**told["settings"])
        state = load_file(folder / FORMER)
        module.load_state_dict({key: tensor.float() for key, tensor in state.items()})
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise WeightsError(
            f"{folder / FORMER}: not the former that its card tells of ({error}); train it anew"
        ) from error
    return told["soft"], module.eval()


def _places(features: Tensor, places: int) -> int:
    k = features.shape[-2]
    if k > places:
        raise CallError(f"{k} passages for a former of {places} places; lower k, or train a longer")
    return k


def met(table: nn.Module) -> Tensor:
    """A reader's own embeddings (vocabulary, width) as its layers meet them.

    Gemma's are scaled on their way out of the table, where an embedding of ours is put beside them.
    """
    with torch.no_grad():
        return table(torch.arange(len(table.weight), device=table.weight.device))


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
        """The embedding (width,) of each segment, by modules in evaluation mode, no gradients.

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

    def _apply(self, segment: Soft) -> Tensor:
        if segment.name not in self._modules:
            hint = nearest(segment.name, self._modules)
            raise CallError(f"no soft module {segment.name!r}{hint}; add it with reader.add_soft")
        features = torch.as_tensor(segment.features, dtype=torch.float32, device=self.device)
        module = self._modules[segment.name]
        training = module.training
        try:
            with torch.no_grad():
                out = module.eval()(features)
        finally:
            module.train(training)
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
