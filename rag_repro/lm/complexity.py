"""Adaptive-RAG's classifier: how complex a question is, as three classes' probabilities.

    P(A), P(B), P(C) = softmax(head(encoder([CLS] q [SEP])))

A: the reader knows it, B: one search, C: several steps. The original is T5-large,
which writes a letter, and takes the first decoder step's scores of "A", "B" and "C";
ours is an encoder with a head for three logits. Source: Adaptive-RAG, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_repro.lm.pairs import Classifier
from rag_repro.lm.plain import Plain
from rag_repro.schema.errors import CallError

CLASSES = ("A", "B", "C")


def row(question: str, plain: Plain, room: int) -> tuple[tuple[int, ...], bool]:
    """A bare question as ids between its marks, cut to `room`, and whether anything was cut."""
    ids = plain.tokens(question)[0]
    kept = ids[: room - 2]
    first, sep = plain.tokenizer.cls_token_id, plain.tokenizer.sep_token_id
    return (first, *kept, sep), len(kept) < len(ids)


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
        made = [row(question, self._cutter.plain, self._cutter.room) for question in asked]
        self.judged += len(made)
        self.cut += sum(cut for _, cut in made)
        shares = torch.softmax(self.outputs([ids for ids, _ in made]), dim=1).numpy()
        place = {question: i for i, question in enumerate(asked)}
        values = [shares[place[question], CLASSES.index(letter)] for question, letter in items]
        return np.array(values, dtype=np.float32)
