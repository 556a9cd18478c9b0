"""Where a prompt's last token looks, layer by layer: means over the recorded questions of a cell.

Each takes recorded answers (`evaluation.attention_metrics` says what they hold), and gives percent
of a layer's attention by place, for `show.part`; layers from 1, the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rag_repro.evaluation.attention_metrics import UNIT, best_other, gold_places, passages

Line = Mapping[str, Any]


def by_kind(lines: Iterable[Line], kind: str) -> dict[tuple[int], float]:
    """(layer,) -> percent on one token of a kind: "embeddings", "words" of passages, or "marks".

    A question's share by its number of such tokens.
    """
    made = []
    for line in lines:
        looked = line.get("attention", {})
        if not looked.get("tokens") or kind not in looked:
            continue
        marks, words = (sum(column) for column in zip(*looked["tokens"], strict=True))
        count = {"embeddings": len(looked["tokens"]), "words": words, "marks": marks}[kind]
        shares = np.array(looked[kind], dtype=float)
        if count:
            made.append(100 * shares.reshape(len(shares), -1).sum(1) / UNIT / count)
    return _by_layer(made)


def by_passage(lines: Iterable[Line], shown: int = 4) -> dict[tuple[int, str], float]:
    """(layer, place) -> percent on the first passages: "1e" the embedding before the first, "1w"
    its words; of questions with at least so many passages.
    """
    made: dict[str, list[np.ndarray]] = {}
    for line in lines:
        looked = line.get("attention", {})
        if len(looked.get("tokens", ())) < shown:
            continue
        for kind, letter in (("embeddings", "e"), ("words", "w")):
            for i, column in enumerate(np.array(looked.get(kind, [])).T[:shown], start=1):
                made.setdefault(f"{i}{letter}", []).append(100 * column / UNIT)
    return {
        (*layer, place): value
        for place, shares in made.items()
        for layer, value in _by_layer(shares).items()
    }


def gold_over_best_other(lines: Iterable[Line]) -> dict[tuple[int], float]:
    """(layer,) -> points on a gold passage above the best other one, embeddings with their words;
    of questions that have both.
    """
    made = []
    for line in lines:
        shares, gold, other = passages(line), gold_places(line), best_other(line)
        if shares is not None and gold and other is not None:
            made.append(100 * (shares[:, gold].mean(1) - shares[:, other]))
    return _by_layer(made)


def _by_layer(made: Sequence[np.ndarray]) -> dict[tuple[int], float]:
    """(layer,) -> the mean over questions; {} without any."""
    means = np.mean(made, axis=0).tolist() if made else []
    return {(layer,): value for layer, value in enumerate(means, start=1)}
