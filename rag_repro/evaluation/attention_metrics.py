"""Where a prompt's last token looks, out of its record's line.

A line's `attention` is what `methods.r2ag.checks` tells, in ten-thousandths of each
layer's attention (the mean over heads): `words` and `embeddings`, of each layer a number a
passage, and `marks`, of each layer one for all passages; `tokens`, of each passage [marks,
words]. Answers of other methods have none, and none of these metrics.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rag_repro.evaluation.metric import Line, described

UNIT = 10_000
"""A share of 1, as lines have it."""

EARLY = 4
"""Layers in which the paper sees the relevant passage get more (section 4.5)."""


def one_embedding(deep: bool, line: Line) -> float | None:
    """The share that goes to one passage's embedding, the mean over passages and layers."""
    shares = _shares(line, "embeddings")
    return None if shares is None else float(_half(shares, deep).mean())


def one_word(deep: bool, line: Line) -> float | None:
    """The share that goes to one token of the passages' titles and texts."""
    return _per_token(line, "words", 1, deep)


def one_mark(deep: bool, line: Line) -> float | None:
    """The share that goes to one token of what stands before passages, as "[1](Title:"."""
    return _per_token(line, "marks", 0, deep)


def gold_part(line: Line, words: bool = False) -> float | None:
    """Of what goes to passages (to their words alone) the gold ones' part, the mean over layers."""
    whole, gold = _shares(line, "words") if words else passages(line), gold_places(line)
    if whole is None or not gold or not (whole.sum(1) > 0).all():
        return None
    return float((whole[:, gold].sum(1) / whole.sum(1)).mean())


def early(gold: bool, line: Line) -> float | None:
    """The share that goes, in the first layers, to a gold passage, or to the best other one.

    None where one of the two is not there.
    """
    whole, places, other = passages(line), gold_places(line), best_other(line)
    if whole is None or not places or other is None:
        return None
    return float(whole[:EARLY, places if gold else other].mean())


def near(gold: bool, line: Line) -> float | None:
    """As `early`, of the gold passages that stand beside one that is not gold, or of those beside
    them: places, too, are looked at unequally.
    """
    whole, beside = passages(line), _beside(line)
    if whole is None or not beside:
        return None
    chosen = beside if gold else beside.values()
    return float(np.mean([whole[:EARLY, place].mean() for place in chosen]))


def passages(line: Line) -> np.ndarray | None:
    """Shares (layers, passages) of words and embedding together; None: nothing was measured."""
    words = _shares(line, "words")
    embeddings = _shares(line, "embeddings")
    return words if embeddings is None else words + embeddings


def _shares(line: Line, name: str) -> np.ndarray | None:
    told = line.get("attention", {})
    # Nothing can be said of a prompt without passages.
    return np.array(told[name]) / UNIT if name in told and told["tokens"] else None


def _per_token(line: Line, name: str, place: int, deep: bool) -> float | None:
    shares = _shares(line, name)
    if shares is None:
        return None
    count = sum(tokens[place] for tokens in line["attention"]["tokens"])
    each_layer = shares.reshape(len(shares), -1).sum(1)
    return float(_half(each_layer, deep).mean() / count) if count else None


def _half(shares: np.ndarray, deep: bool) -> np.ndarray:
    """All layers, or those of the deeper half."""
    return shares[len(shares) // 2 :] if deep else shares


def gold_places(line: Line) -> list[int]:
    """Places of the gold passages among the hits, from 0."""
    return [rank - 1 for _, _, rank in line.get("gold", ()) if rank is not None]


def best_other(line: Line) -> int | None:
    """Place of the best passage that is not gold, from 0; None: all are gold."""
    gold = set(gold_places(line))
    return next((i for i in range(len(line["hits"])) if i not in gold), None)


def _beside(line: Line) -> dict[int, list[int]]:
    """Gold passages and the places next to each that are not gold, where there are such."""
    gold, last = set(gold_places(line)), len(line["hits"]) - 1
    near = {g: [i for i in (g - 1, g + 1) if 0 <= i <= last and i not in gold] for g in gold}
    return {place: others for place, others in near.items() if others}


TABLE = (
    *(
        described(f"attention_{name}{'_deep' if deep else ''}", partial(fn, deep))
        for name, fn in (("embedding", one_embedding), ("word", one_word), ("mark", one_mark))
        for deep in (False, True)
    ),
    described("attention_gold", gold_part),
    described("attention_gold_words", partial(gold_part, words=True)),
    *(
        described(f"attention_{who}_{name}", partial(fn, who == "gold"))
        for name, fn in (("near", near), ("early", early))
        for who in ("gold", "other")
    ),
)
