"""A reader and the former before it as one model, and R²AG's loss (section 3.5).

    L_QDM = - sum over i of s_i log p_i + (1 - s_i) log(1 - p_i),  p = sigmoid(f(H))    (eq. 7, 8)
    L = L_QDM + L_LM                                                                   (eq. 9)

for each question; a step's loss is the mean over its questions. L_LM is the mean over the
answer's tokens, of which alone logits are made. The paper sums L_QDM over the passages,
its code takes the mean; that changes the balance of the two by k (`reduction`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from ..evaluation.pair_metrics import auc
from ..lm import former as formers
from .examples import batches
from .fit import publish_adapter, targets
from .recipes import Former


@dataclass(frozen=True, slots=True)
class Lesson:
    """A list of passages with a question, in the reader's prompt, and its answer.

    Of `tokens` the last `n_target` are the answer; at `places` the former's embeddings stand.
    features: a row a passage; labels: 1 where it is gold. Without a former all three are empty.
    """

    tokens: tuple[int, ...]
    n_target: int
    source: str
    places: tuple[int, ...] = ()
    features: tuple[tuple[float, ...], ...] = ()
    labels: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What a former makes of a batch's lists, padded to the longest.

    embeddings: (passages, width), list after list. mask: (B, k), where there is a passage.
    labels, logits: (B, k) of equations 7 and 8; logits None: the former has no head.
    """

    embeddings: Tensor
    mask: Tensor
    labels: Tensor
    logits: Tensor | None


class Joint(nn.Module):
    """reader: a causal model, frozen or wrapped by peft; former: None where it reads alone."""

    def __init__(self, reader: Any, former: nn.Module | None):
        super().__init__()
        self.reader, self.former = reader, former

    @property
    def device(self) -> torch.device:
        return self.reader.device

    @property
    def base(self) -> Any:
        """The causal model, whose layers hold low-rank matrices where there are some."""
        # Asked so, peft need not be imported where nothing is trained.
        wrapped = hasattr(self.reader, "get_base_model")
        return self.reader.get_base_model() if wrapped else self.reader

    def tell(self, batch: Sequence[Lesson]) -> Told | None:
        """Equations 2, 3 and 7 of the batch's lists, padded to the longest; None: no former."""
        if self.former is None:
            return None
        lengths = torch.tensor([len(e.features) for e in batch], device=self.device)
        mask = torch.arange(int(lengths.max()), device=self.device) < lengths[:, None]
        features = torch.zeros(*mask.shape, len(batch[0].features[0]), device=self.device)
        features[mask] = torch.tensor([row for e in batch for row in e.features]).to(features)
        labels = torch.zeros(mask.shape, device=self.device)
        labels[mask] = torch.tensor([float(s) for e in batch for s in e.labels]).to(labels)
        # Cosines of a list differ in their third digit, which bfloat16 has not.
        with torch.autocast(self.device.type, enabled=False):
            if isinstance(self.former, formers.FreeTokens):
                made = [self.former(rows[:n]) for rows, n in zip(features, lengths, strict=True)]
                return Told(torch.cat(made), mask, labels, None)
            hidden = self.former.attend(features, mask)
            embeddings = self.former.project(hidden)[mask]
            return Told(embeddings, mask, labels, self.former.relevance(hidden))

    def answering(self, batch: Sequence[Lesson], told: Told | None) -> Tensor:
        """L_LM of each lesson, (B,)."""

        def embed(ids: Tensor) -> Tensor:
            embeds = self.base.get_input_embeddings()(ids)
            if told is None:
                return embeds
            rows = torch.tensor([row for row, e in enumerate(batch) for _ in e.places])
            columns = torch.tensor([at for e in batch for at in e.places])
            at = rows.to(ids.device), columns.to(ids.device)
            return embeds.index_put(at, told.embeddings.to(embeds))

        logits, wanted, rows = targets(self.base, batch, embed)
        each = cross_entropy(logits, wanted, reduction="none")
        counts = torch.tensor([e.n_target for e in batch], device=each.device)
        return each.new_zeros(len(batch)).index_add(0, rows, each) / counts


def matching(told: Told, reduction: str = "mean") -> Tensor:
    """L_QDM of each lesson, (B,): over its passages the mean, or equation 8's sum."""
    each = binary_cross_entropy_with_logits(told.logits, told.labels, reduction="none")
    sums = (each * told.mask).sum(1)
    return sums / told.mask.sum(1) if reduction == "mean" else sums


def objective(former: Former | None, answers: bool = True, matches: bool = True) -> Callable:
    """Equation 9, summed over a batch's lessons, with both of its terms or with one."""
    weight = former.qdm if former and matches else 0.0

    def loss(model: Joint, batch: Sequence[Lesson]) -> tuple[Tensor, int]:
        told = model.tell(batch)
        each = torch.zeros(len(batch), device=model.device)
        if weight:
            each = each + weight * matching(told, former.reduction)
        if answers:
            each = each + model.answering(batch, told)
        return each.sum(), len(batch)

    return loss


def check(budget: int, matches: bool) -> Callable:
    """What is watched of held-out lists: both losses, and how well the head knows gold.

    budget: padded tokens at once. matches: whether a head was trained. -> {"answer": L_LM, and
    with a head "matching": L_QDM a passage, "auc": how often a gold passage's logit is above
    another's, over all lists}
    """

    def watch(model: Joint, lessons: Sequence[Lesson]) -> dict[str, float]:
        answer, match, scores = 0.0, 0.0, {0: [], 1: []}
        for numbers in batches([len(e.tokens) for e in lessons], 0, 0, budget):
            batch = [lessons[i] for i in numbers]
            told = model.tell(batch)
            answer += float(model.answering(batch, told).sum())
            if matches:
                match += float(matching(told).sum())
                for label in scores:
                    found = told.logits[told.mask & (told.labels == label)]
                    scores[label] += found.tolist()
        found = {"answer": round(answer / len(lessons), 4)}
        known = auc(scores[1], scores[0])
        if matches:
            found["matching"] = round(match / len(lessons), 4)
        if known is not None:
            found["auc"] = round(known, 4)
        return found

    return watch


def publish(model: Joint, folder: Path) -> None:
    """The former, and the adapter where the reader was trained as well."""
    if model.former is not None:
        formers.save(model.former, folder)
    if model.reader is not model.base:
        publish_adapter(model.reader, folder)
