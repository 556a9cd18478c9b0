"""Training C over similarities: logistic regression on vectors that stay as they are."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_repro.digest import replacing, write_whole

from ..lm.adapters import CURVE
from ..lm.hub import ADAPTER
from ..lm.plain import Plain
from ..lm.similarities import Item, similarities, squares
from .pairs import Pair

STRENGTH = 1.0
"""scikit-learn's C. From 0.1 to 10 the tune pairs' AUC moves by 0.004."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A pair in one of its two orders. tokens: what the encoder reads of it, as ids."""

    tokens: tuple[int, ...]
    label: int
    source: str
    item: Item


def asked(pairs: Sequence[Pair], plain: Plain) -> list[Asked]:
    """Each pair in both orders, since either passage may be found first."""
    made = []
    for pair in pairs:
        for a, b in ((pair.a, pair.b), (pair.b, pair.a)):
            q, x, y = (plain.tokens(text)[0] for text in (pair.question, a, b))
            item = (pair.question, a, b)
            made.append(Asked((*q, *x, *y, *q, *x), pair.label, pair.source, item))
    return made


def fit(encoder: Any, learned: Sequence[Asked], held_out: Sequence[Asked], folder: Path) -> Path:
    """The weights of C, with a curve of one row; -> the folder.

    encoder: as `similarities` wants it; its time is in the row's seconds.
    """
    from safetensors.numpy import save_file
    from sklearn.linear_model import LogisticRegression

    began = time.monotonic()
    found = similarities(encoder, [e.item for e in learned]).astype(np.float64)
    mean, scale = found.mean(axis=0), found.std(axis=0)
    model = LogisticRegression(C=STRENGTH, max_iter=5_000)
    model.fit(squares((found - mean) / scale), [e.label for e in learned])
    parts = {"mean": mean, "scale": scale, "weights": model.coef_[0], "bias": model.intercept_}
    folder.mkdir(parents=True, exist_ok=True)
    made = {name: np.ascontiguousarray(part, dtype=np.float32) for name, part in parts.items()}
    with replacing(folder / ADAPTER) as part:
        save_file(made, part)

    def losses(examples: Sequence[Asked]) -> dict[str, float]:
        """Mean cross-entropy by source."""
        sums, counts = Counter(), Counter()
        found = similarities(encoder, [e.item for e in examples])
        right = model.predict_log_proba(squares((found - mean) / scale))
        for row, example in zip(right, examples, strict=True):
            sums[example.source] -= float(row[example.label])
            counts[example.source] += 1
        return {source: round(sums[source] / counts[source], 4) for source in sorted(sums)}

    own = losses(learned)
    counts = Counter(e.source for e in learned)
    row = {
        "step": 1,
        "tokens": sum(len(e.tokens) for e in learned),
        "loss": round(sum(own[s] * counts[s] for s in own) / len(learned), 4),
        "seconds": round(time.monotonic() - began, 2),
        "computed_in": "float32",
    }
    if held_out:
        row["held_out"] = losses(held_out)
    write_whole(folder / CURVE, json.dumps(row) + "\n")
    return folder
