"""A cross-encoder that judges passages for a question: two of them, as DR-RAG's classifier C,
or one, as CRAG's evaluator.

    C(q, a, b) = sigmoid(head(encoder([CLS] q [SEP] a [SEP] b [SEP])))
    E(q, a)    = sigmoid(head(encoder([CLS] q [SEP] a [SEP])))

Any encoder that transformers can classify with will do (BERT's kind, BigBird,
Longformer). Source: DR-RAG, section 2.2.2, equation 2, appendix A.1; CRAG, section 4.2,
whose evaluator is T5-large with one output.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_repro.lm.hub import digest_of
from rag_repro.lm.load import device_of
from rag_repro.lm.plain import Plain
from rag_repro.lm.weights import Weights, loading, refuse_gaps
from rag_repro.schema.errors import CallError, ReaderError

MAX_TOKENS = 512
"""A pair's room where the encoder has more (BigBird, Longformer): few pairs need it."""

LEAST_ROOM = 16
"""Below it hardly a word of each passage is left."""

PACKED_BYTES = 2 << 30
"""Memory that packed weights may take beside the plain ones (BigBird-large fits)."""


@dataclass(frozen=True, slots=True)
class Cutter:
    """Question and one or two passages as one row of ids, cut to `room` tokens.

    The passages give way, the longer one first; the question stays whole up to
    half of the room. What a text says never becomes a mark between texts.
    """

    plain: Plain
    room: int

    @classmethod
    def of(cls, tokenizer: Any, model: Any, room: int | None = None) -> Cutter:
        """For a model's tokenizer and its room (`MAX_TOKENS`, or what its positions allow).

        room: another one. ReaderError: more than the positions allow, or hardly any.
        """
        # RoBERTa's kind (Longformer) counts positions from two.
        most = model.config.max_position_embeddings - 2
        if room is not None and not LEAST_ROOM <= room <= most:
            raise ReaderError(
                f"room for {room} tokens: this encoder takes from {LEAST_ROOM} to {most}"
            )
        return cls(Plain(tokenizer), room or min(MAX_TOKENS, most))

    def __call__(self, question: str, a: str, b: str | None = None) -> tuple[tuple[int, ...], bool]:
        """-> ids, and whether anything was cut."""
        texts = [question, a] if b is None else [question, a, b]
        q, x, *more = (self.plain.tokens(text)[0] for text in texts)
        y = more[0] if more else []
        whole = len(q) + len(x) + len(y)
        q = q[: self.room // 2]
        marks = 1 + len(texts)
        left = self.room - marks - len(q)
        n = min(len(x), max(left - len(y), left // 2))
        x, y = x[:n], y[: left - n]
        first, sep = self.plain.tokenizer.cls_token_id, self.plain.tokenizer.sep_token_id
        ids = (first, *q, sep, *x, sep, *((*y, sep) if more else ()))
        return ids, len(ids) - marks < whole


def sequence_classifier(weights: Weights, device: str = "cpu", labels: int = 1) -> tuple[Any, Any]:
    """An encoder with a fresh head for `labels` logits, and its tokenizer.

    ReaderError: weights that are no encoder's, or a device that is not here.
    """
    device = device_of(device)
    if weights.kind != "safetensors":
        raise ReaderError(f"{weights.name}: an encoder needs safetensors, not {weights.kind}")
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    with loading(weights.path), torch.random.fork_rng():
        torch.manual_seed(0)  # the head, which training replaces
        tokenizer = AutoTokenizer.from_pretrained(weights.path, local_files_only=True)
        model, info = AutoModelForSequenceClassification.from_pretrained(
            weights.path,
            num_labels=labels,
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    refuse_gaps(weights.path, info, encoder=True)
    if tokenizer.cls_token_id is None or tokenizer.sep_token_id is None:
        raise ReaderError(f"{weights.name}: its tokenizer has no [CLS] and [SEP]")
    return model.to(device).eval(), tokenizer


def logits_of(model: Any, rows: Sequence[Sequence[int]], pad: int) -> Any:
    """Logits (rows,) of pairs as ids of unequal length."""
    return outputs_of(model, rows, pad)[:, 0]


def outputs_of(model: Any, rows: Sequence[Sequence[int]], pad: int) -> Any:
    """All logits (rows, labels) of rows of ids of unequal length."""
    import torch

    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), pad)
    seen = torch.zeros((len(rows), longest), dtype=torch.long)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        seen[row, : len(tokens)] = 1
    out = model(input_ids=ids.to(model.device), attention_mask=seen.to(model.device))
    return out.logits.float()


class Classifier:
    """A trained encoder with its head, as the engine's scorers are built on it.

    weights: an adapter's folder with its head (kind "adapter") over an encoder.
    batch_tokens: padded tokens computed at once; None: what stays in a processor's
    cache, or keeps a GPU busy. room: tokens of a row at most; None: `MAX_TOKENS`.
    `cut` counts rows that did not fit, of `judged` in all.
    """

    kind: str
    labels: int
    example: str
    """A recipe that makes one."""

    def __init__(
        self,
        weights: Weights,
        *,
        device: str = "cpu",
        batch_tokens: int | None = None,
        room: int | None = None,
    ):
        if weights.base is None:
            raise ReaderError(
                f"{weights.name}: not a trained classifier; "
                f"`rag-repro train {self.example}` makes one"
            )
        from rag_repro.lm.packed import PackedLinears

        base, self._tokenizer = sequence_classifier(weights.base, device, self.labels)
        with loading(weights.path):
            from peft import PeftModel

            model = PeftModel.from_pretrained(base, weights.path)
            self._model = model.merge_and_unload().eval()
        self.weights = weights
        self.name = weights.name
        self.batch_tokens = batch_tokens or (2048 if device == "cpu" else 16384)
        self._linears = PackedLinears(self._model, PACKED_BYTES)
        self._cutter = Cutter.of(self._tokenizer, self._model, room)
        facts = f"{self.kind}:{weights.base.sha256}:{digest_of(weights.path)}:{device}"
        facts += f":{room}" if room else ""
        self.fingerprint = hashlib.sha256(facts.encode()).hexdigest()
        self.judged = self.cut = 0

    def outputs(self, rows: Sequence[Sequence[int]]) -> Any:
        """Logits (rows, labels) of rows of ids, like lengths together."""
        import torch

        out = torch.empty(len(rows), self.labels)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        start = 0
        while start < len(order):
            end = start + 1
            while end < len(order) and (end - start + 1) * len(rows[order[end]]) <= (
                self.batch_tokens
            ):
                end += 1
            now = order[start:end]
            with torch.no_grad(), self._linears.used():
                out[now] = outputs_of(
                    self._model, [rows[i] for i in now], self._tokenizer.pad_token_id
                ).cpu()
            start = end
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class PairClassifier(Classifier):
    """A trained C as the engine's scorer: items (question, passage, passage).

    A pair is judged in the order in which it is given; C is trained on both.
    """

    kind, labels, example = "pairs", 1, "drrag-classifier-joint"
    passages = 2

    def score(self, items: Sequence[tuple[str, ...]]) -> np.ndarray:
        """float32 (items,): the probability that both passages are critical to the question.

        CallError: an item with more or fewer texts than the classifier was taught to judge.
        """
        import torch

        wrong = next((item for item in items if len(item) != 1 + self.passages), None)
        if wrong is not None:
            raise CallError(
                f"{self.name} judges a question with {self.passages} passage(s) beside it, "
                f"and was given {len(wrong)} texts"
            )
        made = [self._cutter(*item) for item in items]
        self.judged += len(made)
        self.cut += sum(cut for _, cut in made)
        return torch.sigmoid(self.logits([ids for ids, _ in made])).numpy()

    def logits(self, rows: Sequence[Sequence[int]]) -> Any:
        """Logits (rows,) of rows of ids."""
        return self.outputs(rows)[:, 0]


class RelevanceClassifier(PairClassifier):
    """A trained E as the engine's scorer: items (question, passage).

    The value is the probability that the question needs the passage.
    """

    kind, example = "relevance", "crag-evaluator"
    passages = 1
