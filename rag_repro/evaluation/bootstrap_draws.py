"""Bootstrap: how often each unit comes in each resample, and a statistic over all of them.

The counts depend on the generator and on the number of units alone, not on what was scored. A
page draws thousands of means over the same hundred questions, from a generator begun anew for
each: the counts are kept, and a mean costs a product with them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

CHUNK = 4_000_000  # indices in memory at once
KEPT = 12_000_000  # numbers of the largest counts that are kept: of 24 MB
BLOCK = 100_000  # counts that a statistic is given at once: they stay in the processor's cache

State = dict[str, object]


def over_draws(
    statistic: Callable[[np.ndarray], np.ndarray],
    units: int,
    draws: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """`statistic` of `draws` resamples of the units with replacement.

    statistic: (some draws, units) how often each unit comes -> one value a draw; it may leave
    draws out. The generator is left as if it had drawn, kept or not.
    """
    if draws * units > KEPT:
        chunks = _fresh(units, draws, rng)
    else:
        bits = rng.bit_generator
        times, bits.state = _kept(type(bits), pickle.dumps(bits.state), units, draws)
        chunks = [times]
    rows = max(1, BLOCK // units)
    blocks = (chunk[i : i + rows] for chunk in chunks for i in range(0, len(chunk), rows))
    return np.concatenate([statistic(block.astype(float)) for block in blocks])


@lru_cache(maxsize=32)  # of 3 MB as a rule, 24 MB at most
def _kept(kind: type, state: bytes, units: int, draws: int) -> tuple[np.ndarray, State]:
    """What a generator in a state draws (draws, units), and its state afterwards."""
    bits = kind()
    bits.state = pickle.loads(state)
    times = np.concatenate([*_fresh(units, draws, np.random.Generator(bits))])
    times.flags.writeable = False
    return times, bits.state


def _fresh(units: int, draws: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    smallest = np.min_scalar_type(units)
    step = max(1, CHUNK // units)
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        chosen = rng.integers(0, units, size=(rows, units)) + units * np.arange(rows)[:, None]
        times = np.bincount(chosen.ravel(), minlength=rows * units)
        yield times.reshape(rows, units).astype(smallest)
