"""A call to write, as tokens, and the row that it becomes while it is written."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rag_repro.lm.slots import Span
from rag_repro.schema import Generate


@dataclass(slots=True, eq=False)
class Job:
    """A call as tokens. Soft places have negative ids, made from their vectors' content."""

    number: int
    call: Generate
    tokens: np.ndarray
    pieces: tuple[str, ...]
    template: tuple[tuple[int, int], ...]
    soft: dict[int, Tensor]
    declared: int
    limit: int
    watched: tuple[int, ...]
    shared: Span | None = None
    n_shared: int = 0
    prefilled: int = 0

    @property
    def looks(self) -> bool:
        """Whether its trace tells the attention."""
        return self.call.trace and self.call.attention


@dataclass(slots=True, eq=False)
class Row:
    """A job being written. own: its tokens in its slot; fed: new tokens among them."""

    job: Job
    own: int
    generator: torch.Generator | None
    tokens: list[int] = field(default_factory=list)
    probability: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    watched: list[tuple[float, ...]] = field(default_factory=list)
    attention: list[np.ndarray] = field(default_factory=list)
    fed: int = 0
    text: str = ""
    kept: int = 0
    offsets: tuple[int, ...] = ()
    finish: str | None = None

    @property
    def done(self) -> bool:
        """Finished, and every kept token whose attention is told has been an input itself."""
        return self.finish is not None and (not self.job.looks or self.fed >= self.kept)
