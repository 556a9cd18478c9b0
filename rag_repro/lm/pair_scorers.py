"""Classifiers. A cross-encoder judges passages for a question: two of them, as DR-RAG's
classifier C, or one, as CRAG's evaluator.

    C(q, a, b) = sigmoid(head(encoder([CLS] q [SEP] a [SEP] b [SEP])))
    E(q, a)    = sigmoid(head(encoder([CLS] q [SEP] a [SEP])))

Any encoder that transformers can classify with will do (BERT's kind, BigBird,
Longformer). Source: DR-RAG, section 2.2.2, equation 2, appendix A.1; CRAG, section 4.2,
whose evaluator is T5-large with one output.

Adaptive-RAG's classifier tells how complex a question is, as three classes' probabilities:

    P(A), P(B), P(C) = softmax(head(encoder([CLS] q [SEP])))

A: the reader knows it, B: one search, C: several steps. The original is T5-large,
which writes a letter, and takes the first decoder step's scores of "A", "B" and "C";
ours is an encoder with a head for three logits. Source: Adaptive-RAG, section 3.2.

Where pairs to learn from are few, DR-RAG's classifier C is one over similarities of single texts:

    v(t)       = the sentence encoder's vector of t, of length one;  q+a = question and passage
    s(q, a, b) = [v(q)·v(a), v(q)·v(b), v(a)·v(b), v(q+a)·v(b), v(q+a)·v(a)]
    C(q, a, b) = sigmoid(w · squares(z) + c),  z = (s - mean) / scale

squares(z) are the z and all products of two of them, so that "alike, but not
too alike" can be said. q+a is the query of DR-RAG's second stage, and v(q+a)·v(b)
its score. A cross-encoder reads all three texts at once and can
learn more; from some hundreds of questions it did not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from rag_repro.digest import sha256
from rag_repro.lm.hub import digest_of
from rag_repro.lm.load import device_of
from rag_repro.lm.prompts import Plain
from rag_repro.lm.weights import ADAPTER, Weights, loading, refuse_gaps
from rag_repro.schema.errors import CallError, ReaderError, WeightsError

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
    def for_model(cls, tokenizer: Any, model: Any, room: int | None = None) -> Cutter:
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

    def __call__(self, question: str, a: str, b: str | None = None) -> tuple[int, ...]:
        """-> ids"""
        texts = [question, a] if b is None else [question, a, b]
        q, x, *more = (self.plain.tokens(text)[0] for text in texts)
        y = more[0] if more else []
        q = q[: self.room // 2]
        left = self.room - 1 - len(texts) - len(q)
        n = min(len(x), max(left - len(y), left // 2))
        x, y = x[:n], y[: left - n]
        first, sep = self.plain.tokenizer.cls_token_id, self.plain.tokenizer.sep_token_id
        return (first, *q, sep, *x, sep, *((*y, sep) if more else ()))


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


def outputs_of(model: Any, rows: Sequence[Sequence[int]], pad: int) -> Any:
    """All logits (rows, labels) of rows of ids of unequal length."""
    from torch import ones, tensor
    from torch.nn.utils.rnn import pad_sequence

    ids = pad_sequence([tensor(row) for row in rows], batch_first=True, padding_value=pad)
    seen = pad_sequence([ones(len(row), dtype=ids.dtype) for row in rows], batch_first=True)
    out = model(input_ids=ids.to(model.device), attention_mask=seen.to(model.device))
    return out.logits.float()


class Classifier:
    """A trained encoder with its head, as the engine's scorers are built on it.

    weights: an adapter's folder with its head (kind "adapter") over an encoder.
    batch_tokens: padded tokens computed at once; None: what stays in a processor's
    cache, or keeps a GPU busy. room: tokens of a row at most; None: `MAX_TOKENS`.
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
        from rag_repro.lm.passes import PackedLinears

        base, self._tokenizer = sequence_classifier(weights.base, device, self.labels)
        with loading(weights.path):
            from peft import PeftModel

            model = PeftModel.from_pretrained(base, weights.path)
            self._model = model.merge_and_unload().eval()
        self.weights = weights
        self.name = weights.name
        self.batch_tokens = batch_tokens or (2048 if device == "cpu" else 16384)
        self._linears = PackedLinears(self._model, PACKED_BYTES)
        self._cutter = Cutter.for_model(self._tokenizer, self._model, room)
        facts = f"{self.kind}:{weights.base.sha256}:{digest_of(weights.path)}:{device}"
        facts += f":{room}" if room else ""
        self.fingerprint = hashlib.sha256(facts.encode()).hexdigest()

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
        return torch.sigmoid(self.logits([self._cutter(*item) for item in items])).numpy()

    def logits(self, rows: Sequence[Sequence[int]]) -> Any:
        return self.outputs(rows)[:, 0]


