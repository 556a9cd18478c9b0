"""What a reader is taught from: a prompt, and what it should write after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from rag_repro.lm.prompts import Codec
from rag_repro.schema import Prompt

LOOK_AHEAD = 64
"""Batches' worth of tokens that are sorted by length together."""


@dataclass(frozen=True, slots=True)
class Example:
    """One lesson. source: which part of a recipe it belongs to, as "statements:B".

    question: the id of the question it is made of; None: a plain statement.
    """

    prompt: Prompt
    target: str
    source: str
    question: str | None = None


@dataclass(frozen=True, slots=True)
class Encoded:
    """An example as token ids; of `tokens` the last `n_target` are to be learned."""

    tokens: tuple[int, ...]
    n_target: int
    source: str


@dataclass(frozen=True, slots=True)
class EncodedText:
    """What a classifier learns from, as ids: a pair in one order, or a question."""

    tokens: tuple[int, ...]
    label: int
    source: str


def encode(example: Example, codec: Codec, end: int) -> Encoded:
    """An example's ids, exactly as the reader will meet them, closed by the id `end`."""
    target = (*codec.ids(example.target), end)
    return Encoded((*codec.encode(example.prompt).tokens, *target), len(target), example.source)


def batches(
    lengths: Sequence[int], epoch: int, seed: int, budget: int, rows: int | None = None
) -> Iterator[tuple[int, ...]]:
    """The examples' numbers in batches of at most `budget` padded tokens and `rows`, each once.

    The order depends on seed and epoch alone, so a run can go on in the middle.
    Examples of like length stand together, drawn from a shuffled stream. Where `rows` is what
    binds, the stretch of it that is sorted holds more batches than LOOK_AHEAD, at times all
    examples: then the same ones share a step whatever the seed, and steps alone are shuffled.
    """
    random = Random(f"{seed}/{epoch}")
    order = list(range(len(lengths)))
    random.shuffle(order)
    mean = max(1, sum(lengths) // len(lengths))
    window = max(1, LOOK_AHEAD * budget // mean)
    made: list[tuple[int, ...]] = []
    for start in range(0, len(order), window):
        batch: list[int] = []
        for number in sorted(order[start : start + window], key=lambda i: (lengths[i], i)):
            if batch and (len(batch) == rows or (len(batch) + 1) * lengths[number] > budget):
                made.append(tuple(batch))
                batch = []
            batch.append(number)
        if batch:
            made.append(tuple(batch))
    random.shuffle(made)
    yield from made
