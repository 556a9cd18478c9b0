"""How good a tuned retriever's scores look on the questions that it was tuned on (R²AG).

The authors tune their retriever on a training split and take the former's features from the
same questions, where it knows the answers: at the test its features are worse than the former
was taught. Cross-fitted features, each list's by a retriever that was tuned on other questions,
are not so. Here what is tuned is small, a matrix behind the frozen vectors, so that it takes
seconds; a whole encoder has more to remember with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation import calibration
from ..evaluation.calibration import Judgements
from ..evaluation.resampling import fresh
from ..methods.r2ag.method import text_of_hit
from .lists import Listed
from .table import Table
from .values import in_points

STEPS, RATE, TEMPERATURE = 100, 1e-3, 0.05


@dataclass(frozen=True, eq=False)
class Vectors:
    """Lists as the encoder has them: queries (n, d), passages (n, k, d), and what is there.

    gold, there: (n, k) of bool; shorter lists are filled up.
    """

    queries: np.ndarray
    passages: np.ndarray
    gold: np.ndarray
    there: np.ndarray

    @classmethod
    def of(cls, lists: Sequence[Listed], encoder: Any) -> Vectors:
        """encoder: with `encode`, texts to unit vectors."""
        k = max(len(one.hits) for one in lists)
        queries = encoder.encode([one.question.text for one in lists])  # (n, d)
        passages = np.zeros((len(lists), k, queries.shape[1]), dtype=np.float32)
        gold, there = (np.zeros((len(lists), k), dtype=bool) for _ in range(2))
        for i, one in enumerate(lists):
            n = len(one.hits)
            passages[i, :n] = encoder.encode([text_of_hit(hit) for hit in one.hits])
            gold[i, :n], there[i, :n] = one.labels, True
        return cls(queries, passages, gold, there)

    def only(self, chosen: np.ndarray) -> Vectors:
        return Vectors(*(x[chosen] for x in vars(self).values()))


def tuned(held: Vectors, steps: int = STEPS, rate: float = RATE) -> np.ndarray:
    """W (d, d), from the identity, under which gold passages are nearest to their question.

    The loss is contrastive: of each gold passage, -log softmax over its list of cos / T.
    """
    import torch

    q, x = torch.tensor(held.queries), torch.tensor(held.passages)
    gold, there = torch.tensor(held.gold), torch.tensor(held.there)
    w = torch.eye(q.shape[1], requires_grad=True)
    optimiser = torch.optim.Adam([w], lr=rate)
    for _ in range(steps):
        r = torch.cosine_similarity((q @ w)[:, None], x @ w, dim=-1)  # (n, k)
        logs = torch.log_softmax((r / TEMPERATURE).masked_fill(~there, -torch.inf), dim=-1)
        optimiser.zero_grad()
        (-logs[gold].mean()).backward()
        optimiser.step()
    return w.detach().numpy()


def relevance(held: Vectors, w: np.ndarray | None = None) -> np.ndarray:
    """r (n, k) of equation 10 behind W; noughts where a list ends."""
    q, x = (held.queries, held.passages) if w is None else (held.queries @ w, held.passages @ w)
    lengths = np.linalg.norm(q, axis=-1)[:, None] * np.linalg.norm(x, axis=-1)
    products = np.einsum("nd,nkd->nk", q, x)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)


def table(lists: Sequence[Listed], encoder: Any, caption: str = "", name: str = "") -> Table:
    """Area under the curve of r: frozen, tuned on the same questions, and on the other half.

    Questions of one cluster are in one half. A line each; gains over the frozen one are paired.
    """
    held = Vectors.of(lists, encoder)
    units = [one.question.unit for one in lists]
    dealt = {unit: i % 2 for i, unit in enumerate(dict.fromkeys(units))}
    half = np.array([dealt[unit] for unit in units])
    made = {"frozen": relevance(held)}
    for said, other in (("tuned on the same questions", 0), ("tuned on the other half", 1)):
        made[said] = np.zeros_like(made["frozen"])
        for part in (0, 1):
            w = tuned(held.only(half == (part ^ other)))
            made[said][half == part] = relevance(held.only(half == part), w)
    clusters = np.repeat(units, held.there.sum(axis=1))
    judged = {
        said: Judgements.of((1 + r[held.there]) / 2, held.gold[held.there], clusters)
        for said, r in made.items()
    }
    body = []
    for said, one in judged.items():
        area = calibration.auc(one, fresh())
        more = calibration.auc_gain(one, judged["frozen"], fresh())
        body.append(
            [said, in_points(area), "" if said == "frozen" else in_points(more, "+"), len(lists)]
        )
    return Table(["r by MiniLM", "AUC, % [95 %]", "more than frozen", "lists"], body, caption, name)