class RelevanceClassifier(PairClassifier):
    """A trained E as the engine's scorer: items (question, passage).

    The value is the probability that the question needs the passage.
    """

    kind, example = "relevance", "crag-evaluator"
    passages = 1


CLASSES = ("A", "B", "C")


def row(question: str, plain: Plain, room: int) -> tuple[int, ...]:
    """A bare question as ids between its marks, cut to `room`."""
    first, sep = plain.tokenizer.cls_token_id, plain.tokenizer.sep_token_id
    return (first, *plain.tokens(question)[0][: room - 2], sep)


class ComplexityClassifier(Classifier):
    """A trained classifier as the engine's scorer: items (question, letter).

    A letter's value is its class's probability, so a question's three add up to 1
    and none depends on the others having been asked.
    """

    kind, labels, example = "complexity", len(CLASSES), "complexity-testbed"

    def score(self, items: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 (items,). CallError: a class other than A, B, C."""
        import torch

        for question, letter in items:
            if letter not in CLASSES:
                raise CallError(f"{question!r}: there is no class {letter!r}; there are A, B and C")
        asked = list(dict.fromkeys(question for question, _ in items))
        rows = [row(question, self._cutter.plain, self._cutter.room) for question in asked]
        shares = torch.softmax(self.outputs(rows), dim=1).numpy()
        place = {question: i for i, question in enumerate(asked)}
        values = [shares[place[question], CLASSES.index(letter)] for question, letter in items]
        return np.array(values, dtype=np.float32)


PARTS = {"mean": (5,), "scale": (5,), "weights": (20,), "bias": (1,)}
"""What the file of weights holds, with shapes."""

Item = tuple[str, str, str]


def similarities(encoder: Any, items: Sequence[Item]) -> np.ndarray:
    """float32 (items, 5): how alike question, passages and question with passage are.

    encoder: anything with `encode(texts) -> (texts, width)`, rows of length one. Each text is
    encoded once.
    """
    asked = [(q, a, b, f"{q} {a}") for q, a, b in items]
    place = {text: i for i, text in enumerate(dict.fromkeys(t for item in asked for t in item))}
    vectors = encoder.encode(list(place))
    q, a, b, qa = (vectors[[place[item[n]] for item in asked]] for n in range(4))
    compared = ((q, a), (q, b), (a, b), (qa, b), (qa, a))
    return np.stack([(x * y).sum(axis=1) for x, y in compared], axis=1)


def squares(z: np.ndarray) -> np.ndarray:
    """(n, 5) -> (n, 20): the columns, then the products of two of them."""
    pairs = combinations_with_replacement(range(z.shape[1]), 2)
    return np.concatenate([z, *(z[:, [i]] * z[:, [j]] for i, j in pairs)], axis=1)


class SimilarityClassifier:
    """A trained C as the engine's scorer: items (question, passage found first, passage).

    weights: a folder of `rag-repro train` (kind "adapter") over a sentence encoder.
    encoder: that encoder, or one that keeps its vectors.
    """

    def __init__(self, weights: Weights, encoder: Any):
        if weights.base is None:
            raise ReaderError(
                f"{weights.name}: not a trained classifier; "
                "`rag-repro train drrag-classifier` makes one"
            )
        self.weights, self.name = weights, weights.name
        self.encoder = encoder
        self._parts = _read(weights)
        facts = f"similarities:{encoder.fingerprint}:{sha256(weights.path / ADAPTER)}"
        self.fingerprint = hashlib.sha256(facts.encode()).hexdigest()

    def score(self, items: Sequence[Item]) -> np.ndarray:
        """float32 (items,): the probability that both passages are critical to the question."""
        if not items:
            return np.zeros(0, dtype=np.float32)
        return self.probabilities(similarities(self.encoder, items))

    def probabilities(self, found: np.ndarray) -> np.ndarray:
        """float32 (items,): the probability, from `similarities` (items, 5)."""
        part = self._parts
        z = (found - part["mean"]) / part["scale"]
        logits = squares(z) @ part["weights"] + part["bias"]
        # Capped, since float32 has no exp(89); below it the probability is nothing already.
        return (1 / (1 + np.exp(np.minimum(-logits, 80)))).astype(np.float32)

    def __repr__(self) -> str:
        return f"SimilarityClassifier({self.name})"


def _read(weights: Weights) -> dict[str, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = weights.path / ADAPTER
    try:
        parts = load_file(path)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{path}: not readable ({error}); train it again") from error
    if {name: part.shape for name, part in parts.items()} != PARTS:
        raise WeightsError(
            f"{path}: not a classifier over similarities (it holds {', '.join(parts)}); "
            "train it again"
        )
    return parts
