"""From logits to the next token, with what a trace says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rag_repro.schema import Sampling


@dataclass(frozen=True, slots=True)
class Choice:
    """A drawn token; probability, entropy (nats) of its distribution where asked for.

    gap: the best logit less the second best (a tie where it is tiny).
    """

    token: int
    gap: float
    probability: float | None = None
    entropy: float | None = None
    watched: tuple[float, ...] | None = None


def entropy(log_p: Tensor) -> Tensor:
    """Entropy in nats of distributions given as log probabilities (..., vocabulary)."""
    return torch.special.entr(log_p.exp()).sum(-1)


def distribution(logits: Tensor, sampling: Sampling) -> Tensor:
    """What sampling draws from: tempered, then cut to the fewest tokens that hold `top_p`.

    logits (vocabulary,) -> probabilities (vocabulary,).
    """
    p = (logits / sampling.temperature).softmax(-1)
    if sampling.top_p < 1:
        ranked, order = p.sort(descending=True, stable=True)
        beyond = ranked.cumsum(-1) - ranked >= sampling.top_p
        p = p.index_fill(0, order[beyond], 0.0)
        p = p / p.sum()
    return p


def choose(
    logits: Tensor,
    traced: Sequence[bool],
    watched: Sequence[tuple[int, ...]],
    samplings: Sequence[Sampling | None],
    generators: Sequence[torch.Generator | None],
) -> list[Choice]:
    """One token a row from logits (rows, vocabulary), float32.

    Greedy rows take the best token; sampled rows draw with their own
    generator, so that neighbours do not change the draw.
    """
    best, index = logits.max(-1)
    second = logits.scatter(1, index[:, None], -torch.inf).amax(-1)
    tokens, gaps = index.tolist(), (best - second).tolist()
    need = [i for i in range(len(tokens)) if traced[i] or watched[i]]
    log_p = logits[need].log_softmax(-1) if need else None
    row_of = {row: place for place, row in enumerate(need)}
    entropies = entropy(log_p).tolist() if any(traced) else []

    choices = []
    for row, token in enumerate(tokens):
        probability = spread = seen = None
        if row in row_of:
            mine = log_p[row_of[row]]
            if traced[row]:
                probability = mine[token].exp().item()
                spread = entropies[row_of[row]]
            if watched[row]:
                seen = tuple(mine[list(watched[row])].exp().tolist())
        if samplings[row] is not None:
            p = distribution(logits[row], samplings[row]).double()
            draw = torch.rand((), generator=generators[row], dtype=torch.float64).item()
            total = p.cumsum(-1)
            token = int(torch.searchsorted(total, draw * total[-1].item(), right=True))
            token = min(token, int(p.nonzero()[-1]))
            if traced[row]:
                probability = p[token].item()
                spread = torch.special.entr(p).sum().item()
        choices.append(Choice(token, gaps[row], probability, spread, seen))
    return choices
